// The text of a dump, in Go's format:
//
//   goroutine 4 "report" [sync.Mutex.Lock, 12 minutes, locked to thread]:
//   report(...)
//       examples/debugging/hang.cc:22 +0x9c
//   created by main in goroutine 1
//       examples/debugging/hang.cc:36 +0x5c
//
// A group is one entry with the traces of all its members:
//
//   10000 goroutines "worker" [chan receive, 2 to 12 minutes]: 7, 9-10007
//
// Symbolising a frame takes some ten microseconds, so the text of each trace, of each creator and
// of each first function is made once.
#include "runtime/report/dump_printer.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace gofer::internal {
namespace {

constexpr int64_t minute_ns = 60'000'000'000;

bool is_same(const char* a, const char* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return std::strcmp(a, b) == 0;
}

auto group_key(const SeenGoroutine& g) {
  return std::tuple(g.status, g.reason, g.bound, g.trace, g.stack, g.entry, g.create_pc);
}

// "void (*)(int)(...)"
bool is_pointer_to_function(std::string_view entry) { return entry.find("(*)") != entry.npos; }

}  // namespace

bool DumpPrinter::comes_first(const SeenGoroutine& a, const SeenGoroutine& b) const {
  const bool a_first = a.id == layout_.first_id;
  const bool b_first = b.id == layout_.first_id;
  if (a_first != b_first) return a_first;
  return a.id < b.id;
}

// What a goroutine calls that has not started: known by the name of its first function, or, if that
// is given by a pointer, by the pointer.
void DumpPrinter::find_callees() {
  for (SeenGoroutine& g : snapshot_.goroutines()) {
    if (g.trace != SeenGoroutine::Trace::not_started) continue;
    const std::string_view entry = text_of(
        entries_, g.entry, [&](FdWriter& out) { print_entry(out, g.entry, layout_.frames); });
    if (is_pointer_to_function(entry)) g.entry = g.callee;
  }
}

// Sorts the goroutines. Returns false if there is no memory for the groups.
bool DumpPrinter::make_groups(ArenaVector<Group>& groups) {
  const auto all = snapshot_.goroutines();
  std::sort(all.begin(), all.end(), [this](const SeenGoroutine& a, const SeenGoroutine& b) {
    const bool by_key = layout_.grouped && group_key(a) != group_key(b);
    return by_key ? group_key(a) < group_key(b) : comes_first(a, b);
  });
  for (size_t i = 0; i < all.size(); ++i) {
    if (layout_.grouped && i > 0 && group_key(all[i - 1]) == group_key(all[i])) {
      ++groups[groups.size() - 1].count;
    } else if (!groups.push(snapshot_.arena(), {i, 1})) {
      return false;
    }
  }
  std::sort(groups.begin(), groups.end(), [this, all](const Group& a, const Group& b) {
    return comes_first(all[a.first], all[b.first]);
  });
  return true;
}

void DumpPrinter::print() {
  find_callees();
  ArenaVector<Group> groups;
  const bool complete = make_groups(groups);
  const auto all = snapshot_.goroutines();
  const size_t shown = layout_.limit != 0 ? std::min(layout_.limit, groups.size()) : groups.size();
  size_t left_out = snapshot_.lost();
  for (size_t i = 0; i < groups.size(); ++i) {
    if (i >= shown) {
      left_out += groups[i].count;
      continue;
    }
    if (layout_.before_each != nullptr) layout_.before_each();
    if (i > 0 || layout_.empty_line_before) out_.write("\n");
    const SeenGoroutine* members = &all[groups[i].first];
    if (groups[i].count == 1) {
      print_one(*members);
    } else {
      print_group(members, groups[i].count);
    }
  }
  if (left_out != 0) out_.print("\n...%zu goroutines not shown...\n", left_out);
  if (!complete) out_.write("\n...out of memory...\n");
  out_.flush();
}

void DumpPrinter::print_one(const SeenGoroutine& g) {
  out_.print("goroutine %lu", static_cast<unsigned long>(g.id));
  if (g.name != nullptr) out_.print(" \"%s\"", g.name);
  print_state(g, g.waited_ns, g.waited_ns);
  out_.write(":\n");
  print_trace(g);
  print_creator_of(g, true);
}

void DumpPrinter::print_group(const SeenGoroutine* members, size_t count) {
  bool same_name = true;
  bool same_parent = true;
  int64_t least_ns = members[0].waited_ns;
  int64_t most_ns = least_ns;
  for (size_t i = 1; i < count; ++i) {
    same_name = same_name && is_same(members[i].name, members[0].name);
    same_parent = same_parent && members[i].parent_id == members[0].parent_id;
    least_ns = std::min(least_ns, members[i].waited_ns);
    most_ns = std::max(most_ns, members[i].waited_ns);
  }
  out_.print("%zu goroutines", count);
  if (same_name && members[0].name != nullptr) out_.print(" \"%s\"", members[0].name);
  print_state(members[0], least_ns, most_ns);
  out_.write(": ");
  print_ids(members, count);
  out_.write("\n");
  print_trace(members[0]);
  print_creator_of(members[0], same_parent);
}

// 7, 9-10007, ...
void DumpPrinter::print_ids(const SeenGoroutine* members, size_t count) {
  constexpr int most_ranges = 8;
  int ranges = 0;
  for (size_t i = 0; i < count;) {
    size_t last = i;
    while (last + 1 < count && members[last + 1].id == members[last].id + 1) ++last;
    if (ranges++ != 0) out_.write(", ");
    if (ranges > most_ranges) return out_.write("...");
    out_.print("%lu", static_cast<unsigned long>(members[i].id));
    if (last != i) out_.print("-%lu", static_cast<unsigned long>(members[last].id));
    i = last + 1;
  }
}

void DumpPrinter::print_state(const SeenGoroutine& g, int64_t least_ns, int64_t most_ns) {
  out_.write(" [");
  out_.write(g.status == GStatus::waiting ? wait_reason_text(g.reason) : status_name(g.status));
  const auto least = static_cast<long>(least_ns / minute_ns);
  const auto most = static_cast<long>(most_ns / minute_ns);
  if (most >= 1 && least == most) out_.print(", %ld minutes", most);
  if (most >= 1 && least != most) out_.print(", %ld to %ld minutes", least, most);
  if (g.bound) out_.write(", locked to thread");
  out_.write("]");
}

template <class F>
std::string_view DumpPrinter::text_of(Texts& texts, uint64_t key, F make) {
  const auto* known =
      std::find_if(texts.begin(), texts.end(), [key](const Text& t) { return t.key == key; });
  if (known != texts.end()) return known->text;
  scratch_.clear();
  {
    FdWriter out(
        [](void* self, std::string_view part) {
          auto* printer = static_cast<DumpPrinter*>(self);
          printer->scratch_.append(printer->snapshot_.arena(), part.data(), part.size());
        },
        this);
    make(out);
  }
  const size_t size = scratch_.size();
  auto* copy = static_cast<char*>(snapshot_.arena().take(size + 1));
  if (copy == nullptr) return {};
  if (size != 0) std::memcpy(copy, scratch_.begin(), size);
  const Text text{key, {copy, size}};
  texts.push(snapshot_.arena(), text);
  return text.text;
}

void DumpPrinter::print_trace(const SeenGoroutine& g) {
  switch (g.trace) {
    case SeenGoroutine::Trace::none:
      return;
    case SeenGoroutine::Trace::unavailable:
      return out_.write(
          "\tgoroutine running on a thread that does not answer; trace unavailable\n");
    case SeenGoroutine::Trace::not_started:
      out_.write(text_of(entries_, g.entry,
                         [&](FdWriter& out) { print_entry(out, g.entry, layout_.frames); }));
      return out_.write("\tnot started yet\n");
    case SeenGoroutine::Trace::known:
      return out_.write(text_of(traces_, g.stack, [&](FdWriter& out) {
        print_frames(out, snapshot_.stack(g.stack), layout_.frames);
      }));
  }
}

void DumpPrinter::print_creator_of(const SeenGoroutine& g, bool with_parent) {
  if (g.create_pc == 0 || g.trace == SeenGoroutine::Trace::none) return;
  const std::string_view text = text_of(creators_, g.create_pc, [&](FdWriter& out) {
    print_creator(out, g.create_pc, 0, layout_.frames);
  });
  const size_t line = std::min(text.find('\n'), text.size());
  out_.write(text.substr(0, line));
  if (with_parent && g.parent_id != 0) {
    out_.print(" in goroutine %lu", static_cast<unsigned long>(g.parent_id));
  }
  out_.write(text.substr(line));
}

}  // namespace gofer::internal
