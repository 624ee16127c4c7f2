// P: a processor, the right to execute goroutines. GOMAXPROCS of them exist, and each has what an M
// needs to do so without locks: a run queue, free records, free stacks, a range of ids.
//
// Fields without another word belong to the M that holds the P (see p_word.h), and are touched only
// while that M is inside the runtime; atomics among them are written by the holder alone and may
// be read by anyone for reports.
#pragma once

#include <cstdint>

#include "runtime/base/atomic.h"
#include "runtime/goroutines/g.h"
#include "runtime/metrics/histogram.h"
#include "runtime/procs/p_word.h"
#include "runtime/sched/run_queue.h"
#include "runtime/stacks/stack.h"
#include "runtime/wait/timer.h"

namespace gofer::internal {

struct M;

/// The numbers are Go's. syscall is the state of a P whose M announced a blocking call.
enum class PStatus : uint32_t { idle = 0, running = 1, syscall = 2, gcstop = 3, dead = 4 };

/// Goroutines that may follow each other directly, before the scheduler looks at the global queue.
inline constexpr int32_t switches_per_look = 61;

struct alignas(128) P {
  atomic<uint64_t> word{0};            // PWord
  atomic<bool> preempt{false};         // set by anyone: go through the scheduler at the next switch
  int32_t budget = switches_per_look;  // direct switches left
  atomic<uint32_t> schedtick{0};       // goroutines scheduled, those that inherit the slice aside
  uint32_t id = 0;
  atomic<PStatus> status{PStatus::gcstop};
  uint32_t random = 1;

  uint64_t next_id = 0;  // goroutine ids of this P's own: [next_id, last_id)
  uint64_t last_id = 0;
  atomic<uint64_t> created{0};  // goroutines created here
  atomic<uint64_t> ended{0};    // goroutines that ended here

  atomic<uint64_t> started{0};
  atomic<uint64_t> switches{0};
  atomic<uint64_t> steals{0};
  atomic<uint64_t> stolen{0};

  atomic<uint32_t> syscalltick{0};  // blocking calls announced
  // Of the goroutine that was resumed when schedtick was slice_tick, by who resumed it on its own
  // thread; for all others sysmon takes the time at which it first saw them.
  atomic<uint32_t> slice_tick{0};
  atomic<int64_t> slice_start_ns{0};  // less than resumed_ns if it had run before in this slice
  atomic<int64_t> resumed_ns{0};

  GFreeList free_gs;
  StackCache stacks;

  P* link = nullptr;        // in a list of Ps, under the scheduler's lock
  M* taken_from = nullptr;  // while the world is stopped: the M that may get it back

  RunQueue<G> queue;
  TimerHeap timers;  // has a lock of its own

  uint64_t traced_in = 0;    // the last generation of a trace that mentions it: trace/writer.h
  uint64_t trace_count = 0;  // its events in that generation

  atomic<uint64_t> asked_yields{0};  // times that a goroutine gave way because of `preempt`
  Histogram latencies;               // samples, from runnable to running: metrics/sampler.h
  Histogram slices;                  // samples, from then until it left the P
};

/// A counter that only the P's holder writes.
template <class T>
[[gnu::always_inline]] inline void bump(atomic<T>& counter, T by = 1) {
  counter.store(counter.load(relaxed) + by, relaxed);
}

inline uint32_t next_random(P* p) {
  uint32_t x = p->random;
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  p->random = x;
  return x;
}

}  // namespace gofer::internal
