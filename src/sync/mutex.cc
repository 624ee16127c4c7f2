// mutex: one word and a queue.
//
// Every change of the word is either a compare-and-swap between two states without `busy` (the fast
// paths: a newcomer takes what is free; the owner unlocks and nobody is to be woken), or is made by
// the holder of `busy`, who then has the word and the queue for himself and ends with one store.
//
// The fast paths guess 0 and `locked` instead of reading the word first: a read between two locked
// instructions waits for both (lock and unlock together 24 ns instead of 15, where Go takes 15).
//
// No waiter is forgotten: it queues under `busy` and only if the word says locked or starving
// there. Who unlocks cannot take the fast path then and wakes one under `busy`, unless one that was
// woken before (`woken`) has yet to try: that one will take the mutex, or queue again and clear
// `woken`, after which the holder's unlock wakes the next.
//
// Normal mode: a waiter that is woken competes with newcomers, who run already and mostly win; it
// queues at the front then. Starvation mode, when a waiter has lost for 1 ms: unlock leaves the
// mutex locked and gives it to the first in the queue; newcomers queue up. The mode ends with an
// owner that is the last waiter or has waited for less.
#include <gofer/mutex.h>

#include "runtime/procs/current.h"
#include "runtime/report/panic.h"
#include "runtime/sched/sched.h"
#include "sync/limit.h"

namespace gofer {

using namespace internal;

namespace {

constexpr int64_t starvation_ns = 1'000'000;

}  // namespace

bool mutex::unbusy(G*, void* self) {
  auto& state = static_cast<mutex*>(self)->state_;
  state.store(state.load(relaxed) & ~busy, release);
  return true;
}

// Sleeping and being woken costs far more than the usual time under a lock, if its holder runs on
// another core.
bool mutex::spin() {
  if (sched.procs.load(relaxed) <= 1) return false;
  constexpr int rounds = 4;
  constexpr int pauses = 30;
  for (int i = 0; i < rounds; ++i) {
    std::uint32_t now = state_.load(relaxed);
    if ((now & starving) != 0) return false;
    if ((now & (locked | busy)) == 0 &&
        state_.compare_exchange_strong(now, now | locked, internal::acquire, relaxed)) {
      return true;
    }
    for (int k = 0; k < pauses; ++k) cpu_relax();
  }
  return false;
}

void mutex::lock_slow() {
  const WaitLimit none;
  acquire(&none);
}

bool mutex::lock_until(std::int64_t deadline_ns) {
  const WaitLimit limit{deadline_ns, nullptr};
  return acquire(&limit);
}

bool mutex::lock(const context& ctx) {
  const WaitLimit limit = until_done(ctx);
  if (limit.refuses()) return false;
  return try_lock() || acquire(&limit);
}

bool mutex::acquire(const void* limit_of_wait) {
  const WaitLimit& limit = *static_cast<const WaitLimit*>(limit_of_wait);
  if (spin()) return true;
  Inside inside;
  M* m = inside.m();
  int64_t since = 0;
  bool was_woken = false;
  for (;;) {
    std::uint32_t now = lock_busy(state_, busy);
    if (was_woken) now &= ~woken;
    if ((now & (locked | starving)) == 0) {
      state_.store(now | locked, release);
      return true;
    }
    const bool first_time = since == 0;
    const int64_t time = first_time && limit.now() ? 0 : os::now_ns();
    if (limit.now() || (!first_time && time >= limit.deadline_ns)) {
      state_.store(now, release);
      return false;
    }
    if (first_time) since = time;
    if (time - since > starvation_ns && (now & locked) != 0) now |= starving;
    Contest contest;
    Waiter w(m);
    if (first_time) {
      queue_.push_back(&w);
    } else {
      queue_.push_front(&w);
    }
    state_.store(now | waiters | busy, relaxed);
    const bool signalled = park_limited(m, w, contest, WaitReason::mutex_lock, unbusy, this, limit);
    if (m != nullptr) m = current_m();
    if (!signalled) {
      now = lock_busy(state_, busy);
      queue_.remove(&w);
      if (queue_.empty()) now &= ~(waiters | starving);
      state_.store(now, release);
      return false;
    }
    if (w.ok) {  // it is ours: handed over
      if (os::now_ns() - since > starvation_ns && !queue_.empty()) return true;
      now = lock_busy(state_, busy);
      state_.store(now & ~starving, release);
      return true;
    }
    was_woken = true;
  }
}

void mutex::unlock_slow() {
  Inside inside;
  std::uint32_t now = lock_busy(state_, busy);
  if ((now & locked) == 0) {
    state_.store(now, release);
    fatal_error("sync: unlock of unlocked mutex");
  }
  Waiter* w = nullptr;
  if ((now & starving) != 0) {
    w = queue_.pop_claimed();
    if (w == nullptr) {
      now &= ~(locked | starving);
    } else {
      w->ok = true;
    }
  } else {
    now &= ~locked;
    if ((now & woken) == 0) w = queue_.pop_claimed();
    if (w != nullptr) {
      w->ok = false;
      now |= woken;
    }
  }
  if (queue_.empty()) now &= ~waiters;
  state_.store(now, release);
  if (w != nullptr) wake(inside.m(), w);
}

}  // namespace gofer
