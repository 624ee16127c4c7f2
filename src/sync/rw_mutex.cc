// rw_mutex: one word {readers, writers wait, busy, a writer holds it} and two queues.
//
// As in mutex.cc, the holder of `busy` has the word and the queues to itself. When the lock becomes
// free, it is handed over there (admit), so no newcomer gets in between the release and the waiters
// that are woken. Readers queue only while a writer holds the lock or waits for it. Writers queue
// while any reader or writer holds it.
//
// Bias. Readers that often meet others in the word (met_others) set `biased`, and from then on they
// enter themselves in a table of lines that threads do not share (reader_table.h; the idea is
// Dice's and Kogan's, "BRAVO"). The lock is held by the readers in the table and by those in the
// word, together. `biased` implies that no writer has the lock and none waits: a writer first ends
// the bias, with `busy`, and counts the readers that it finds in the table in the word.
//
// A reader writes its entry and then loads `biased`. A writer clears `biased` and then loads the
// entries (seq_cst on both sides). So either the reader sees that the bias is over, or the writer
// sees the entry. A reader that sees the bias over takes its entry back. If the entry is gone, the
// writer has counted it in the word, and the reader has the lock.
//
// Memory order. A reader that loads `biased` with acquire sees what an earlier writer wrote under
// the lock, because every change of the word in between is an exchange or keeps the order. A writer
// sees what a reader did, because it loads the place that the reader left with release.
#include <gofer/rw_mutex.h>

#include "os/thread.h"
#include "runtime/procs/current.h"
#include "runtime/report/panic.h"
#include "sync/busy_lock.h"
#include "sync/reader_table.h"
#include "sync/until_done.h"

namespace gofer {

using namespace internal;

namespace {

// A bias is worth it only if the meetings that lead to it come within this time. Readers that meet
// by chance, or that hold the lock for long, are no reason.
constexpr std::int64_t longest_leaning_ns = 10'000'000;
// A reader that unlocks on another M than it locked on costs as much as an end of the bias, and is
// seldom the only one. So it takes many more meetings until the next bias.
constexpr std::int32_t leaning_after_migration = -10'000;

}  // namespace

bool rw_mutex::enter_table() noexcept {
  if (!reader_table.enter(this)) return false;
  if ((state_.load(seq_cst) & biased) != 0) return true;
  leaning_.store(0, relaxed);
  return !reader_table.leave(this);
}

bool rw_mutex::leave_table() noexcept { return reader_table.leave(this); }

void rw_mutex::met_others(std::uint64_t now) noexcept {
  inside_.store(static_cast<std::uint32_t>(now / reader), relaxed);
  const std::int32_t n = leaning_.load(relaxed) + 1;  // some meetings may be lost
  if (n == 1) since_ns_.store(os::now_ns(), relaxed);
  leaning_.store(n, relaxed);
  if (n < leaning_enough - 1) return;
  leaning_.store(0, relaxed);
  if (os::now_ns() - since_ns_.load(relaxed) > longest_leaning_ns) return;
  now = state_.load(relaxed);
  while ((now & (writer | busy | writers)) == 0) {
    if (!state_.compare_exchange_weak(now, now | biased, acq_rel, relaxed)) continue;
    leaning_.store(leaning_enough, relaxed);
    return;
  }
}

// With `busy`. Returns the state without the bias, with the readers from the table counted in it.
std::uint64_t rw_mutex::end_bias(std::uint64_t now) {
  if ((now & biased) == 0) return now;
  now &= ~biased;
  state_.store(now | busy, seq_cst);
  leaning_.store(0, relaxed);
  return now + reader_table.take_all(this) * reader;
}

void rw_mutex::unbusy(void* self) {
  auto& state = static_cast<rw_mutex*>(self)->state_;
  state.store(state.load(relaxed) & ~busy, release);
}

// With `busy`. Gives the lock to the waiters that may have it in the state `now`, and returns the
// new state. The caller has to wake the waiters in `list`.
std::uint64_t rw_mutex::admit(std::uint64_t now, bool readers_first, Waiter*& list) {
  if ((now & writer) != 0) return now;
  if ((readers_first || waiting_writers_.empty()) && !waiting_readers_.empty()) {
    Waiter** end = &list;
    while (Waiter* w = waiting_readers_.pop_claimed()) {
      now += reader;
      *end = w;
      end = &w->next;
    }
  }
  if (now < reader) {
    if (Waiter* w = waiting_writers_.pop_claimed(); w != nullptr) {
      now |= writer;
      list = w;
    } else if (!waiting_readers_.empty()) {
      return admit(now & ~writers, true, list);
    }
  }
  now &= ~(writers | readers);
  if (!waiting_writers_.empty()) now |= writers;
  if (!waiting_readers_.empty()) now |= readers;
  return now;
}

bool rw_mutex::acquire(const WaitLimit& limit, bool shared) {
  Inside inside;
  M* m = inside.m();
  std::uint64_t now = lock_busy(state_, busy);
  if (!shared) now = end_bias(now);
  const bool free = shared ? (now & (writer | writers)) == 0 : (now & writer) == 0 && now < reader;
  if (free || limit.now()) {
    if (free) now = shared ? now + reader : now | writer;
    state_.store(now, release);
    return free;
  }
  WaitQueue& queue = shared ? waiting_readers_ : waiting_writers_;
  Waiter w(m);
  queue.push_back(&w);
  state_.store(now | (shared ? readers : writers) | busy, relaxed);
  const WaitReason reason = shared ? WaitReason::rw_mutex_rlock : WaitReason::rw_mutex_lock;
  if (park(m, w, reason, {unbusy, this}, limit)) return true;

  now = lock_busy(state_, busy);
  queue.remove(&w);
  Waiter* list = nullptr;
  now = admit(now, false, list);  // perhaps readers have waited only because of this writer
  state_.store(now, release);
  wake_list(m == nullptr ? nullptr : current_m(), list);
  return false;
}

bool rw_mutex::lock_until(std::int64_t deadline_ns) { return acquire({deadline_ns}, false); }

bool rw_mutex::lock_shared_until(std::int64_t deadline_ns) { return acquire({deadline_ns}, true); }

bool rw_mutex::lock(const context& ctx) {
  const WaitLimit limit = until_done(ctx);
  if (limit.refuses()) return false;
  return try_lock() || acquire(limit, false);
}

bool rw_mutex::lock_shared(const context& ctx) {
  const WaitLimit limit = until_done(ctx);
  if (limit.refuses()) return false;
  return try_lock_shared() || acquire(limit, true);
}

void rw_mutex::unlock_slow() {
  Inside inside;
  std::uint64_t now = lock_busy(state_, busy);
  if ((now & writer) == 0) {
    state_.store(now, release);
    fatal_error("sync: Unlock of unlocked RWMutex");
  }
  Waiter* list = nullptr;
  now = admit(now & ~writer, true, list);
  state_.store(now, release);
  wake_list(inside.m(), list);
}

void rw_mutex::unlock_shared_slow() {
  Inside inside;
  std::uint64_t now = lock_busy(state_, busy);
  if (now < reader) {
    now = end_bias(now);
    leaning_.store(leaning_after_migration, relaxed);
  }
  if (now < reader) {
    state_.store(now, release);
    fatal_error("sync: RUnlock of unlocked RWMutex");
  }
  Waiter* list = nullptr;
  now = admit(now - reader, false, list);
  state_.store(now, release);
  wake_list(inside.m(), list);
}

}  // namespace gofer
