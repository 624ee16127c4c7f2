// Waiters: how every primitive waits and wakes, for goroutines and foreign threads alike.
//
// A waiter record lies on the waiting stack, in the queue of a primitive, under that primitive's
// lock. Who wakes it takes it out of the queue, reads whom it stands for, and never touches it
// after that, because the woken side may be gone with it at once. A goroutine's record and an
// foreign thread's Parker are never freed, so waking is always safe (but see this_threads_parker
// for threads that found no memory).
//
// A wait that more than one event can end (the cases of a select, a time limit, a context) has a
// Contest: whoever wants to end it must claim it first, by one compare-and-swap, and the loser
// leaves it alone. The loser may touch the contest because it holds the lock of a queue in which a
// record of that wait stood: the waiter cannot return before it has had that lock itself.
//
// An event may come before the waiter has parked, if not all locks are held until then (a timer, a
// context: `early`). The contest's state settles that: the winner exchanges it for `woken`, the
// parking commit for `parked`; who comes second knows of the other and does the rest.
#pragma once

#include <gofer/detail/wait_queue.h>

#include <cstdint>
#include <limits>
#include <new>

#include "runtime/base/atomic.h"
#include "runtime/base/lock.h"
#include "runtime/threads/m.h"

namespace gofer::internal {

/// Where a foreign thread sleeps. One per thread that ever waited, recycled, never freed.
struct Parker {
  Note note;
  Parker* link = nullptr;
  bool left_behind = false;  // leave_wait_behind
};

/// How many foreign threads are parked without a time limit.
[[gnu::visibility("hidden")]] extern atomic<int32_t> parked_threads;

Parker* this_threads_parker();
/// The calling thread, in park(), does not wait there any more and will never return from it.
/// It may still be woken there: for its next wait it takes another Parker.
void leave_wait_behind();

struct Waiter;

struct Contest {
  enum State : uint32_t { unparked, parked, woken };
  atomic<Waiter*> winner{nullptr};
  atomic<uint32_t> state{unparked};
  bool early = false;  // a claim may come before the waiter has parked
};

struct Waiter {
  G* g = nullptr;            // a goroutine...
  Parker* thread = nullptr;  // ...or a foreign thread
  Waiter* next = nullptr;
  Waiter* prev = nullptr;
  void* elem = nullptr;        // what is handed over: where it lies, or where it shall go
  Contest* contest = nullptr;  // nullptr: nothing but the queue it is in can end this wait
  bool queued = false;
  bool ok = false;       // what the waker says
  bool counted = false;  // in parked_threads
  int64_t amount = 0;    // for primitives that count
  union {
    Contest own_contest;  // unused unless begin_contest was called
  };

  /// Stands for the caller: its goroutine (inside), or its thread (m == nullptr).
  explicit Waiter(M* m) : Waiter() {
    if (m != nullptr) {
      g = m->curg;
    } else {
      thread = this_threads_parker();
    }
  }
  Waiter() {}

  /// More than the queue can end this wait. early: before the waiter has parked, too.
  void begin_contest(bool early) {
    contest = ::new (&own_contest) Contest;
    contest->early = early;
  }
};

/// With the lock of w's queue: is it the caller who ends this wait?
inline bool claim(Waiter* w) {
  if (w->contest == nullptr) return true;
  Waiter* nobody = nullptr;
  return w->contest->winner.compare_exchange_strong(nobody, w, acq_rel, relaxed);
}

inline void WaitQueue::push_back(Waiter* w) {
  w->queued = true;
  w->next = nullptr;
  w->prev = tail_;
  if (tail_ != nullptr) {
    tail_->next = w;
  } else {
    head_.store(w, relaxed);
  }
  tail_ = w;
}

inline void WaitQueue::push_front(Waiter* w) {
  Waiter* first = front();
  w->queued = true;
  w->prev = nullptr;
  w->next = first;
  if (first != nullptr) {
    first->prev = w;
  } else {
    tail_ = w;
  }
  head_.store(w, relaxed);
}

inline void WaitQueue::remove(Waiter* w) {
  if (!w->queued) return;
  w->queued = false;
  if (w->prev != nullptr) {
    w->prev->next = w->next;
  } else {
    head_.store(w->next, release);
  }
  if (w->next != nullptr) {
    w->next->prev = w->prev;
  } else {
    tail_ = w->prev;
  }
  w->next = nullptr;
}

inline Waiter* WaitQueue::pop_claimed() {
  while (Waiter* w = front()) {
    remove(w);
    if (claim(w)) return w;
  }
  return nullptr;
}

inline constexpr int64_t no_deadline = std::numeric_limits<int64_t>::max();

/// Wakes a waiter that was taken out of its queue and claimed. Inside, or with m == nullptr as
/// above. Locks may be held. next: a goroutine runs next on this P.
void wake(M* m, Waiter* w, bool next = true);

/// The same, but a goroutine is left to the caller, who has to ready it: nullptr if there is none,
/// or it has not parked yet and will not.
G* wake_thread_or_get(Waiter* w);

/// The same list, linked by `next`, the other way round.
inline Waiter* reversed(Waiter* list) {
  Waiter* result = nullptr;
  while (list != nullptr) {
    Waiter* next = list->next;
    list->next = result;
    result = list;
    list = next;
  }
  return result;
}

/// Wakes a list of them, linked by `next`.
void wake_list(M* m, Waiter* first);

}  // namespace gofer::internal
