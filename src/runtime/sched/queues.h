// The two run queues of an M that has a P: the P's own, without a lock, and the global one behind
// it. The callers hold p.
#pragma once

#include "runtime/goroutines/transitions.h"
#include "runtime/sched/sched.h"

namespace gofer::internal {

/// The older half of a full ring and g go to the global queue in one lock. False when thieves made
/// room in the meantime.
bool put_overflow(P* p, G* g);

/// next: as the one to run next (who was that goes to the tail), else at the tail.
inline void put_local(P* p, G* g, bool next) {
  if (sched.gm) [[unlikely]] {
    put_global(g);
    return;
  }
  if (next) {
    G* displaced = p->queue.exchange_next(g);
    if (tracer::is_on()) tracer::became_next(p, g, displaced);
    if (displaced == nullptr) return;
    g = displaced;
  }
  while (!p->queue.put(g)) {
    if (put_overflow(p, g)) return;
  }
}

/// Makes goroutines that wait runnable, at the tail of the queue of m's P. Wakes another M only if
/// the list has more than one goroutine.
void put_local(M* m, GQueue& list);

/// From runnext (then `inherits` is set: it shares the time slice) or the local ring.
inline G* take_local(P* p, bool& inherits) {
  if (G* g = p->queue.take_next(); g != nullptr) {
    inherits = true;
    return g;
  }
  inherits = false;
  return p->queue.get();
}

/// Makes a parked goroutine runnable, by a thread without a P. Under the scheduler's lock, so that
/// with the world stopped and the lock held no goroutine changes its state.
void ready_globally(G* g);
/// The same for one that such a thread has created.
void create_globally(G* g);

/// Makes a parked goroutine runnable, next on this P or behind the others. Inside, or with m ==
/// nullptr from a thread without a P.
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
