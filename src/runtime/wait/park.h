// The one way to wait, for goroutines and foreign threads.
//
// A primitive that has to wait puts a Waiter into its queue, under the lock of that queue, and
// calls park() with the lock still held. park() releases the lock once a waker may wake the waiter,
// and returns when one has, or when the limit of the wait came first.
#pragma once

#include "runtime/sched/switch.h"
#include "runtime/wait/waiter.h"

namespace gofer::internal {

/// Something that is closed once and for good: the part of a channel that a wait with a context
/// knows. Its close ends the waits of the waiters in `receivers`.
struct Closable {
  ShortLock lock{LockRank::primitive};
  WaitQueue receivers;
  atomic<bool> closed{false};
};

/// What may end a wait besides its waker: a point in time (of os::now_ns), and a context.
struct WaitLimit {
  int64_t deadline_ns = no_deadline;
  Closable* done = nullptr;  // the context's
  bool none() const { return deadline_ns == no_deadline && done == nullptr; }
  /// Not to wait at all.
  bool now() const { return deadline_ns == 0; }
  /// The context is done: every call with it refuses at once, even if it would not have to wait.
  bool refuses() const { return done != nullptr && done->closed.load(acquire); }
};

/// For a waiter that is in no queue, or in one whose lock is not held.
inline constexpr QueueLock no_queue_lock{[](void*) {}, nullptr};

inline void unlock_short(void* lock) GOFER_UNCHECKED_LOCKS {
  static_cast<ShortLock*>(lock)->unlock();
}
/// The lock of a queue, which the caller holds and park() releases. For clang's analysis it is
/// released here.
inline QueueLock released_by_park(ShortLock& lock) GOFER_RELEASES(lock) GOFER_UNCHECKED_LOCKS {
  return {unlock_short, &lock};
}

bool park_limited(M* m, Waiter& w, WaitReason reason, QueueLock lock, const WaitLimit& limit);

/// Waits until a waker wakes w, which stands for the caller. The caller holds `lock`, under which
/// wakers find w; park() releases it. Returns true if a waker has taken w out of its queue. Returns
/// false if the limit came first; then w may still be queued, and the caller removes it.
///
/// The caller is inside, or it is a foreign thread and m is nullptr. A goroutine may return on
/// another M. A waiter that can be woken before this call has an early contest already; for all
/// others park() begins a contest if the limit needs one.
inline bool park(M* m, Waiter& w, WaitReason reason, QueueLock lock, const WaitLimit& limit = {}) {
  if (m != nullptr && limit.none() && (w.contest == nullptr || !w.contest->early)) {
    park_goroutine(m, reason, lock);
    return true;
  }
  return park_limited(m, w, reason, lock, limit);
}

}  // namespace gofer::internal
