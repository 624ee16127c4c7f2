// M: a machine, an OS thread that executes goroutines while it holds a P.
//
// Its own stack is that of g0, on which the scheduler works; a goroutine's code runs on the
// goroutine's stack. Records of Ms are never freed, only used again.
#pragma once

#include <cstdint>
#include <new>

#include "os/futex.h"
#include "runtime/base/atomic.h"
#include "runtime/goroutines/g.h"
#include "runtime/metrics/sampler.h"
#include "runtime/procs/p.h"
#include "runtime/sched/sched_lock.h"

namespace gofer::internal {

struct Contest;       // runtime/wait/waiter.h
struct TraceRequest;  // runtime/report/trace_request.h
namespace tracer {
struct Stream;  // runtime/trace/stream.h
}

/// What is to be done with the stack that was just left, once its registers are saved. It runs
/// first thing on the next stack.
using CommitFn = void (*)(M* m, G* left);

/// The lock of a queue in which a waiter's record lies, and how to release it.
struct QueueLock {
  void (*unlock)(void* arg) = nullptr;
  void* arg = nullptr;
};

/// A place to sleep until another thread signals, once. The word is 0, 1 (signalled) or 2 (asleep);
/// only a sleeper costs the other side a system call.
class Note {
 public:
  void signal() {
    if (word_.exchange(1, seq_cst) == 2) os::futex_wake(&word_);
  }
  /// False when the time is over and nothing was said. Negative: no limit.
  bool wait(int64_t timeout_ns) {
    uint32_t expected = 0;
    if (!word_.compare_exchange_strong(expected, 2, seq_cst)) return consume();
    while (word_.load(acquire) == 2) {
      if (!os::futex_wait(&word_, 2, timeout_ns)) {
        expected = 2;
        if (word_.compare_exchange_strong(expected, 0, seq_cst)) return false;
      }
    }
    return consume();
  }

  /// Something has been said and not yet been taken.
  bool is_said() const { return word_.load(relaxed) == 1; }
  /// What has been said, without waiting for it.
  bool take() { return word_.load(relaxed) != 0 && consume(); }

 private:
  // An exchange, not a store: two threads may signal at the same time, and the second one's writes
  // must be visible to the thread that takes both signals.
  bool consume() {
    word_.exchange(0, seq_cst);
    return true;
  }
  atomic<uint32_t> word_{0};
};

/// What an M does first.
enum class Birth : uint8_t {
  with_p,        // runs the P that awaits it
  on_idle_list,  // sleeps: the runtime's first M, which is on the idle list already
  as_reserve,    // goes idle
  over,          // its thread runs
};

/// Why sysmon asks for a P.
enum class Preempt : uint8_t {
  slice,        // its goroutine has had its time slice: to the tail of the queue
  rotate,       // the same, and the P goes to a goroutine that waits tied: no thread more
  if_spinning,  // the same before its slice is over, if it is found to spin
  wake,         // a timer is due: to the front, with the rest of its slice
  surrender,    // its thread sleeps: the P goes, the thread stays as it is
};

inline constexpr uint32_t no_crowd = ~0u;

struct alignas(128) M {
  atomic<uint32_t> in_runtime{1};  // see p_word.h
  atomic<uint32_t> in_doubt{0};    // set by a taker: on entry the M checks p's word
  uint32_t id = 0;                 // from 1
  int32_t until_sample = 0;        // goroutines to be made runnable before: metrics/sampler.h
  P* p = nullptr;
  uint64_t p_word = 0;             // the word of p while this M holds it
  G* curg = nullptr;               // the goroutine on it; nullptr on g0
  G* left = nullptr;               // argument of commit
  StackHead* came_from = nullptr;  // the last stack left; for sanitizers only
  CommitFn commit = nullptr;
  QueueLock queue_lock;  // arguments of the parking commit
  Contest* early = nullptr;
  ExceptionState* exceptions = nullptr;  // of this thread
  G* handed = nullptr;                   // the next goroutine, if a direct switch could not do it
  bool spinning = false;                 // looks for work without having any
  bool on_idle_list = false;
  Birth birth GOFER_GUARDED_BY(sched_lock) = Birth::with_p;
  bool ends = false;  // its bound goroutine ended: so does the thread
  bool handed_inherits = false;
  bool timer_wakes_next = false;            // what a timer wakes first runs next: run_own_timers
  int64_t unannounced_timer_ns = no_timer;  // started here, and the sleeper does not know it
  atomic<int> tid{0};

  // Preemption and blocking calls: preempt.cc, blocking.cc.
  atomic<uint64_t> preempt_word{0};    // sysmon wants this hold of a P (p_word) to end; 0: none
  atomic<Preempt> preempt_kind{};      // why sysmon asks
  atomic<bool> signalled{false};       // a SIGURG of ours is on its way: signal_m
  atomic<uint32_t> lost_in{no_crowd};  // its P was taken, which it has not noticed: its place in
                                       // the crowd in which it sleeps (thread_gate.h)
  atomic<int64_t> lost_cpu_ns{-1};     // its processor time then; -1: not known
  int64_t used_without_p_ns = 0;       // of that budget, before the call that was announced
  atomic<bool> paused{false};          // between two instructions of the program: preempt_here
  bool spins = false;                  // it was paused while it waited for another thread, spinning
  atomic<int> resumed{0};              // times that its goroutine was paused and went on
  int32_t budget = 0;                  // what the P's was then
  uint64_t tied_at GOFER_GUARDED_BY(sched_lock) = 0;  // its place among those in the global queue
  atomic<uint32_t> surrenders_in{no_crowd};  // the crowd of one that is asked to surrender its P
  int64_t paused_ns GOFER_GUARDED_BY(sched_lock) = 0;  // since when its goroutine waits tied
  atomic<bool> released{false};     // a paused M is to go on without a P: release_paused
  atomic<bool> let_go{false};       // the same: the process ends
  atomic<uint64_t> blocking_at{0};  // announced a blocking call: P::switches then, plus 1
  atomic<bool> checks{false};       // its goroutine has called checkpoint() of late
  uintptr_t* guard GOFER_GUARDED_BY(sched_lock) = nullptr;  // see prologue.h

  G* own_g = nullptr;                              // the only goroutine it may run
  atomic<P*> next_p{nullptr};                      // set by the M that wakes it
  atomic<bool> waits_for_p{false};                 // in wait_for_p
  atomic<bool> polls{false};                       // sleeps in the netpoller
  int last_cpu GOFER_GUARDED_BY(sched_lock) = -1;  // the core that it was on when it went to sleep
  /// In the idle or the free list, or in the list of those whose threads are to start.
  M* link GOFER_GUARDED_BY(sched_lock) = nullptr;
  M* back_link GOFER_GUARDED_BY(sched_lock) = nullptr;  // in the idle list
  Note note;

  Sampling sampling;
  SampledSlice slice;

  atomic<TraceRequest*> trace_request{nullptr};  // a dumper asks where its goroutine is
  const void* interrupted = nullptr;  // while the signal's handler pauses it: the context

  atomic<tracer::Stream*> stream{nullptr};  // what it writes into a trace; stays with the record

  const void* base = nullptr;  // where its own stack begins, about
  StackHead g0;                // its own stack, on which the scheduler works

  uintptr_t signal_stack = 0;  // the lowest address of it, for checks
  size_t signal_stack_size = 0;

  /// For the next thread. Others may look at the record meanwhile, so it is not made anew.
  void reset() GOFER_REQUIRES(sched_lock) {
    in_runtime.store(1, relaxed);
    p = nullptr;
    p_word = 0;
    curg = left = handed = own_g = nullptr;
    commit = nullptr;
    spinning = on_idle_list = ends = handed_inherits = false;
    resumed.store(0, relaxed);
    birth = Birth::with_p;
    tid.store(0, relaxed);
    preempt_word.store(0, relaxed);
    signalled.store(false, relaxed);
    blocking_at.store(0, relaxed);
    next_p.store(nullptr, relaxed);
    slice.begin_ns = 0;
    waits_for_p.store(false, relaxed);
    ::new (&g0) StackHead;
  }
};

/// m, which holds p, is in a call that it has announced: since then no goroutine has run on p.
inline bool in_announced_call(const M* m, const P* p) {
  return m->blocking_at.load(relaxed) == p->switches.load(relaxed) + 1;
}

}  // namespace gofer::internal
