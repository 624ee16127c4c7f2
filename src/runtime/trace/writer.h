// Writing one event or some into a stream, in the order that the rules of the format ask for.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string_view>

#include "runtime/goroutines/g.h"
#include "runtime/procs/p.h"
#include "runtime/trace/clock.h"
#include "runtime/trace/events.h"
#include "runtime/trace/session.h"
#include "runtime/trace/stacks.h"
#include "runtime/trace/stream.h"
#include "runtime/trace/tables.h"

namespace gofer::internal::tracer {

inline uint8_t* put_varint(uint8_t* at, uint64_t value) {
  while (value >= 0x80) {
    *at++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *at++ = static_cast<uint8_t>(value);
  return at;
}
inline constexpr size_t longest_varint = 10;

/// G::trace: a mark for the generation in which the goroutine was mentioned last, and the number of
/// its last event in that generation.
inline constexpr uint32_t count_bits = 24;
inline constexpr uint32_t count_mask = (1u << count_bits) - 1;
inline constexpr uint32_t marks = 255;  // 0: never mentioned
inline uint32_t mark_of(uint64_t generation) {
  return static_cast<uint32_t>(generation % marks + 1) << count_bits;
}

/// A stream while it belongs to the calling thread.
class Writer {
 public:
  explicit Writer(Stream& stream) : Writer(stream, session.generation.load(acquire)) {}
  Writer(Stream& stream, uint64_t generation) : s_(stream), generation_(generation), time_(0) {
    if (generation_ != 0) time_ = now();
  }

  /// False: no trace is being recorded (any more).
  explicit operator bool() const { return generation_ != 0; }
  Stream& stream() { return s_; }
  uint64_t generation() const { return generation_; }

  template <class... Args>
  void event(Event kind, Args... args) {
    append(s_.events, false, static_cast<uint8_t>(kind), args...);
  }

  /// One of Gofer's own.
  template <class... Args>
  void record(Record kind, Args... args) {
    constexpr unsigned count = sizeof...(Args);
    append(s_.records, true, static_cast<uint8_t>(static_cast<unsigned>(kind) | count << 5),
           args...);
  }

  /// The state of the M, if this generation does not have it yet. Before anything else.
  void state() {
    if (s_.stated_in != generation_) [[unlikely]]
      write_state();
  }

  /// The goroutine or P, if this generation does not have it yet.
  void mention(G* g, GoStatus status, uint64_t m = no_m) {
    const uint32_t mark = mark_of(generation_);
    if ((g->trace.load(relaxed) & ~count_mask) == mark) return;
    g->trace.store(mark, relaxed);
    event(Event::go_status, g->id, m, static_cast<uint64_t>(status));
  }
  void mention(P* p, ProcStatus status) {
    if (p->traced_in == generation_) return;
    p->traced_in = generation_;
    p->trace_count = 0;
    event(Event::proc_status, p->id, static_cast<uint64_t>(status));
  }
  /// A goroutine that is older than the trace: with its function, which no creation tells.
  void mention_old(G* g, GoStatus status, uint64_t m = no_m) {
    const uint64_t stack = stack_of_entry(g);
    mark_used(stack, generation_);
    g->trace.store(mark_of(generation_), relaxed);
    event(Event::go_status_stack, g->id, m, static_cast<uint64_t>(status), stack);
  }
  /// A goroutine that this generation creates.
  void mention_new(G* g) { g->trace.store(mark_of(generation_), relaxed); }

  /// The number of a text in this generation's tables. name: the same text will come again.
  uint64_t name(std::string_view text) {
    const uint64_t number = name_string(text, generation_);
    return number != 0 ? number : new_string(text, generation_, time_);
  }
  uint64_t text(std::string_view text) { return new_string(text, generation_, time_); }

  /// The number of a stack that an event has; nullptr: none.
  uint64_t use(Stack* stack) {
    if (stack == nullptr) return 0;
    mark_in(stack->used_in, generation_);
    return stack->id;
  }

  /// The number of the next event of g or p.
  uint64_t count(G* g) {
    const uint32_t next = g->trace.load(relaxed) + 1;
    if ((next & count_mask) == count_mask) [[unlikely]]
      fail_for_count();
    g->trace.store(next, relaxed);
    return next & count_mask;
  }
  uint64_t count(P* p) { return ++p->trace_count; }

  // --- What changes the state of the M.

  /// The goroutine is in a system call.
  void begin_call(Stack* stack = nullptr) {
    event(Event::go_syscall_begin, count(s_.p), use(stack));
    s_.in_call = true;
  }
  /// It is not, and the M has its P.
  void end_call() {
    event(Event::go_syscall_end);
    s_.in_call = false;
  }
  /// The M can write what a running goroutine does.
  void need_running() {
    if (s_.in_call && s_.p != nullptr) end_call();
  }
  /// The P was taken from the M, whose goroutine is in a call from now on.
  void lose_p() {
    P* p = s_.p;
    if (p == nullptr) return;
    if (s_.g == nullptr) {
      stop_p();
      return;
    }
    if (!s_.in_call) begin_call();
    event(Event::proc_steal, p->id, count(p), s_.m);
    s_.p = nullptr;
  }
  /// The M gives up its P.
  void stop_p() {
    if (s_.p == nullptr) return;
    if (s_.g != nullptr && !s_.in_call) begin_call();
    event(Event::proc_stop);
    s_.p = nullptr;
  }
  void start_p(P* p) {
    lose_p();
    mention(p, ProcStatus::idle);
    event(Event::proc_start, p->id, count(p));
    s_.p = p;
  }
  void start_g(G* g) {
    mention(g, GoStatus::runnable);
    event(Event::go_start, g->id, count(g));
    s_.g = g;
    s_.in_call = false;
  }
  /// The goroutine is in a call without a P, and becomes runnable.
  void end_call_without_p() {
    event(Event::go_syscall_end_blocked);
    s_.g = nullptr;
    s_.in_call = false;
  }
  /// The M has got a P, and g goes on.
  void go_on(G* g) {
    if (s_.g == g && !s_.in_call) return;
    if (s_.g != nullptr) end_call_without_p();
    start_g(g);
  }

 private:
  template <class... Args>
  void append(Buffer*& buffer, bool records, uint8_t kind, Args... args) {
    constexpr size_t most = 1 + longest_varint * (1 + sizeof...(Args));
    Buffer* b = buffer;
    if (b == nullptr || b->generation != generation_ || b->used + most > Buffer::capacity)
        [[unlikely]] {
      b = buffer = next_buffer(s_.m, b, generation_, time_);
      if (b == nullptr) return;
      if (records) begin_records(b);
    }
    uint8_t* at = b->data() + b->used;
    *at++ = kind;
    // A clock that goes back, on another core, does not.
    const uint64_t elapsed = time_ > b->last_time ? time_ - b->last_time : 0;
    b->last_time += elapsed;
    at = put_varint(at, elapsed);
    ((at = put_varint(at, static_cast<uint64_t>(args))), ...);
    b->used = static_cast<uint32_t>(at - b->data());
  }

  void write_state();
  static void begin_records(Buffer* b);
  static void fail_for_count();

  Stream& s_;
  uint64_t generation_;
  uint64_t time_;
};

/// The M is inside of the runtime while this lives, so that no signal pauses it. It may have been
/// outside, and may have lost its P. The tracer goes by the stream and not by the P word, so the
/// takers of Ps (p_word.h) need not know of this entry.
class InsideTrace {
 public:
  explicit InsideTrace(M* m) : m_(m), was_inside_(m->in_runtime.load(relaxed)) {
    if (was_inside_ == 0) m->in_runtime.store(1, relaxed);
    compiler_barrier();
  }
  ~InsideTrace() {
    if (was_inside_ == 0) m_->in_runtime.store(0, release);
  }
  InsideTrace(const InsideTrace&) = delete;
  InsideTrace& operator=(const InsideTrace&) = delete;

 private:
  M* m_;
  uint32_t was_inside_;
};

/// The stream of m, on its thread.
class OwnStream {
 public:
  explicit OwnStream(M* m) : inside_(m), s_(stream_of(m)) {
    if (s_ != nullptr) {
      begin_writing(*s_);
    } else {
      fail(ENOMEM);
    }
  }
  ~OwnStream() {
    if (s_ != nullptr) end_writing(*s_);
  }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  Stream* get() const { return s_; }

 private:
  InsideTrace inside_;
  Stream* s_;
};

/// Calls f(writer) with the stream of m, or with that of the foreign threads if m is nullptr, if a
/// trace is being recorded.
template <class F>
inline void write_as(M* m, F&& f) {
  if (m == nullptr) {
    LockGuard guard(foreign_lock);
    if (Writer w(foreign); w) f(w);
    return;
  }
  const OwnStream own(m);
  if (own.get() == nullptr) return;
  Writer w(*own.get());
  if (!w) return;
  w.state();
  f(w);
}

}  // namespace gofer::internal::tracer
