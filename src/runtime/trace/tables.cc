#include "runtime/trace/tables.h"

#include <gofer/detail/spawn.h>

#include <cstring>
#include <string>

#include "debug/traceback.h"
#include "runtime/base/atomic.h"
#include "runtime/trace/events.h"
#include "runtime/trace/stream.h"
#include "runtime/trace/writer.h"

namespace gofer::internal::tracer {
namespace {

// The functions of goroutines, by address: open addressing, and entries only come. A stack's number
// is that of its place, so no two tables have to agree.
struct Function {
  atomic<uintptr_t> pc{0};
  atomic<uint64_t> used_in[2]{};  // the last generation that mentions it, by generation modulo 2
  std::string* name = nullptr;    // of the tracer's thread
};
constexpr size_t places = 1u << 14;
constinit Function functions[places];

uintptr_t entry_of(const G* g) {
  if (g->entry != detail::enter_member) return reinterpret_cast<uintptr_t>(g->entry);
  const auto* head = reinterpret_cast<const detail::member_head*>(g->closure);
  return reinterpret_cast<uintptr_t>(head->body);
}

uint64_t function_string(size_t place) { return 1000 + place; }

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

constexpr size_t longest_text = 1024;  // by the format

void put_string(TableWriter& out, uint64_t id, std::string_view text) {
  text = text.substr(0, longest_text);
  out.need(text.size() + 1 + 2 * longest_varint);
  out.byte(Table::string);
  out.number(id);
  out.text(text);
}

template <class F>
void for_each_used(uint64_t generation, F f) {
  for (size_t i = 0; i < places; ++i) {
    if (functions[i].used_in[generation & 1].load(acquire) == generation) f(i, functions[i]);
  }
}

}  // namespace

uint64_t stack_of_entry(const G* g) {
  const uintptr_t pc = entry_of(g);
  size_t place = (pc * 0x9e3779b97f4a7c15u) >> 50;
  for (int looks = 0; looks < 64; ++looks) {
    atomic<uintptr_t>& there = functions[place].pc;
    uintptr_t found = there.load(acquire);
    if (found == 0 && there.compare_exchange_strong(found, pc, acq_rel)) return place + 1;
    if (found == pc) return place + 1;
    place = (place + 1) % places;
  }
  return 0;
}

void mark_used(uint64_t stack, uint64_t generation) {
  if (stack == 0) return;
  atomic<uint64_t>& used = functions[stack - 1].used_in[generation & 1];
  if (used.load(relaxed) != generation) used.store(generation, release);
}

void write_tables(uint64_t generation, uint64_t time, void (*f)(const void* bytes, size_t size)) {
  {
    TableWriter strings(generation, time, Table::strings, f);
    put_string(strings, yield_string, "runtime.Gosched");
    put_string(strings, preempted_string, "preempted");
    put_string(strings, stop_string, "gomaxprocs");
    for (int i = 0; i <= static_cast<int>(last_reason); ++i) {
      const auto reason = static_cast<WaitReason>(i);
      put_string(strings, reason_string(reason), reason_text(reason));
    }
    for_each_used(generation, [&](size_t place, Function& function) {
      if (function.name == nullptr) {
        function.name = new std::string(describe_entry(function.pc.load(relaxed)));
      }
      put_string(strings, function_string(place), *function.name);
    });
  }
  {
    TableWriter stacks(generation, time, Table::stacks, f);
    for_each_used(generation, [&](size_t place, Function& function) {
      stacks.need(1 + 6 * longest_varint);
      stacks.byte(Table::stack);
      stacks.number(place + 1);
      stacks.number(1);  // frames
      stacks.number(function.pc.load(relaxed));
      stacks.number(function_string(place));
      stacks.number(0);  // file
      stacks.number(0);  // line
    });
  }
  TableWriter clock(generation, time, Table::frequency, f);
  clock.number(units_a_second);
}

}  // namespace gofer::internal::tracer
