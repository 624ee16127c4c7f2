// The outermost frame of each stack is the goroutine's function, as in the stack with which the
// trace says that a goroutine begins, because viewers group goroutines by that frame. The runtime's
// own frames are left out, and with them those by which it calls the function. If the compiler has
// inlined the function there, its frame is the last one that is left: it gets the function's name.
#include "runtime/trace/stack_tables.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "debug/traceback.h"
#include "runtime/trace/stacks.h"
#include "runtime/trace/table_writer.h"

namespace gofer::internal::tracer {
namespace {

constexpr size_t most_frames = 128;  // by the format

// Go's reader keeps one function and line for an address, so the frames of functions that are
// inlined at one address need addresses of their own. The upper bits, which are 0 in addresses of
// user space, tell them apart.
constexpr uint64_t inlined_unit = uint64_t{1} << 57;
constexpr uint64_t most_inlined = 63;

struct Frame {
  uint64_t pc;
  uint64_t function;  // strings
  uint64_t file;
  int line;
};

struct Call {
  std::vector<Frame> frames;  // the innermost first
  uintptr_t function = 0;     // where the function that contains the call begins
  uint64_t failed_in = 0;     // the tables that could not describe it
};

struct String {
  uint64_t id;
  uint64_t written_in = 0;  // the last tables that have it
};

// Of the tracer's thread.
class Descriptions {
 public:
  /// Tables are to be written: of a generation, perhaps one that had some before.
  void begin_tables() { ++tables_; }

  /// The frames of a stack, the innermost first: the same ones throughout the tables.
  const std::vector<Frame>& frames_of(const Stack& stack) {
    frames_.clear();
    uintptr_t function = 0;  // which contains the last one
    for (const uintptr_t pc : stack.pcs()) {
      const Call& call = call_before(pc);
      if (call.frames.empty()) continue;
      function = call.function;
      for (const Frame& frame : call.frames) {
        if (frames_.size() < most_frames - 1) frames_.push_back(frame);
      }
    }
    const bool is_cut = frames_.size() == most_frames - 1;
    end_with(entry(stack.entry), function == stack.entry && !is_cut);
    return frames_;
  }

  /// Calls f(id, text) for the strings of a frame that the tables do not have yet.
  template <class F>
  void for_new_strings(const Frame& frame, F f) {
    for (const uint64_t id : {frame.function, frame.file}) {
      if (id == 0) continue;
      auto& [text, string] = *by_id_[id - first_stack_string];
      if (std::exchange(string.written_in, tables_) != tables_) f(id, text);
    }
  }

 private:
  using Strings = std::unordered_map<std::string, String>;

  uint64_t string(const std::string& text) {
    if (text.empty()) return 0;
    const auto found = strings_.find(text);
    if (found != strings_.end()) return found->second.id;
    const uint64_t id = first_stack_string + by_id_.size();
    if (id == end_of_stack_strings) return 0;
    by_id_.push_back(&*strings_.emplace(text, String{id}).first);
    return id;
  }

  Frame frame(uint64_t pc, const Place& place) {
    return {pc, string(place.function), string(place.file), place.line};
  }

  const Call& call_before(uintptr_t pc) {
    const auto [at, is_new] = calls_.try_emplace(pc);
    Call& call = at->second;
    if (!is_new && (call.failed_in == 0 || call.failed_in == tables_)) return call;
    CallPlaces described;
    call.failed_in = describe_places(pc, described) ? 0 : tables_;
    call.function = described.function;
    uint64_t inlined = described.places.size();
    for (const Place& place : described.places) {
      --inlined;
      call.frames.push_back(frame(pc + std::min(inlined, most_inlined) * inlined_unit, place));
    }
    return call;
  }

  const Frame& entry(uintptr_t pc) {
    const auto found = entries_.find(pc);
    if (found != entries_.end()) return found->second;
    return entries_.emplace(pc, frame(pc, describe_entry(pc))).first->second;
  }

  // last_is_entry: the last frame is the goroutine's function, inlined into what calls it.
  void end_with(const Frame& entry, bool last_is_entry) {
    const bool same =
        last_is_entry || (!frames_.empty() && frames_.back().function == entry.function);
    if (!same) {
      frames_.push_back(entry);
      return;
    }
    frames_.back().function = entry.function;
  }

  Strings strings_;
  std::vector<Strings::value_type*> by_id_;
  std::unordered_map<uintptr_t, Call> calls_;
  std::unordered_map<uintptr_t, Frame> entries_;
  uint64_t tables_ = 0;        // how many were begun
  std::vector<Frame> frames_;  // of the last stack
};

// Never destroyed: a trace may end after the destructors of static variables.
Descriptions& descriptions() {
  static auto& the = *new Descriptions;
  return the;
}

}  // namespace

void write_stack_strings(TableWriter& out, uint64_t generation) {
  Descriptions& all = descriptions();
  all.begin_tables();
  for_each_used_stack(generation, [&](const Stack& stack) {
    for (const Frame& frame : all.frames_of(stack)) {
      all.for_new_strings(frame,
                          [&](uint64_t id, std::string_view text) { put_string(out, id, text); });
    }
  });
}

void write_stacks(TableWriter& out, uint64_t generation) {
  Descriptions& all = descriptions();
  for_each_used_stack(generation, [&](const Stack& stack) {
    const std::vector<Frame>& frames = all.frames_of(stack);
    out.need(1 + (2 + 4 * frames.size()) * longest_varint);
    out.byte(Table::stack);
    out.number(stack.id);
    out.number(frames.size());
    for (const Frame& frame : frames) {
      out.number(frame.pc);
      out.number(frame.function);
      out.number(frame.file);
      out.number(static_cast<uint64_t>(frame.line));
    }
  });
}

}  // namespace gofer::internal::tracer
