// cond: a queue under a short lock. A waiter enters the queue before it releases the user's lock,
// so a waker may claim it before it has parked. Therefore its contest is an early one (waiter.h).
#include <gofer/cond.h>

#include "runtime/procs/current.h"
#include "sync/busy_lock.h"
#include "sync/until_done.h"

namespace gofer {

using namespace internal;

namespace {

constexpr std::uint32_t busy = 1;

}  // namespace

bool cond::wait_unlocked(const unlocked& u, std::int64_t deadline_ns) {
  return wait_limited(u, {deadline_ns});
}

bool cond::wait_unlocked(const unlocked& u, const context& ctx) {
  const WaitLimit limit = until_done(ctx);
  return !limit.refuses() && wait_limited(u, limit);
}

bool cond::wait_limited(const unlocked& u, const WaitLimit& limit) {
  M* m = enter();
  Waiter w(m);
  w.begin_contest(true);
  w.counted = m == nullptr && limit.deadline_ns == no_deadline;
  lock_busy(lock_, busy);
  queue_.push_back(&w);
  unlock_busy(lock_);
  if (m != nullptr) leave(m);

  u.release(u.lock);  // the user's lock; the unlock must not throw

  m = enter();
  const bool woken = park(m, w, WaitReason::cond_wait, no_queue_lock, limit);
  if (m != nullptr) m = current_m();
  if (!woken) {
    lock_busy(lock_, busy);
    queue_.remove(&w);
    unlock_busy(lock_);
  }
  if (m != nullptr) leave(m);
  u.take(u.lock);
  return woken;
}

void cond::signal() {
  if (queue_.empty()) return;
  Inside inside;
  lock_busy(lock_, busy);
  Waiter* w = queue_.pop_claimed();
  unlock_busy(lock_);
  if (w != nullptr) wake(inside.m(), w);
}

void cond::broadcast() {
  if (queue_.empty()) return;
  Inside inside;
  lock_busy(lock_, busy);
  Waiter* list = nullptr;
  Waiter** end = &list;
  while (Waiter* w = queue_.pop_claimed()) {
    *end = w;
    end = &w->next;
  }
  unlock_busy(lock_);
  wake_list(inside.m(), list);
}

}  // namespace gofer
