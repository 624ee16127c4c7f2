// wait_group: everything is decided by read-modify-writes of one word.
//
// Who waits sets `waiting` and `locked` in one step, which is refused once the counter is zero,
// puts itself on the list, and clears `locked` when it has parked. Whoever brings the counter to
// zero clears `waiting` in a step that is refused while the word is locked or the counter has risen
// again; with that step the list is his, since nobody may touch it without `locked`, and the next
// waiter that finds `waiting` clear starts a new one.
//
// A waiter with a time limit or a context may leave the list before that. While there is one
// (`limited`), who wakes keeps `locked` until every waiter is claimed, so that none goes away under
// its hands.
//
// Memory order: the list is written between the locking (acquire) and the unlocking (release) step,
// and read after a step that acquires; done() releases what its caller did, and a waiter acquires
// it by the scheduler's hand-over or by its own read of the zero.
//
// Lifetime: without `waiting`, done() does not touch the object after its one step, so that a
// waiter that sees zero may destroy it at once. With it, the waiter cannot return before it is
// woken, and nothing of the object is touched after the step that took the list.
#include <gofer/wait_group.h>

#include "os/thread.h"
#include "runtime/procs/current.h"
#include "runtime/report/panic.h"
#include "runtime/sched/sched.h"
#include "runtime/wait/waiter.h"
#include "sync/limit.h"

namespace gofer {

using namespace internal;

namespace {

// `locked` is held from one waiter's enqueueing to its parking, some ten nanoseconds, unless the
// kernel took its core away.
void back_off(int& tries) {
  constexpr int spins = 40;
  if (++tries < spins) {
    cpu_relax();
  } else {
    os::yield_thread();
  }
}

}  // namespace

void wait_group::add_slow(std::uint64_t now) {
  if (static_cast<std::int64_t>(now) < 0) panic("sync: negative WaitGroup counter");
  if ((now & waiting) == 0) return;
  if (sched.forked.load(relaxed)) return;  // who waits is in the parent
  Inside inside;
  Waiter* list = nullptr;
  for (int tries = 0;;) {
    if (now >= one || (now & waiting) == 0) return;  // begun anew, or somebody else's to wake
    if ((now & locked) != 0) {
      back_off(tries);
      now = state_.load(std::memory_order_acquire);
      continue;
    }
    if ((now & limited) != 0) {
      if (!state_.compare_exchange_weak(now, now | locked, std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
        continue;
      }
      wake_limited(list);
      break;
    }
    list = waiters_.load(std::memory_order_relaxed);
    if (state_.compare_exchange_weak(now, now & ~waiting, std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
      break;
    }
  }
  wake_list(inside.m(), reversed(list));
}

// Locked. Some of the waiters may have given up: they come for the lock, and take themselves out of
// the list that they are no longer on.
void wait_group::wake_limited(Waiter*& list) {
  Waiter* all = waiters_.load(std::memory_order_relaxed);
  list = nullptr;
  Waiter** end = &list;
  for (Waiter* w = all; w != nullptr;) {
    Waiter* next = w->next;
    if (claim(w)) {
      *end = w;
      end = &w->next;
    }
    w = next;
  }
  *end = nullptr;
  state_.fetch_and(~(locked | waiting | limited), std::memory_order_acq_rel);
}

bool wait_group::unlock(G*, void* group) {
  static_cast<wait_group*>(group)->state_.fetch_and(~locked, std::memory_order_release);
  return true;
}

bool wait_group::wait_until(std::int64_t deadline_ns) {
  const WaitLimit limit{deadline_ns, nullptr};
  return wait_limited(&limit);
}

bool wait_group::wait(const context& ctx) {
  const WaitLimit limit = until_done(ctx);
  if (limit.refuses()) return false;
  return state_.load(std::memory_order_acquire) < one || wait_limited(&limit);
}

bool wait_group::wait_limited(const void* limit_of_wait) {
  const WaitLimit& limit = *static_cast<const WaitLimit*>(limit_of_wait);
  if (limit.now()) return state_.load(std::memory_order_acquire) < one;
  const std::uint64_t bits = limit.none() ? waiting | locked : waiting | locked | limited;
  Inside inside;
  std::uint64_t now = state_.load(std::memory_order_acquire);
  for (int tries = 0;;) {
    if (now < one) return true;
    if ((now & locked) != 0) {
      back_off(tries);
      now = state_.load(std::memory_order_acquire);
    } else if (state_.compare_exchange_weak(now, now | bits, std::memory_order_acq_rel,
                                            std::memory_order_acquire)) {
      break;
    }
  }
  Contest contest;
  Waiter w(inside.m());
  w.next = (now & waiting) != 0 ? waiters_.load(std::memory_order_relaxed) : nullptr;
  waiters_.store(&w, std::memory_order_relaxed);
  if (park_limited(inside.m(), w, contest, WaitReason::wait_group_wait, unlock, this, limit))
    return true;
  remove(w);
  return false;
}

// The waiter has given up, and is perhaps still on the list.
void wait_group::remove(Waiter& w) {
  const std::uint64_t now = lock_busy(state_, locked);
  bool empty = false;
  if ((now & waiting) != 0) {
    Waiter* first = waiters_.load(std::memory_order_relaxed);
    if (first == &w) {
      waiters_.store(w.next, std::memory_order_relaxed);
      empty = w.next == nullptr;
    } else {
      for (Waiter* at = first; at != nullptr; at = at->next) {
        if (at->next == &w) at->next = w.next;
      }
    }
  }
  state_.fetch_and(empty ? ~(locked | waiting | limited) : ~locked, std::memory_order_release);
}

}  // namespace gofer
