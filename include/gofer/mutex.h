// mutex: mutual exclusion of goroutines and threads; std::lock_guard and std::unique_lock take it.
#pragma once

#include <gofer/detail/config.h>
#include <gofer/detail/deadline.h>
#include <gofer/detail/wait_queue.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace gofer {

class context;

/// A lock that parks the goroutine, never its thread. It has no owner: another goroutine or thread
/// may unlock it, as in Go. A waiter that has waited for more than 1 ms gets the mutex next (Go's
/// starvation mode). Before that, the first goroutine that asks for a free mutex gets it, which is
/// faster.
///
/// Lockable and TimedLockable. It may be destroyed once no goroutine or thread holds it or waits
/// for it, even while the last unlock() is still returning.
class GOFER_API mutex {
 public:
  constexpr mutex() noexcept = default;
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  void lock() {
    if (!try_lock()) lock_slow();
  }
  [[nodiscard]] bool try_lock() noexcept {
    std::uint32_t now = 0;
    while ((now & (locked | busy | starving)) == 0) {
      if (state_.compare_exchange_weak(now, now | locked, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> d) {
    return try_lock() || lock_until(detail::deadline_after(d));
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool try_lock_until(std::chrono::time_point<Clock, Duration> t) {
    return try_lock() || lock_until(detail::deadline_at(t));
  }
  /// Returns false if the context was done first.
  [[nodiscard]] bool lock(const context& ctx);

  /// Unlocking a mutex that is not locked is a fatal error ("sync: unlock of unlocked mutex").
  void unlock() {
    std::uint32_t now = locked;
    do {
      const bool on_its_way = (now & (locked | woken | busy | starving)) == (locked | woken);
      if (now != locked && !on_its_way) return unlock_slow();
    } while (!state_.compare_exchange_weak(now, now & ~locked, std::memory_order_release,
                                           std::memory_order_relaxed));
  }

 private:
  static constexpr std::uint32_t locked = 1;
  static constexpr std::uint32_t busy = 2;       // the queue is being changed
  static constexpr std::uint32_t waiters = 4;    // the queue is not empty
  static constexpr std::uint32_t woken = 8;      // a waiter was woken and has yet to try
  static constexpr std::uint32_t starving = 16;  // the next unlock hands the mutex over

  void lock_slow();
  bool lock_until(std::int64_t deadline_ns);
  bool acquire(const void* limit);
  bool spin();
  void unlock_slow();
  static bool unbusy(internal::G* g, void* self);

  std::atomic<std::uint32_t> state_{0};
  internal::WaitQueue queue_;
};

}  // namespace gofer
