// Ps in motion: which M holds one, which are idle, and how one goes from M to M. See procs.cc.
#pragma once

#include "runtime/procs/p_table.h"
#include "runtime/procs/spinning.h"
#include "runtime/sched/sched_lock.h"
#include "runtime/threads/threads.h"

namespace gofer::internal {

/// The idle Ps, linked by P::link. wake_state.idle_p_count counts them.
[[gnu::visibility("hidden")]] extern P* idle_ps GOFER_GUARDED_BY(sched_lock);

/// Whether every P is idle.
inline bool all_idle() {
  return wake_state.idle_p_count.load(seq_cst) == p_table.in_use.load(relaxed);
}

/// m holds p from now on; no other M does.
void acquire_p(M* m, P* p);
/// m gives up its P, which the caller then has to put somewhere.
P* release_p(M* m);
/// m takes the P that was sent to it (transition::sent).
void take_given_p(M* m);

void put_idle_p(P* p) GOFER_REQUIRES(sched_lock);
P* take_idle_p() GOFER_REQUIRES(sched_lock);
/// Takes an idle P whose queue is not empty, or any idle P if the global queue is not empty.
P* take_idle_p_with_work() GOFER_REQUIRES(sched_lock);
/// Moves the free stacks of all idle Ps to the pool. Returns how many.
int drain_idle_stacks() GOFER_REQUIRES(sched_lock);
/// Takes an idle P, or one that was given to a thread which is yet to be started. The start of a
/// thread may take long: it may wait for a lock of libc whose owner waits for this very P.
P* take_unused_p() GOFER_REQUIRES(sched_lock);
/// p stops for the M that stops the world.
void stop_p_locked(P* p) GOFER_REQUIRES(sched_lock);
/// Puts p on the idle list, or stops it if the world is to stop.
void put_unused_p(P* p) GOFER_REQUIRES(sched_lock);

/// To which goroutine a P goes from one that keeps its thread.
enum class Pass : uint8_t {
  in_turn,    // to the next one in the queues
  to_tied,    // to one that waits tied, if there is one
  to_urgent,  // to one that was just woken; after it, if tied ones crowd, to those
};

/// Gives p, whose M cannot use it now, to another M.
void hand_off(P* p, Pass to = Pass::in_turn);
/// Gives the P of m, which is about to leave the runtime without one, to another M.
void give_up_p(M* m);

/// Whether there is a goroutine to which p can be passed on, and an M for it.
bool can_pass_on_locked(P* p, Pass to) GOFER_REQUIRES(sched_lock);
/// After can_pass_on_locked: p goes to the next goroutine in the queues.
Wakeup pass_on_locked(P* p, Pass to) GOFER_REQUIRES(sched_lock);
/// p goes to a goroutine that waits tied for one. Returns its M, which the caller wakes, or
/// nullptr.
M* start_tied_locked(P* p) GOFER_REQUIRES(sched_lock);
/// p goes to the M whose own goroutine g is. Returns that M, which the caller wakes.
M* give_p_to_owner_locked(P* p, G* g) GOFER_REQUIRES(sched_lock);
/// g was taken out of the queue, and does not wait for its own M any more. Returns that M.
M* untie_locked(G* g) GOFER_REQUIRES(sched_lock);

}  // namespace gofer::internal
