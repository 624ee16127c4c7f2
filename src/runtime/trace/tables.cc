#include "runtime/trace/tables.h"

#include <gofer/detail/spawn.h>

#include <cstring>
#include <string>

#include "debug/traceback.h"
#include "os/memory.h"
#include "runtime/base/atomic.h"
#include "runtime/trace/events.h"
#include "runtime/trace/stream.h"
#include "runtime/trace/writer.h"

namespace gofer::internal::tracer {
namespace {

// Numbers of strings: the fixed ones, then those of functions and names by their places, then those
// of messages.
constexpr uint64_t first_function_string = 1u << 10;
constexpr uint64_t first_name_string = 1u << 16;
constexpr uint64_t first_message_string = 1u << 20;

// Stacks of one frame, by address: open addressing, and entries only come. A stack's number is that
// of its place, so no two tables have to agree.
struct Frame {
  atomic<uintptr_t> key{0};       // the address, and perhaps is_call
  atomic<uint64_t> used_in[2]{};  // the last generation that mentions it, by generation modulo 2
  Place* place = nullptr;         // of the tracer's thread
};
constexpr uintptr_t is_call = uintptr_t{1} << 63;
constinit Frame frames[frame_places];

uintptr_t entry_of(const G* g) {
  if (g->entry != detail::enter_member) return reinterpret_cast<uintptr_t>(g->entry);
  const auto* head = reinterpret_cast<const detail::member_head*>(g->closure);
  return reinterpret_cast<uintptr_t>(head->body);
}

uint64_t function_string(size_t place) { return first_function_string + 2 * place; }
uint64_t file_string(size_t place) { return function_string(place) + 1; }

// Names of tasks, regions and the like; also open addressing.
struct Name {
  atomic<const char*> text{nullptr};
  uint32_t size = 0;  // written before the text
  atomic<uint64_t> used_in[2]{};
};
constinit Name names[name_places];

constexpr size_t longest_text = 1024;  // by the format

struct Texts {
  Lock lock{LockRank::trace_texts};
  char* room GOFER_GUARDED_BY(lock) = nullptr;  // for names to come
  size_t left GOFER_GUARDED_BY(lock) = 0;
  Buffer* messages GOFER_GUARDED_BY(lock) = nullptr;  // a batch of the table of strings
  uint64_t last_message GOFER_GUARDED_BY(lock) = first_message_string;
};
constinit Texts texts;

const char* keep(std::string_view text) GOFER_REQUIRES(texts.lock) {
  constexpr size_t piece = 64 * 1024;
  if (texts.left <= text.size()) {
    texts.room = static_cast<char*>(os::reserve(piece));
    texts.left = texts.room != nullptr ? piece : 0;
    if (texts.room == nullptr) return nullptr;
  }
  char* copy = texts.room;
  std::memcpy(copy, text.data(), text.size());
  texts.room += text.size() + 1;
  texts.left -= text.size() + 1;
  return copy;
}

uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  return hash;
}

void mark_in(atomic<uint64_t> (&used_in)[2], uint64_t generation) {
  atomic<uint64_t>& used = used_in[generation & 1];
  if (used.load(relaxed) != generation) used.store(generation, release);
}

// Go's texts for what Go waits for, too.
const char* reason_text(WaitReason reason) {
  switch (reason) {
    case WaitReason::none:
      return "unspecified";
    case WaitReason::io_wait:
      return "network";
    case WaitReason::chan_receive_nil:
    case WaitReason::chan_send_nil:
    case WaitReason::select_no_cases:
      return "forever";
    case WaitReason::semacquire:
      return "sync.Semaphore.Acquire";
    default:
      return wait_reason_text(reason);
  }
}

constexpr WaitReason last_reason = WaitReason::wait_group_wait;

// Batches of one table.
class TableWriter {
 public:
  using Sink = void (*)(const void* bytes, size_t size);
  TableWriter(uint64_t generation, uint64_t time, Table kind, Sink sink)
      : generation_(generation), time_(time), kind_(kind), sink_(sink) {
    begin();
  }
  ~TableWriter() { end(); }
  TableWriter(const TableWriter&) = delete;
  TableWriter& operator=(const TableWriter&) = delete;

  void byte(Table value) { data_[used_++] = static_cast<uint8_t>(value); }
  void number(uint64_t value) {
    used_ = static_cast<size_t>(put_varint(data_ + used_, value) - data_);
  }
  void text(std::string_view value) {
    number(value.size());
    std::memcpy(data_ + used_, value.data(), value.size());
    used_ += value.size();
  }
  /// Before each entry.
  void need(size_t size) {
    if (used_ + size <= sizeof data_) return;
    end();
    begin();
  }

 private:
  void begin() {
    used_ = 0;
    byte(kind_);
  }
  void end() {
    uint8_t head[1 + 4 * longest_varint];
    uint8_t* at = head;
    *at++ = event_batch;
    at = put_varint(at, generation_);
    at = put_varint(at, no_m);
    at = put_varint(at, time_);
    at = put_varint(at, used_);
    sink_(head, static_cast<size_t>(at - head));
    sink_(data_, used_);
  }

  uint64_t generation_;
  uint64_t time_;
  Table kind_;
  Sink sink_;
  size_t used_ = 0;
  uint8_t data_[8192];
};

void put_string(TableWriter& out, uint64_t id, std::string_view text) {
  text = text.substr(0, longest_text);
  out.need(text.size() + 1 + 2 * longest_varint);
  out.byte(Table::string);
  out.number(id);
  out.text(text);
}

uint64_t stack_of(uintptr_t key) {
  size_t place = (key * 0x9e3779b97f4a7c15u) >> 50;
  for (int looks = 0; looks < 64; ++looks) {
    atomic<uintptr_t>& there = frames[place].key;
    uintptr_t found = there.load(acquire);
    if (found == 0 && there.compare_exchange_strong(found, key, acq_rel)) return place + 1;
    if (found == key) return place + 1;
    place = (place + 1) % frame_places;
  }
  return 0;
}

bool has(const uint64_t* bits, size_t i) { return (bits[i / 64] >> i % 64 & 1) != 0; }
void add(uint64_t* bits, size_t i) { bits[i / 64] |= uint64_t{1} << i % 64; }

template <class F>
void for_each_frame(const Used& used, F f) {
  for (size_t i = 0; i < frame_places; ++i) {
    if (has(used.frames, i)) f(i, frames[i]);
  }
}

// Code was unloaded since the last time: what is at an address now may have another name.
void forget_unloaded() {
  static uint64_t before = 0;
  const uint64_t count = count_unloaded();
  if (count == before) return;
  before = count;
  for (Frame& frame : frames) {
    delete frame.place;
    frame.place = nullptr;
  }
}

// A report may have the symbols for long. What was not found because of that is looked up for the
// next tables, not once more for these.
void describe(Frame& frame, bool& symbols_are_busy) {
  if (frame.place != nullptr && (frame.place->settled || symbols_are_busy)) return;
  delete frame.place;
  frame.place = nullptr;
  const uintptr_t key = frame.key.load(relaxed);
  if (symbols_are_busy) {
    frame.place = new Place{"?", {}, 0, false};
    return;
  }
  frame.place =
      new Place((key & is_call) != 0 ? describe_call(key & ~is_call) : describe_entry(key));
  symbols_are_busy = !frame.place->settled;
}

}  // namespace

uint64_t stack_of_entry(const G* g) { return stack_of(entry_of(g)); }

uint64_t stack_of_creator(const G* g) {
  return g->create_pc != 0 ? stack_of(g->create_pc | is_call) : 0;
}

void mark_used(uint64_t stack, uint64_t generation) {
  if (stack == 0) return;
  mark_in(frames[stack - 1].used_in, generation);
}

uint64_t name_string(std::string_view text, uint64_t generation) {
  text = text.substr(0, longest_text);
  if (text.empty()) return 0;
  size_t place = hash_of(text) % name_places;
  for (int looks = 0; looks < 64; ++looks, place = (place + 1) % name_places) {
    Name& name = names[place];
    const char* there = name.text.load(acquire);
    if (there == nullptr) {
      LockGuard guard(texts.lock);
      there = name.text.load(relaxed);
      if (there == nullptr) {
        there = keep(text);
        if (there == nullptr) return 0;
        name.size = static_cast<uint32_t>(text.size());
        name.text.store(there, release);
      }
    }
    if (std::string_view(there, name.size) != text) continue;
    mark_in(name.used_in, generation);
    return first_name_string + place;
  }
  return 0;
}

uint64_t new_string(std::string_view text, uint64_t generation, uint64_t time) {
  text = text.substr(0, longest_text);
  if (text.empty()) return 0;
  LockGuard guard(texts.lock);
  Buffer*& b = texts.messages;
  const size_t most = 1 + 2 * longest_varint + text.size();
  if (b == nullptr || b->generation != generation || b->used + most > Buffer::capacity) {
    b = next_buffer(no_m, b, generation, time);
    if (b == nullptr) return 0;
    b->data()[b->used++] = static_cast<uint8_t>(Table::strings);
  }
  uint8_t* at = b->data() + b->used;
  *at++ = static_cast<uint8_t>(Table::string);
  at = put_varint(at, ++texts.last_message);
  at = put_varint(at, text.size());
  std::memcpy(at, text.data(), text.size());
  b->used = static_cast<uint32_t>(at + text.size() - b->data());
  return texts.last_message;
}

void collect_texts(uint64_t open) {
  LockGuard guard(texts.lock);
  if (texts.messages == nullptr || texts.messages->generation == open) return;
  retire(texts.messages);
  texts.messages = nullptr;
}

void note_used(uint64_t generation, Used& used) {
  used = Used{};
  for (size_t i = 0; i < frame_places; ++i) {
    if (frames[i].used_in[generation & 1].load(acquire) == generation) add(used.frames, i);
  }
  for (size_t i = 0; i < name_places; ++i) {
    if (names[i].used_in[generation & 1].load(acquire) == generation) add(used.names, i);
  }
}

void write_tables(const Used& used, uint64_t generation, uint64_t time,
                  void (*f)(const void* bytes, size_t size)) {
  forget_unloaded();
  {
    TableWriter strings(generation, time, Table::strings, f);
    put_string(strings, yield_string, "runtime.Gosched");
    put_string(strings, preempted_string, "preempted");
    put_string(strings, stop_string, "gomaxprocs");
    for (int i = 0; i <= static_cast<int>(last_reason); ++i) {
      const auto reason = static_cast<WaitReason>(i);
      put_string(strings, reason_string(reason), reason_text(reason));
    }
    bool symbols_are_busy = false;
    for_each_frame(used, [&](size_t i, Frame& frame) {
      describe(frame, symbols_are_busy);
      put_string(strings, function_string(i), frame.place->function);
      if (!frame.place->file.empty()) put_string(strings, file_string(i), frame.place->file);
    });
    for (size_t i = 0; i < name_places; ++i) {
      if (!has(used.names, i)) continue;
      put_string(strings, first_name_string + i, {names[i].text.load(acquire), names[i].size});
    }
  }
  {
    TableWriter stacks(generation, time, Table::stacks, f);
    for_each_frame(used, [&](size_t i, const Frame& frame) {
      stacks.need(1 + 6 * longest_varint);
      stacks.byte(Table::stack);
      stacks.number(i + 1);
      stacks.number(1);  // frames
      stacks.number(frame.key.load(relaxed) & ~is_call);
      stacks.number(function_string(i));
      stacks.number(frame.place->file.empty() ? 0 : file_string(i));
      stacks.number(static_cast<uint64_t>(frame.place->line));
    });
  }
  TableWriter clock(generation, time, Table::frequency, f);
  clock.number(units_a_second);
}

}  // namespace gofer::internal::tracer
