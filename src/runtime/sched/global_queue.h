// The global run queue: goroutines that any P may take, and goroutines that wait for a P on their
// own threads. queues.h has the moves between it and the local queues of Ps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/procs/p.h"
#include "runtime/sched/g_queue.h"
#include "runtime/sched/sched_lock.h"

namespace gofer::internal {

/// Puts g behind all others.
void put_global(G* g);
void put_global_locked(G* g) GOFER_REQUIRES(sched_lock);
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

/// Moves everything from the local queue of p to the global queue.
void drain_local_locked(P* p) GOFER_REQUIRES(sched_lock);

}  // namespace gofer::internal
