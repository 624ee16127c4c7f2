// semaphore: a number of permits and a queue, under a short lock.
//
// Waiters are served strictly in their order, and none is passed by. A waiter for more permits than
// there are in all, free or taken, could wait for ever and must not keep the others waiting: it
// stands aside, in `beyond_`, until a release adds permits. `all_` is what there was at most: the
// number given to the constructor, or what was free at some time after more were released than had
// been taken. It never decreases, so a waiter is in `beyond_` if and only if it wants more than
// that. A semaphore that begins with 0 has no such number: its permits are signals, and everybody
// queues.
#include <gofer/semaphore.h>

#include <stdexcept>

#include "runtime/procs/current.h"
#include "runtime/sched/sched.h"
#include "sync/limit.h"

namespace gofer {

using namespace internal;

namespace {

constexpr std::uint32_t busy = 1;

}  // namespace

std::int64_t semaphore::throw_negative() {
  throw std::invalid_argument("gofer::semaphore: negative number of permits");
}

bool semaphore::unlock(G*, void* self) {
  unlock_busy(static_cast<semaphore*>(self)->lock_);
  return true;
}

bool semaphore::is_beyond(std::int64_t n) const { return all_ > 0 && n > all_; }

// With the lock: there are more permits in all, and those who waited for that join the queue.
void semaphore::grow(std::int64_t all) {
  all_ = all;
  Waiter* next = nullptr;
  for (Waiter* w = beyond_.front(); w != nullptr; w = next) {
    next = w->next;
    if (is_beyond(w->amount)) continue;
    beyond_.remove(w);
    queue_.push_back(w);
  }
}

// With the lock: the waiters that can have what they want, in turn.
Waiter* semaphore::grant() {
  Waiter* list = nullptr;
  Waiter** end = &list;
  std::int64_t permits = permits_.load(relaxed);
  while (Waiter* w = queue_.front()) {
    if (w->amount > permits) break;
    queue_.remove(w);
    if (!claim(w)) continue;
    permits -= w->amount;
    *end = w;
    end = &w->next;
  }
  permits_.store(permits, relaxed);
  return list;
}

bool semaphore::acquire_until(std::int64_t n, std::int64_t deadline_ns) {
  const WaitLimit limit{deadline_ns, nullptr};
  return acquire_limited(n, &limit);
}

bool semaphore::acquire(const context& ctx, std::int64_t n) {
  const WaitLimit limit = until_done(ctx);
  if (n < 0) throw_negative();
  return !limit.refuses() && acquire_limited(n, &limit);
}

bool semaphore::acquire_limited(std::int64_t n, const void* limit_of_wait) {
  const WaitLimit& limit = *static_cast<const WaitLimit*>(limit_of_wait);
  if (n < 0) throw_negative();
  Inside inside;
  M* m = inside.m();
  lock_busy(lock_, busy);
  const std::int64_t permits = permits_.load(relaxed);
  const bool free = permits >= n && queue_.empty();
  if (free || limit.now()) {
    if (free) permits_.store(permits - n, relaxed);
    unlock_busy(lock_);
    return free;
  }
  Contest contest;
  Waiter w(m);
  w.amount = n;
  (is_beyond(n) ? beyond_ : queue_).push_back(&w);
  if (park_limited(m, w, contest, WaitReason::semacquire, unlock, this, limit)) return true;
  lock_busy(lock_, busy);
  (is_beyond(n) ? beyond_ : queue_).remove(&w);
  Waiter* list = grant();  // smaller ones may have waited behind this one
  unlock_busy(lock_);
  wake_list(m == nullptr ? nullptr : current_m(), list);
  return false;
}

void semaphore::release(std::int64_t n) {
  if (n < 0) throw_negative();
  Inside inside;
  lock_busy(lock_, busy);
  const std::int64_t permits = permits_.load(relaxed) + n;
  permits_.store(permits, relaxed);
  if (all_ > 0 && permits > all_) grow(permits);
  Waiter* list = grant();
  unlock_busy(lock_);
  wake_list(inside.m(), list);
}

}  // namespace gofer
