// The global run queue: goroutines that any P may take, and goroutines that wait for a P on their
// own threads. queues.h has the moves between it and the local queues of Ps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/atomic.h"
#include "runtime/procs/p.h"
#include "runtime/sched/g_queue.h"
#include "runtime/sched/sched_lock.h"

namespace gofer::internal {

/// Writes need the scheduler's lock. The atomics may be read without it.
struct alignas(64) GlobalQueue {
  // The four queues. A goroutine is in one of them.
  /// They were woken while every P was busy, and come before the others.
  GQueue urgent GOFER_GUARDED_BY(sched_lock);
  /// Woken like those, but it is not known whether they are short (G::is_short).
  GQueue untried GOFER_GUARDED_BY(sched_lock);
  GQueue ordinary GOFER_GUARDED_BY(sched_lock);
  /// They wait for a P on their own threads, and have their turns with the ordinary ones.
  GQueue tied GOFER_GUARDED_BY(sched_lock);

  /// Of the tied ones, those that were paused while they spun.
  uint32_t tied_spinning GOFER_GUARDED_BY(sched_lock) = 0;
  /// How many goroutines were ever put at the tail of `ordinary`.
  uint64_t pushed GOFER_GUARDED_BY(sched_lock) = 0;
  /// Turns of tied goroutines while they are crowded, and while some of them spin.
  uint32_t turns GOFER_GUARDED_BY(sched_lock) = 0;
  uint32_t spinner_turns GOFER_GUARDED_BY(sched_lock) = 0;
  /// Since when others wait for the urgent ones; 0 if none do.
  int64_t urgent_since_ns GOFER_GUARDED_BY(sched_lock) = 0;
  /// When others have waited for too long, the untried ones are next, and not the ordinary ones.
  bool untrieds_turn GOFER_GUARDED_BY(sched_lock) = false;
  /// How often the first of the tied ones may be passed over.
  int passes_left GOFER_GUARDED_BY(sched_lock) = 0;

  atomic<uint32_t> urgent_size{0};
  atomic<uint32_t> untried_size{0};
  atomic<bool> spinner_waits{false};  // a spinning and another goroutine wait tied
  atomic<bool> most_tied_spin{false};
  atomic<uint32_t> size{0};       // of all four
  atomic<uint32_t> tied_size{0};  // tied goroutines, and paused ones that are bound
};

[[gnu::visibility("hidden")]] extern GlobalQueue global_queue;

/// Puts g behind all others.
void put_global(G* g);
void put_global_locked(G* g) GOFER_REQUIRES(sched_lock);
/// Readies a parked goroutine, or creates one, for a thread without a P, and puts it behind all
/// others. The state changes under the lock: while the world is stopped and the lock is held, no
/// goroutine changes its state.
void ready_globally(G* g);
void create_globally(G* g);
/// Puts the goroutines of the list, which are runnable, behind all others, and empties it.
void append_global_locked(GQueue& list) GOFER_REQUIRES(sched_lock);
/// Puts g before all others but the urgent ones.
void put_global_front(G* g);
void put_global_front_locked(G* g) GOFER_REQUIRES(sched_lock);
/// Makes the waiting goroutines of the list runnable, and empties it. `by` is the M that found
/// them, or nullptr. If `urgent` is set, they come before all others.
void put_global_locked(M* by, GQueue& list, bool urgent) GOFER_REQUIRES(sched_lock);

/// While it lives, the goroutines that the calling thread readies without a P are urgent.
class UrgentThread {
 public:
  UrgentThread();
  ~UrgentThread();
  UrgentThread(const UrgentThread&) = delete;
  UrgentThread& operator=(const UrgentThread&) = delete;
};

/// Takes a batch of goroutines, of `max` at most; 0 means a fair share. Returns the first one, and
/// puts the others into the ring of p.
G* take_global(P* p, uint32_t max) GOFER_REQUIRES(sched_lock);
/// How many goroutines are in the queue, and the one that is next.
size_t global_count_locked() GOFER_REQUIRES(sched_lock);
G* next_global_locked() GOFER_REQUIRES(sched_lock);

/// g waits for a P on its own thread. If `front` is set, it comes before all that wait so.
void put_tied_locked(G* g, bool front) GOFER_REQUIRES(sched_lock);
/// Takes out the first goroutine that waits so and for which `wanted` returns true.
G* take_tied_if(bool (*wanted)(G* g, void* arg), void* arg) GOFER_REQUIRES(sched_lock);
/// Takes out the next goroutine that waits so. Returns nullptr if there is none.
G* take_tied_locked() GOFER_REQUIRES(sched_lock);
/// Whether a goroutine waits so that was not paused while it spun.
bool has_unspinning_tied_locked() GOFER_REQUIRES(sched_lock);

}  // namespace gofer::internal
