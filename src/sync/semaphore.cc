#include <gofer/semaphore.h>

#include <stdexcept>

#include "runtime/current.h"
#include "runtime/sched.h"
#include "sync/limit.h"

namespace gofer {

using namespace internal;

namespace {

constexpr std::uint32_t busy = 1;

void check(std::int64_t n) {
  if (n < 0) throw std::invalid_argument("gofer::semaphore: negative number of permits");
}

}  // namespace

bool semaphore::unlock(G*, void* self) {
  unlock_busy(static_cast<semaphore*>(self)->lock_);
  return true;
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
  return acquire_limited(n, &limit);
}

bool semaphore::acquire_limited(std::int64_t n, const void* limit_of_wait) {
  const WaitLimit& limit = *static_cast<const WaitLimit*>(limit_of_wait);
  check(n);
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
  queue_.push_back(&w);
  if (park_limited(m, w, contest, WaitReason::semacquire, unlock, this, limit)) return true;
  lock_busy(lock_, busy);
  queue_.remove(&w);
  Waiter* list = grant();  // smaller ones may have waited behind this one
  unlock_busy(lock_);
  wake_list(m == nullptr ? nullptr : current_m(), list);
  return false;
}

void semaphore::release(std::int64_t n) {
  check(n);
  Inside inside;
  lock_busy(lock_, busy);
  permits_.store(permits_.load(relaxed) + n, relaxed);
  Waiter* list = grant();
  unlock_busy(lock_);
  wake_list(inside.m(), list);
}

}  // namespace gofer
