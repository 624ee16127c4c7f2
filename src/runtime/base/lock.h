// The locks of the runtime, and the one order in which they may be taken. Most are a futex word
// with a short spin.
//
// The word is 0 (free), 1 (held) or 2 (held, and a thread may sleep). The spin is short because
// with two Ps on two cores the holder may have lost its core: sleeping is then the only way on.
// Unlocking a word of 2 wakes one sleeper, which takes the lock as 2 again, so no sleeper is
// forgotten. Acquire on taking and release on giving back order what the lock protects.
//
// A lock may be taken on one stack and released on another of the same thread (a parking goroutine
// releases its primitive's lock from the next stack), never on another thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/base/assert.h"
#include "runtime/base/thread_safety.h"

namespace gofer::internal {

/// A thread may take a lock only if it holds none of the same or a greater rank.
enum class LockRank : uint8_t {
  world = 1,           // stopping the world, and gomaxprocs
  timer = 2,           // a user's timer
  primitive = 3,       // a primitive's own
  timers = 4,          // a P's timers
  taking = 5,          // taking Ps from Ms
  sched = 6,           // the scheduler's global state
  records = 7,         // global list of free goroutine records
  stacks = 8,          // global stack pools
  trace_visit = 9,     // the tracer: visiting streams,
  trace_foreign = 10,  // the stream of the threads that are no Ms,
  trace_texts = 11,    // names and messages,
  trace_lists = 12,    // lists of buffers and streams
};

void lock_slow(std::atomic<uint32_t>& word);
void unlock_slow(std::atomic<uint32_t>& word);
void note_locked(LockRank rank);
void note_unlocked(LockRank rank);

inline bool try_lock_word(std::atomic<uint32_t>& word, LockRank rank) {
  uint32_t free = 0;
  if (!word.compare_exchange_strong(free, 1, std::memory_order_acquire)) return false;
  if constexpr (checks_enabled) note_locked(rank);
  return true;
}

inline void lock_word(std::atomic<uint32_t>& word, LockRank rank) {
  if constexpr (checks_enabled) note_locked(rank);
  uint32_t free = 0;
  if (!word.compare_exchange_strong(free, 1, std::memory_order_acquire)) lock_slow(word);
}

inline void unlock_word(std::atomic<uint32_t>& word, LockRank rank) {
  if constexpr (checks_enabled) note_unlocked(rank);
  if (word.exchange(0, std::memory_order_release) == 2) unlock_slow(word);
}

class GOFER_LOCKABLE Lock {
 public:
  constexpr explicit Lock(LockRank rank) : rank_(rank) {}
  void lock() GOFER_ACQUIRES() { lock_word(word_, rank_); }
  bool try_lock() GOFER_TRIES(true) { return try_lock_word(word_, rank_); }
  void unlock() GOFER_RELEASES() { unlock_word(word_, rank_); }

 private:
  std::atomic<uint32_t> word_{0};
  LockRank rank_;
};

/// A lock for some tens of nanoseconds, without a system call in between: releasing it is a plain
/// store, which saves half of the locked operations of a channel. The price: no waiter is told that
/// it is free, so a thread that finds it held for long yields its core for a moment and retries.
/// To be taken inside the runtime only, where a goroutine is not preempted by us.
class GOFER_LOCKABLE ShortLock {
 public:
  constexpr explicit ShortLock(LockRank rank) : rank_(rank) {}
  void lock() GOFER_ACQUIRES() {
    if constexpr (checks_enabled) note_locked(rank_);
    lock_another();
  }
  void unlock() GOFER_RELEASES() {
    if constexpr (checks_enabled) note_unlocked(rank_);
    unlock_another();
  }
  /// While one of the same rank is held; the caller has an order of its own.
  void lock_another() GOFER_ACQUIRES() {
    if (word_.exchange(1, std::memory_order_acquire) != 0) lock_slow();
  }
  void unlock_another() GOFER_RELEASES() { word_.store(0, std::memory_order_release); }

 private:
  void lock_slow();

  std::atomic<uint32_t> word_{0};
  LockRank rank_;
};

template <class L>
class GOFER_SCOPED_LOCK LockGuard {
 public:
  explicit LockGuard(L& lock) GOFER_ACQUIRES(lock) : lock_(lock) { lock_.lock(); }
  ~LockGuard() GOFER_RELEASES() { lock_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  L& lock_;
};

}  // namespace gofer::internal
