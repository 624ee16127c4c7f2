#include "runtime/wait/park.h"

#include <new>
#include <utility>

#include "os/thread.h"
#include "runtime/base/debug_table.h"
#include "runtime/base/sanitizer.h"
#include "runtime/process/exit.h"
#include "runtime/process/process_state.h"
#include "runtime/process/start.h"
#include "runtime/report/deadlock.h"
#include "runtime/report/panic.h"
#include "runtime/sched/global_queue.h"
#include "runtime/sched/queues.h"
#include "runtime/sched/switch.h"
#include "runtime/wait/timer.h"
#include "runtime/wait/waiter.h"

namespace gofer::internal {
namespace {

// The thread that runs the exit handlers parks. No other thread would see that its wait can never
// end.
void park_exiting_thread(Parker* parker) {
  int64_t look_ns = first_deadlock_look_ns;
  while (!parker->note.wait(look_ns)) {
    check_deadlock();
    look_ns = next_deadlock_look(look_ns);
  }
}

// A foreign thread parks without a deadline.
void park_thread(Waiter& w, QueueLock lock) {
  if (process.forked.load(relaxed)) used_after_fork();
  // The thread counts itself before a waker can find it, and the waker discounts it: so the count
  // never includes a thread that is on its way.
  if (!w.counted) w.counted = true;  // one that can be woken already must not be written to
  parked_threads.fetch_add(1, relaxed);
  Parker* parker = w.thread;
  lock.unlock(lock.arg);
  if (is_exiting_thread()) {
    park_exiting_thread(parker);
    return;
  }
#ifdef GOFER_TSAN
  constexpr int64_t signals_wait_ns = 10'000'000;
  while (!parker->note.wait(signals_wait_ns)) sanitizer_let_signals_in();
#else
  parker->note.wait(-1);
#endif
}

bool park_thread_until(Waiter& w, QueueLock lock, int64_t deadline_ns) {
  if (process.forked.load(relaxed)) used_after_fork();
  Parker* parker = w.thread;
  lock.unlock(lock.arg);
  for (;;) {
    const int64_t now = os::now_ns();
    if (now >= deadline_ns) break;
    if (parker->note.wait(deadline_ns - now)) return true;
  }
  Waiter time;
  time.contest = w.contest;
  if (claim(&time)) return false;
  parker->note.wait(-1);  // the winner of the contest is about to wake this thread
  return true;
}

struct TimeLimit {
  Timer timer;
  Waiter waiter;  // claims the contest for the time
};

bool claim_for_time(Timer* t) { return claim(static_cast<Waiter*>(t->arg)); }

// Of the goroutines that are due at the same time, the first runs next and the others go to the
// tail of the queue, in the order of their times. But a short goroutine does not wait behind
// goroutines of which some may compute.
void wake_by_time(M* m, Timer* t) {
  G* g = wake_thread_or_get(static_cast<Waiter*>(t->arg));
  if (g == nullptr) return;
  if (m != nullptr && m->p->queue.size() != 0 && g->is_short()) {
    const UrgentThread urgent;
    ready(nullptr, g);
  } else {
    ready(m, g, m != nullptr && std::exchange(m->timer_wakes_next, false));
  }
}

bool park_goroutine_until(M* m, Waiter& w, WaitReason reason, QueueLock lock, int64_t deadline_ns) {
  Contest* contest = w.contest;
  TimeLimit limit;
  limit.waiter.g = w.g;
  limit.waiter.contest = contest;
  limit.timer.claim = claim_for_time;
  limit.timer.run = wake_by_time;
  limit.timer.arg = &limit.waiter;
  if (!start_timer(m, &limit.timer, deadline_ns, true)) {
    fatal_error("out of memory: a goroutine cannot wait for a time");
  }
  park_goroutine(m, reason, lock, contest);
  if (contest->winner.load(relaxed) == &limit.waiter) return false;
  stop_timer(&limit.timer);
  return true;
}

// w has a contest if it has a deadline. False: the deadline came first.
bool park_until(M* m, Waiter& w, WaitReason reason, QueueLock lock, int64_t deadline_ns) {
  if (m == nullptr) {
    if (deadline_ns != no_deadline) return park_thread_until(w, lock, deadline_ns);
    park_thread(w, lock);
    return true;
  }
  if (deadline_ns != no_deadline) {
    if (!w.contest->early) w.contest->early = true;
    return park_goroutine_until(m, w, reason, lock, deadline_ns);
  }
  park_goroutine(m, reason, lock, w.contest->early ? w.contest : nullptr);
  return true;
}

// The context is done already: the wait ends before it began, unless a waker has ended it before.
bool give_up(M* m, Waiter& w, WaitReason reason, QueueLock lock) {
  lock.unlock(lock.arg);
  Waiter limit;
  limit.contest = w.contest;
  if (claim(&limit)) return false;
  // The waker that has claimed w wakes it, or finds that it has not parked.
  if (m == nullptr) {
    w.thread->note.wait(-1);
  } else {
    park_goroutine(m, reason, no_queue_lock, w.contest);
  }
  return true;
}

}  // namespace

bool park_limited(M* m, Waiter& w, WaitReason reason, QueueLock lock, const WaitLimit& limit) {
  if (w.contest == nullptr && !limit.none()) w.begin_contest(limit.done != nullptr);
  if (limit.done == nullptr) return park_until(m, w, reason, lock, limit.deadline_ns);
  // The lock of a primitive may be held while the lock of the channel is taken; no thread takes
  // them the other way round.
  Waiter done(m);
  done.contest = w.contest;
  done.counted = m == nullptr && limit.deadline_ns == no_deadline;
  limit.done->lock.lock_another();
  const bool is_done = limit.done->closed.load(relaxed);
  if (!is_done) limit.done->receivers.push_back(&done);
  limit.done->lock.unlock_another();
  if (is_done) return give_up(m, w, reason, lock);
  park_until(m, w, reason, lock, limit.deadline_ns);
  limit.done->lock.lock();
  limit.done->receivers.remove(&done);
  limit.done->lock.unlock();
  return w.contest->winner.load(relaxed) == &w;
}

// tools/gdb: the goroutines and threads in a primitive's queue.
GOFER_DEBUG_TABLE(gofer_debug_waiters) = {GOFER_DEBUG_FIELD(Waiter, g),
                                          GOFER_DEBUG_FIELD(Waiter, thread),
                                          GOFER_DEBUG_FIELD(Waiter, next),
                                          GOFER_DEBUG_FIELD(Waiter, amount),
                                          {}};

}  // namespace gofer::internal
