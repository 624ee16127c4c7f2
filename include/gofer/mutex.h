// mutex: mutual exclusion of goroutines and threads; std::lock_guard and std::unique_lock take it.
#pragma once

#include <gofer/detail/config.h>
#include <gofer/detail/deadline.h>
#include <gofer/detail/wait_queue.h>
#include <gofer/detail/word.h>

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
      if (state_.compare_exchange_weak(now, now | locked, detail::order::acquire,
                                       detail::order::relaxed)) {
        return true;
      }
    }
    return false;
  }
  template <detail::duration_like D>
  [[nodiscard]] bool try_lock_for(D d) {
    return try_lock() || lock_until(detail::deadline_after(d));
  }
  template <detail::time_point_like Time>
  [[nodiscard]] bool try_lock_until(Time t) {
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
    } while (!state_.compare_exchange_weak(now, now & ~locked, detail::order::release,
                                           detail::order::relaxed));
  }

 private:
  static constexpr std::uint32_t locked = 1;
  static constexpr std::uint32_t busy = 2;       // the queue is being changed
  static constexpr std::uint32_t waiters = 4;    // the queue is not empty
  static constexpr std::uint32_t woken = 8;      // a waiter was woken and has yet to try
  static constexpr std::uint32_t starving = 16;  // the next unlock hands the mutex over

  void lock_slow();
  bool lock_until(std::int64_t deadline_ns);
  bool acquire(const internal::WaitLimit& limit);
  bool spin();
  void unlock_slow();
  static void unbusy(void* self);

  detail::word<std::uint32_t> state_{0};
  internal::WaitQueue queue_;
};

}  // namespace gofer
