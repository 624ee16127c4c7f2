// Waiters: how every primitive waits and wakes, for goroutines and foreign threads alike.
//
// A waiter record lies on the waiting stack, in the queue of a primitive, under that primitive's
// lock. The waker takes it out of the queue and reads which goroutine or thread it stands for.
// After that it never touches the record, because the woken side may return at once and the record
// is gone then. The record of a goroutine and the Parker of a foreign thread are never freed, so
// waking them is always safe (but see this_threads_parker for threads that found no memory).
//
// A wait that more than one event can end (the cases of a select, a time limit, a context) has a
// Contest. A waker must claim it first, by one compare-and-swap, and the loser leaves the wait
// alone. The loser may touch the contest because it holds the lock of a queue in which a record of
// that wait stood: the waiter cannot return before it has had that lock itself.
//
// If not all locks are held until the waiter has parked, an event may come before that: a timer or
// a context (`early`). The contest's state settles this. The winner exchanges it for `woken`, and
// the parking commit exchanges it for `parked`. The second of the two sees the value of the first
// and readies the goroutine.
#pragma once

#include <gofer/detail/wait_queue.h>

#include <cstdint>
#include <limits>
#include <new>

#include "runtime/base/atomic.h"
#include "runtime/base/lock.h"
#include "runtime/threads/m.h"

namespace gofer::internal {

/// Where a foreign thread sleeps. Each thread that waits has one; it is used again and never freed.
struct Parker {
  Note note;
  Parker* link = nullptr;
  bool left_behind = false;  // leave_wait_behind
};

/// How many foreign threads are parked without a time limit.
[[gnu::visibility("hidden")]] extern atomic<int32_t> parked_threads;

Parker* this_threads_parker();
/// The calling thread is in park(), gives up that wait, and will never return from it. A waker may
/// still wake it there, so the thread takes another Parker for its next wait.
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
  void* elem = nullptr;        // where the value that is handed over lies, or where it goes
  Contest* contest = nullptr;  // nullptr: only a waker that finds it in its queue ends this wait
  bool queued = false;
  bool ok = false;       // what the waker says
  bool counted = false;  // in parked_threads
  int64_t amount = 0;    // for primitives that count
  union {
    Contest own_contest;  // unused unless begin_contest was called
  };

  /// Stands for the calling goroutine, which is inside, or for the calling thread if m is nullptr.
  explicit Waiter(M* m) : Waiter() {
    if (m != nullptr) {
      g = m->curg;
    } else {
      thread = this_threads_parker();
    }
  }
  Waiter() {}

  /// Other events than a waker can end this wait; if `early` is set, also before it has parked.
  void begin_contest(bool early) {
    contest = ::new (&own_contest) Contest;
    contest->early = early;
  }
};

/// Whether the caller, which holds the lock of w's queue, is the one that ends this wait.
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

/// Wakes a waiter that was taken out of its queue and claimed. The caller is inside, or m is
/// nullptr as above, and it may hold locks. If `next` is set, a goroutine runs next on this P.
void wake(M* m, Waiter* w, bool next = true);

/// Wakes a thread as above, but returns a goroutine, which the caller has to ready. Returns nullptr
/// if w stands for a thread, or if the goroutine has not parked yet and will not.
G* wake_thread_or_get(Waiter* w);

/// Reverses a list that is linked by `next`.
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

/// Wakes all waiters of a list that is linked by `next`.
void wake_list(M* m, Waiter* first);

}  // namespace gofer::internal
