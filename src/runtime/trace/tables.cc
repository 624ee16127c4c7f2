#include "runtime/trace/tables.h"

#include <cstring>
#include <string>

#include "debug/traceback.h"
#include "os/memory.h"
#include "runtime/base/atomic.h"
#include "runtime/goroutines/spawn.h"
#include "runtime/trace/stack_tables.h"
#include "runtime/trace/stacks.h"
#include "runtime/trace/stream.h"
#include "runtime/trace/table_writer.h"

namespace gofer::internal::tracer {
namespace {

// Numbers of strings: the fixed ones, then those of functions and names by their places, then those
// of other stacks (stack_tables.h) and of messages.
constexpr uint64_t first_function_string = 1u << 10;
constexpr uint64_t first_name_string = 1u << 16;
constexpr uint64_t first_message_string = 1u << 20;

// Stacks of one frame, by address: open addressing, and entries only come. A stack's number is that
// of its place after those of all other stacks (stacks.h), so no two tables have to agree.
struct Frame {
  atomic<uintptr_t> key{0};       // the address, and perhaps is_call
  atomic<uint64_t> used_in[2]{};  // the last generation that mentions it, by generation modulo 2
  Place* place = nullptr;         // of the tracer's thread
};
constexpr uintptr_t is_call = uintptr_t{1} << 63;
constexpr uint64_t first_frame_stack = most_stacks + 1;
constinit Frame frames[frame_places];

uint64_t function_string(size_t place) { return first_function_string + 2 * place; }
uint64_t file_string(size_t place) { return function_string(place) + 1; }

// Names of tasks, regions and the like; also open addressing.
struct Name {
  atomic<const char*> text{nullptr};
  uint32_t size = 0;  // written before the text
  atomic<uint64_t> used_in[2]{};
};
constinit Name names[name_places];

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
    case WaitReason::panic_wait:
      return "forever";
    case WaitReason::semacquire:
      return "sync.Semaphore.Acquire";
    default:
      return wait_reason_text(reason);
  }
}

constexpr WaitReason last_reason = WaitReason::panic_wait;

uint64_t stack_of(uintptr_t key) {
  size_t place = (key * 0x9e3779b97f4a7c15u) >> 50;
  for (int looks = 0; looks < 64; ++looks) {
    atomic<uintptr_t>& there = frames[place].key;
    uintptr_t found = there.load(acquire);
    if (found == 0 && there.compare_exchange_strong(found, key, acq_rel)) {
      return first_frame_stack + place;
    }
    if (found == key) return first_frame_stack + place;
    place = (place + 1) % frame_places;
  }
  return 0;
}

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
  forget_described_stacks();
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
  mark_in(frames[stack - first_frame_stack].used_in, generation);
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
  for_each_stack([&](const Stack& stack) {
    if (stack.used_in[generation & 1].load(acquire) == generation) add(used.stacks, stack.id);
  });
}

void write_tables(const Used& used, uint64_t generation, uint64_t time,
                  void (*f)(const void* bytes, size_t size)) {
  forget_unloaded();
  static uint64_t pass = 0;
  ++pass;
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
    write_stack_strings(strings, used, pass);
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
      stacks.number(first_frame_stack + i);
      stacks.number(1);                        // frames
      stacks.number(frame.key.load(relaxed));  // other frames may show the address in other ways
      stacks.number(function_string(i));
      stacks.number(frame.place->file.empty() ? 0 : file_string(i));
      stacks.number(static_cast<uint64_t>(frame.place->line));
    });
    write_stacks(stacks, used, pass);
  }
  TableWriter clock(generation, time, Table::frequency, f);
  clock.number(units_a_second);
}

}  // namespace gofer::internal::tracer
