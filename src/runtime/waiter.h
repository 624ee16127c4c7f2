// Waiters: how every primitive waits and wakes, for goroutines and ordinary threads alike.
//
// A waiter record lies on the waiting stack. Who wakes it takes it out of the queue, reads whom it
// stands for, and never touches it after that, because the woken side may be gone with it at once.
// A goroutine's record and an ordinary thread's Parker are never freed, so waking is always safe.
#pragma once

#include "runtime/lock.h"
#include "runtime/m.h"

namespace gofer::internal {

/// Where an ordinary thread sleeps. One per thread that ever waited, recycled, never freed.
struct Parker {
  Note note;
  Parker* link = nullptr;
};

Parker* this_threads_parker();

struct Waiter {
  G* g = nullptr;            // a goroutine...
  Parker* thread = nullptr;  // ...or an ordinary thread
  Waiter* next = nullptr;

  /// Stands for the caller: its goroutine (inside), or its thread (m == nullptr).
  explicit Waiter(M* m) {
    if (m != nullptr) {
      g = m->curg;
    } else {
      thread = this_threads_parker();
    }
  }
};

/// Waits until somebody wakes w, which stands for the caller and lies where its waker will find it,
/// under a lock. `unlock(g, arg)` releases that lock once w can be woken; g is nullptr in a thread.
/// Returns perhaps on another M. Inside, or with m == nullptr in an ordinary thread.
void park_waiter(M* m, Waiter& w, WaitReason reason, bool (*unlock)(G* g, void* arg), void* arg);

/// Wakes a list of waiters that were taken out of their queue; no lock is held. Inside, or with
/// m == nullptr as above.
void wake_list(M* m, Waiter* first);

}  // namespace gofer::internal
