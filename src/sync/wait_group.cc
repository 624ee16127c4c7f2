// wait_group: read-modify-writes of one word decide everything.
//
// A waiter sets `waiting` and `locked` in one step, which fails once the counter is zero. Then it
// puts itself on the list, and its commit clears `locked` when it has parked. The caller of done()
// that brings the counter to zero clears `waiting`, in a step that fails while the word is locked
// or the counter has risen again. With that step it owns the list: no thread touches the list
// without `locked`, and the next waiter that finds `waiting` clear starts a new list.
//
// A waiter with a time limit or a context may leave the list before that. While there is one
// (`limited`), the waker keeps `locked` until it has claimed every waiter, so that none goes away
// while the waker looks at it.
//
// Memory order. The list is written between the locking (acquire) and the unlocking (release) step,
// and read after a step that acquires. done() releases what its caller did. A waiter acquires that
// through the scheduler, which readied it, or by its own load of the zero.
//
// Lifetime. Without `waiting`, done() does not touch the object after its one step, so a waiter
// that sees zero may destroy the object at once. With `waiting`, the waiter cannot return before it
// is woken, and the waker touches nothing of the object after the step that took the list.
#include <gofer/wait_group.h>

#include "os/thread.h"
#include "runtime/process/process_state.h"
#include "runtime/procs/current.h"
#include "runtime/report/panic.h"
#include "sync/busy_lock.h"
#include "sync/until_done.h"

namespace gofer {

using namespace internal;

namespace {

// `locked` is held from one waiter's enqueueing to its parking: some ten nanoseconds, unless the
// kernel took the waiter's core away.
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
  if (process.forked.load(relaxed)) return;  // the waiters are in the parent
  Inside inside;
  Waiter* list = nullptr;
  for (int tries = 0;;) {
    if (now >= one || (now & waiting) == 0) return;  // counts again, or another waker has the list
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

// With `locked`. Some of the waiters may have given up. They wait for `locked`, and then find that
// they are on no list any more.
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

void wait_group::unlock(void* group) {
  static_cast<wait_group*>(group)->state_.fetch_and(~locked, std::memory_order_release);
}

bool wait_group::wait_until(std::int64_t deadline_ns) { return wait_limited({deadline_ns}); }

bool wait_group::wait(const context& ctx) {
  const WaitLimit limit = until_done(ctx);
  if (limit.refuses()) return false;
  return state_.load(std::memory_order_acquire) < one || wait_limited(limit);
}

bool wait_group::wait_limited(const WaitLimit& limit) {
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
  Waiter w(inside.m());
  w.next = (now & waiting) != 0 ? waiters_.load(std::memory_order_relaxed) : nullptr;
  waiters_.store(&w, std::memory_order_relaxed);
  if (park(inside.m(), w, WaitReason::wait_group_wait, {unlock, this}, limit)) return true;
  remove(w);
  return false;
}

// For a waiter that has given up: takes it out of the list if it is still there.
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
