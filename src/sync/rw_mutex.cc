// rw_mutex: one word {readers, writers wait, busy, a writer holds it} and two queues.
//
// As in mutex.cc, who has `busy` has the word and the queues for himself. What becomes free is
// handed over there (admit): nobody comes between the release and who was woken. Readers queue only
// while a writer holds the lock or waits for it; writers, while anybody holds it.
#include <gofer/rw_mutex.h>

#include "runtime/current.h"
#include "runtime/panic.h"
#include "runtime/sched.h"
#include "sync/limit.h"

namespace gofer {

using namespace internal;

bool rw_mutex::unbusy(G*, void* self) {
  auto& state = static_cast<rw_mutex*>(self)->state_;
  state.store(state.load(relaxed) & ~busy, release);
  return true;
}

// With `busy`. Who may have the lock in the state `now` gets it; `list` is to be woken.
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

bool rw_mutex::acquire(const void* limit_of_wait, bool shared) {
  const WaitLimit& limit = *static_cast<const WaitLimit*>(limit_of_wait);
  Inside inside;
  M* m = inside.m();
  std::uint64_t now = lock_busy(state_, busy);
  const bool free = shared ? (now & (writer | writers)) == 0 : (now & writer) == 0 && now < reader;
  if (free || limit.now()) {
    if (free) now = shared ? now + reader : now | writer;
    state_.store(now, release);
    return free;
  }
  WaitQueue& queue = shared ? waiting_readers_ : waiting_writers_;
  Contest contest;
  Waiter w(m);
  queue.push_back(&w);
  state_.store(now | (shared ? readers : writers) | busy, relaxed);
  const WaitReason reason = shared ? WaitReason::rw_mutex_rlock : WaitReason::rw_mutex_lock;
  if (park_limited(m, w, contest, reason, unbusy, this, limit)) return true;

  now = lock_busy(state_, busy);
  queue.remove(&w);
  Waiter* list = nullptr;
  now = admit(now, false, list);  // readers may have waited for this writer only
  state_.store(now, release);
  wake_list(m == nullptr ? nullptr : current_m(), list);
  return false;
}

bool rw_mutex::lock_until(std::int64_t deadline_ns) {
  const WaitLimit limit{deadline_ns, nullptr};
  return acquire(&limit, false);
}

bool rw_mutex::lock_shared_until(std::int64_t deadline_ns) {
  const WaitLimit limit{deadline_ns, nullptr};
  return acquire(&limit, true);
}

bool rw_mutex::lock(const context& ctx) {
  if (try_lock()) return true;
  const WaitLimit limit = until_done(ctx);
  return acquire(&limit, false);
}

bool rw_mutex::lock_shared(const context& ctx) {
  if (try_lock_shared()) return true;
  const WaitLimit limit = until_done(ctx);
  return acquire(&limit, true);
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
    state_.store(now, release);
    fatal_error("sync: RUnlock of unlocked RWMutex");
  }
  Waiter* list = nullptr;
  now = admit(now - reader, false, list);
  state_.store(now, release);
  wake_list(inside.m(), list);
}

}  // namespace gofer
