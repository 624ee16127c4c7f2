// Taking and giving Ps: what an M, sysmon and a stop of the world do with them. See procs.cc.
#pragma once

#include "runtime/sched/sched.h"

namespace gofer::internal {

/// m holds p from now on; nobody else does.
void acquire_p(M* m, P* p);
/// m gives up its P, which the caller then has to put somewhere.
P* release_p(M* m);

// These five need the scheduler's lock.
void put_idle_p(P* p) GOFER_REQUIRES(sched.lock);
P* take_idle_p() GOFER_REQUIRES(sched.lock);
/// An idle one, or one that was given to a thread which is yet to be started. That may take long:
/// the thread that starts it may wait for a lock of libc whose owner waits for this very P.
P* take_unused_p() GOFER_REQUIRES(sched.lock);
/// p stops for the M that stops the world.
void stop_p_locked(P* p) GOFER_REQUIRES(sched.lock);
/// To the idle list, or stopped if the world is to stop.
void put_unused_p(P* p) GOFER_REQUIRES(sched.lock);

/// m takes the P that was sent to it (transition::sent).
void take_given_p(M* m);

/// For a P whose M cannot use it now.
void hand_off(P* p, Pass to = Pass::in_turn);
/// Hands the P of m, which is about to leave the runtime without one, to another M.
void give_up_p(M* m);

// These need the scheduler's lock.
/// There is a goroutine to which p can be passed on, and an M for it.
bool can_pass_on_locked(P* p, Pass to) GOFER_REQUIRES(sched.lock);
/// p goes to the next goroutine in the queues, after can_pass_on_locked.
Wakeup pass_on_locked(P* p, Pass to) GOFER_REQUIRES(sched.lock);
/// p goes to a goroutine that waits tied for one: its M, which is to be woken, or nullptr.
M* start_tied_locked(P* p) GOFER_REQUIRES(sched.lock);
/// p goes to the M whose own goroutine g is. That M is to be woken.
M* give_p_to_owner_locked(P* p, G* g) GOFER_REQUIRES(sched.lock);
/// g, taken out of the queue, does not wait for its own M any more. Returns that M.
M* untie_locked(G* g) GOFER_REQUIRES(sched.lock);

}  // namespace gofer::internal
