// mutex: one word and a queue.
//
// The word changes in two ways. The fast paths are compare-and-swaps between two states without
// `busy`: a newcomer takes a free mutex, and the owner unlocks a mutex without waiters. All other
// changes are made by the holder of `busy`, which has the word and the queue to itself and ends
// with one store.
//
// The fast paths guess 0 and `locked` instead of reading the word first, because a read between two
// locked instructions waits for both (lock and unlock together take 24 ns then instead of 15; Go
// takes 15).
//
// No waiter is forgotten. A waiter queues under `busy`, and only if the word is locked or starving
// there. From then on the owner's unlock cannot take the fast path. It wakes one waiter under
// `busy`, unless a waiter that was woken before (`woken`) has yet to try. That waiter takes the
// mutex, or it queues again and clears `woken`, and then the next unlock wakes a waiter.
//
// In normal mode, a woken waiter competes with newcomers, which run already and mostly win. If it
// loses, it queues at the front. Starvation mode begins when a waiter has been losing for 1 ms:
// unlock leaves the mutex locked and hands it over to the first waiter, and newcomers queue. The
// mode ends with an owner that is the last waiter or has waited for less than that.
#include <gofer/mutex.h>

#include "os/clock.h"
#include "runtime/procs/current.h"
#include "runtime/procs/p_table.h"
#include "runtime/report/panic.h"
#include "sync/busy_lock.h"
#include "sync/until_done.h"

namespace gofer {

using namespace internal;

namespace {

constexpr int64_t starvation_ns = 1'000'000;

}  // namespace

void mutex::unbusy(void* self) {
  auto& state = static_cast<mutex*>(self)->state_;
  state.store(state.load(relaxed) & ~busy, release);
}

// Tries for a while before the caller parks. If the owner runs on another core, parking and waking
// cost far more than the usual time under a lock.
bool mutex::spin() {
  if (p_table.in_use.load(relaxed) <= 1) return false;
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

void mutex::lock_slow() { acquire({}); }

bool mutex::lock_until(std::int64_t deadline_ns) { return acquire({deadline_ns}); }

bool mutex::lock(const context& ctx) {
  const WaitLimit limit = until_done(ctx);
  if (limit.refuses()) return false;
  return try_lock() || acquire(limit);
}

bool mutex::acquire(const WaitLimit& limit) {
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
    Waiter w(m);
    if (first_time) {
      queue_.push_back(&w);
    } else {
      queue_.push_front(&w);
    }
    state_.store(now | waiters | busy, relaxed);
    const bool signalled = park(m, w, WaitReason::mutex_lock, {unbusy, this}, limit);
    if (m != nullptr) m = current_m();
    if (!signalled) {
      now = lock_busy(state_, busy);
      queue_.remove(&w);
      if (queue_.empty()) now &= ~(waiters | starving);
      state_.store(now, release);
      return false;
    }
    if (w.ok) {  // the mutex was handed over to this waiter
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
