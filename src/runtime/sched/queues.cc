// The moves between the local queue of a P and the global queue.
#include "runtime/sched/queues.h"

#include "runtime/procs/spinning.h"
#include "runtime/sched/global_queue.h"

namespace gofer::internal {

namespace {

// False: thieves have made room meanwhile.
bool move_half(P* p, G* g) {
  G* batch[decltype(p->queue)::capacity / 2 + 1];
  const uint32_t n = p->queue.take_half_of_full(batch);
  if (n == 0) return false;
  GQueue list;
  for (uint32_t i = 0; i < n; ++i) list.push_back(batch[i]);
  list.push_back(g);
  LockGuard guard(sched_lock);
  append_global_locked(list);
  return true;
}

}  // namespace

void put_overflow(P* p, G* g) {
  while (!move_half(p, g) && !p->queue.put(g)) {
  }
}

void put_local(M* m, GQueue& list) {
  const bool share = list.count() > 1;
  while (G* g = list.pop_front()) {
    transition::readied(m, g);
    put_local(m->p, g, false);
  }
  if (share) wake_p();
}

void drain_local_locked(P* p) {
  bool inherits;
  while (G* g = take_local(p, inherits)) put_global_locked(g);
}

}  // namespace gofer::internal
