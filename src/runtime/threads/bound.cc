// Ms that may run one goroutine only, and wait on their own threads until it gets a P: the
// goroutine is bound by lock_os_thread(), or tied, because its thread was paused or lost its P.
#include "runtime/threads/bound.h"

#include "os/thread.h"
#include "runtime/goroutines/spawn.h"
#include "runtime/procs/procs.h"
#include "runtime/procs/spinning.h"
#include "runtime/procs/stop_world.h"
#include "runtime/report/deadlock.h"
#include "runtime/report/panic.h"
#include "runtime/report/trace_request.h"
#include "runtime/sched/sched_lock.h"
#include "runtime/threads/idle.h"
#include "runtime/threads/threads.h"
#include "runtime/threads/transitions.h"
#include "runtime/wait/coarse_clock.h"

namespace gofer::internal {

constinit int idle_bound_ms = 0;

bool wait_for_p(M* m) {
  bool run_waits;
  int64_t look_ns;
  {
    LockGuard guard(sched_lock);
    ++idle_bound_ms;
    // It is on no list, so no M can tell it to watch later: it looks now and then in any case.
    run_waits = goroutines.runs.load(relaxed) != 0;
    look_ns = should_watch_locked() ? first_deadlock_look_ns : last_deadlock_look_ns / 8;
  }
  transition::waits_for_p(m);
  while (m->next_p.load(acquire) == nullptr) {
    if (m->trace_request.load(seq_cst) != nullptr) answer_trace_request(m, m->interrupted);
    if (m->let_go.load(seq_cst)) return false;
    if (m->released.load(seq_cst)) {
      transition::stopped_waiting(m);
      return false;
    }
    const bool no_thread = threads.no_thread_until_ns.load(seq_cst) != 0;
    int64_t timeout = run_waits ? look_ns : -1;
    if (no_thread) timeout = thread_retry_ns;
    if (m->note.wait(timeout)) continue;
    if (no_thread) {
      try_threads_again();
    } else {
      check_deadlock();
      look_ns = next_deadlock_look(look_ns);
    }
  }
  transition::stopped_waiting(m);
  set_coarse_clock(os::now_ns());
  take_given_p(m);
  return true;
}

void stop_bound_m(M* m) {
  announce_timer(m);
  if (m->p != nullptr) hand_off(release_p(m));
  while (!wait_for_p(m)) os::sleep_for_ever();
}

void start_bound_m(M* m, G* g) {
  P* p = release_p(m);
  M* owner;
  {
    LockGuard guard(sched_lock);
    owner = give_p_to_owner_locked(p, g);
  }
  owner->note.signal();
}

bool stop_for_world(M* m) {
  {
    LockGuard guard(sched_lock);
    if (!world.stopping.load(relaxed)) return true;
    stop_spinning(m);
    put_unused_p(release_p(m));
  }
  return stop_m(m);
}

}  // namespace gofer::internal
