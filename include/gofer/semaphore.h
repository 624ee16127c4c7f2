// semaphore: a number of permits, taken in any amounts.
#pragma once

#include <gofer/detail/config.h>
#include <gofer/detail/deadline.h>
#include <gofer/detail/wait_queue.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace gofer {

class context;

/// Weighted, as Go's x/sync/semaphore: waiters are served strictly in the order of their coming, so
/// that a large request is not starved by small ones. A request for more permits than there are in
/// all waits aside and keeps nobody waiting; a semaphore that begins with 0 permits has no such
/// limit.
class GOFER_API semaphore {
 public:
  explicit constexpr semaphore(std::int64_t permits) noexcept : permits_(permits), all_(permits) {}
  semaphore(const semaphore&) = delete;
  semaphore& operator=(const semaphore&) = delete;

  /// Waits until n permits are free and nobody waits in front, and takes them.
  void acquire(std::int64_t n = 1) { acquire_until(n, detail::no_deadline); }
  bool try_acquire(std::int64_t n = 1) { return acquire_until(n, 0); }
  /// False: the time was over, nothing was taken.
  template <class Rep, class Period>
  bool try_acquire_for(std::chrono::duration<Rep, Period> d, std::int64_t n = 1) {
    return acquire_until(n, detail::deadline_after(d));
  }
  template <class Clock, class Duration>
  bool try_acquire_until(std::chrono::time_point<Clock, Duration> t, std::int64_t n = 1) {
    return acquire_until(n, detail::deadline_at(t));
  }
  /// False: the context was done first.
  bool acquire(const context& ctx, std::int64_t n = 1);
  /// Gives n permits back, or adds them.
  void release(std::int64_t n = 1);
  /// Permits that are free now.
  std::int64_t available() const noexcept { return permits_.load(std::memory_order_relaxed); }

 private:
  bool acquire_until(std::int64_t n, std::int64_t deadline_ns);
  bool acquire_limited(std::int64_t n, const void* limit);
  internal::Waiter* grant();
  bool is_beyond(std::int64_t n) const;
  void grow(std::int64_t all);
  static bool unlock(internal::G* g, void* self);

  std::atomic<std::uint32_t> lock_{0};
  std::atomic<std::int64_t> permits_;  // written under the lock
  std::int64_t all_;                   // that there are, free or taken; 0: not known
  internal::WaitQueue queue_;
  internal::WaitQueue beyond_;  // of those who want more than that
};

}  // namespace gofer
