// semaphore: a number of permits and a queue, under a short lock.
//
// Waiters are served strictly in their order, and none is passed over. A waiter may want more
// permits than there are in all, free or taken. It could wait for ever and must not keep the others
// waiting, so it waits in `beyond_` until a release adds permits. `all_` is the greatest number of
// permits that there has been: the number given to the constructor, or a greater number of free
// permits after more were released than had been taken. `all_` never decreases, so a waiter is in
// `beyond_` if and only if it wants more than `all_`. A semaphore that begins with 0 has no such
// number: its permits are signals, and every waiter is in `queue_`.
#include <gofer/semaphore.h>

#include <stdexcept>

#include "runtime/procs/current.h"
#include "sync/busy_lock.h"
#include "sync/until_done.h"

namespace gofer {

using namespace internal;

namespace {

constexpr std::uint32_t busy = 1;

}  // namespace

std::int64_t semaphore::throw_negative() {
  throw std::invalid_argument("gofer::semaphore: negative number of permits");
}

void semaphore::unlock(void* self) { unlock_busy(static_cast<semaphore*>(self)->lock_); }

bool semaphore::is_beyond(std::int64_t n) const { return all_ > 0 && n > all_; }

// With the lock. There are more permits in all now; waiters that waited for that join the queue.
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

// With the lock. Gives permits to waiters in their order, as long as there are enough. Returns the
// list of waiters that the caller has to wake.
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
  return acquire_limited(n, {deadline_ns});
}

bool semaphore::acquire(const context& ctx, std::int64_t n) {
  const WaitLimit limit = until_done(ctx);
  if (n < 0) throw_negative();
  return !limit.refuses() && acquire_limited(n, limit);
}

bool semaphore::acquire_limited(std::int64_t n, const WaitLimit& limit) {
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
  Waiter w(m);
  w.amount = n;
  (is_beyond(n) ? beyond_ : queue_).push_back(&w);
  if (park(m, w, WaitReason::semacquire, {unlock, this}, limit)) return true;
  lock_busy(lock_, busy);
  (is_beyond(n) ? beyond_ : queue_).remove(&w);
  Waiter* list = grant();  // waiters for fewer permits may have waited behind this one
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
