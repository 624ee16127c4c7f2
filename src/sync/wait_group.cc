// wait_group: everything is decided by read-modify-writes of one word.
//
// Who waits sets `waiting` and `locked` in one step, which is refused once the counter is zero,
// puts itself on the list, and clears `locked` when it has parked. Whoever brings the counter to
// zero clears `waiting` in a step that is refused while the word is locked or the counter has risen
// again; with that step the list is his, since nobody may touch it without `locked`, and the next
// waiter that finds `waiting` clear starts a new one.
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
#include "runtime/current.h"
#include "runtime/panic.h"
#include "runtime/sched.h"
#include "runtime/waiter.h"

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

Waiter* reversed(Waiter* list) {
  Waiter* oldest_first = nullptr;
  while (list != nullptr) {
    Waiter* next = list->next;
    list->next = oldest_first;
    oldest_first = list;
    list = next;
  }
  return oldest_first;
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
    list = waiters_.load(std::memory_order_relaxed);
    if (state_.compare_exchange_weak(now, now & ~waiting, std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
      break;
    }
  }
  wake_list(inside.m(), reversed(list));
}

bool wait_group::unlock(G*, void* group) {
  static_cast<wait_group*>(group)->state_.fetch_and(~locked, std::memory_order_release);
  return true;
}

void wait_group::wait_slow() {
  Inside inside;
  std::uint64_t now = state_.load(std::memory_order_acquire);
  for (int tries = 0;;) {
    if (now < one) return;
    if ((now & locked) != 0) {
      back_off(tries);
      now = state_.load(std::memory_order_acquire);
    } else if (state_.compare_exchange_weak(now, now | waiting | locked, std::memory_order_acq_rel,
                                            std::memory_order_acquire)) {
      break;
    }
  }
  Waiter w(inside.m());
  w.next = (now & waiting) != 0 ? waiters_.load(std::memory_order_relaxed) : nullptr;
  waiters_.store(&w, std::memory_order_relaxed);
  park_waiter(inside.m(), w, WaitReason::wait_group_wait, unlock, this);
}

}  // namespace gofer
