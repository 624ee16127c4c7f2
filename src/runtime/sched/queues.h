// The run queues of an M that has a P: the local queue of the P, which needs no lock, and the
// global queue behind it. The caller is the M that holds p.
#pragma once

#include "runtime/goroutines/transitions.h"
#include "runtime/process/settings.h"
#include "runtime/procs/spinning.h"
#include "runtime/sched/global_queue.h"

namespace gofer::internal {

/// Moves the older half of a full ring, and g, to the global queue under one lock; or puts g at the
/// tail of the ring, if thieves have made room meanwhile.
void put_overflow(P* p, G* g);

/// Puts g at the tail of the ring. If `next` is set, puts it into runnext instead, and the
/// goroutine that was there at the tail.
inline void put_local(P* p, G* g, bool next) {
  if (settings.gm) [[unlikely]] {
    put_global(g);
    return;
  }
  if (next) {
    G* displaced = p->queue.exchange_next(g);
    if (tracer::is_on()) tracer::became_next(p, g, displaced);
    if (displaced == nullptr) return;
    g = displaced;
  }
  if (!p->queue.put(g)) [[unlikely]]
    put_overflow(p, g);
}

/// Makes the waiting goroutines of the list runnable, at the tail of the queue of m's P. Wakes
/// another M only if the list has more than one goroutine.
void put_local(M* m, GQueue& list);

/// Moves everything from the local queue of p to the global queue.
void drain_local_locked(P* p) GOFER_REQUIRES(sched_lock);

/// Takes a goroutine from runnext, or from the ring. From runnext it shares the time slice, and
/// `inherits` is set.
inline G* take_local(P* p, bool& inherits) {
  if (G* g = p->queue.take_next(); g != nullptr) {
    inherits = true;
    return g;
  }
  inherits = false;
  return p->queue.get();
}

/// Makes a parked goroutine runnable: next on this P, or behind the others. The caller is inside,
/// or is a thread without a P and m is nullptr.
inline void ready(M* m, G* g, bool next = true) {
  if (m != nullptr) {
    transition::readied(m, g);
    put_local(m->p, g, next);
  } else {
    ready_globally(g);
  }
  wake_p();
}

}  // namespace gofer::internal
