// semaphore: a number of permits, taken in any amounts.
//
//   gofer::semaphore slots(8);
//   gofer::permit_guard slot(slots);            // waits for one, and gives it back
#pragma once

#include <gofer/detail/config.h>
#include <gofer/detail/deadline.h>
#include <gofer/detail/wait_queue.h>
#include <gofer/detail/word.h>

#include <cstdint>
#include <limits>
#include <mutex>
#include <utility>

namespace gofer {

class context;

/// Weighted, as Go's x/sync/semaphore: waiters are served strictly in the order in which they
/// arrived, so small requests cannot starve a large one. A request for more permits than exist
/// waits aside and does not hold up the others. A semaphore that begins with 0 permits has no such
/// limit.
class GOFER_API semaphore {
 public:
  /// The largest possible number of permits.
  static constexpr std::int64_t max() noexcept { return std::numeric_limits<std::int64_t>::max(); }
  /// Throws std::invalid_argument for a negative number of permits, as all calls do.
  explicit constexpr semaphore(std::int64_t permits)
      : permits_(permits >= 0 ? permits : throw_negative()), all_(permits) {}
  semaphore(const semaphore&) = delete;
  semaphore& operator=(const semaphore&) = delete;

  /// Waits until n permits are free and every earlier waiter has been served, and takes them.
  void acquire(std::int64_t n = 1) { acquire_until(n, detail::no_deadline); }
  [[nodiscard]] bool try_acquire(std::int64_t n = 1) { return acquire_until(n, 0); }
  /// Returns false, and takes nothing, if the time was over first.
  template <detail::duration_like D>
  [[nodiscard]] bool try_acquire_for(D d, std::int64_t n = 1) {
    return acquire_until(n, detail::deadline_after(d));
  }
  template <detail::time_point_like Time>
  [[nodiscard]] bool try_acquire_until(Time t, std::int64_t n = 1) {
    return acquire_until(n, detail::deadline_at(t));
  }
  /// Returns false if the context was done first.
  [[nodiscard]] bool acquire(const context& ctx, std::int64_t n = 1);
  /// Gives n permits back, or adds them.
  void release(std::int64_t n = 1);
  /// The number of permits that are free now.
  std::int64_t available() const noexcept { return permits_.load(detail::order::relaxed); }

 private:
  [[noreturn]] static std::int64_t throw_negative();
  bool acquire_until(std::int64_t n, std::int64_t deadline_ns);
  bool acquire_limited(std::int64_t n, const internal::WaitLimit& limit);
  internal::Waiter* grant();
  bool is_beyond(std::int64_t n) const;
  void grow(std::int64_t all);
  static void unlock(void* self);

  detail::word<std::uint32_t> lock_{0};
  detail::word<std::int64_t> permits_;  // written under the lock
  std::int64_t all_;                    // permits that exist, free or taken; 0: not known
  internal::WaitQueue queue_;
  internal::WaitQueue beyond_;  // waiters that want more than all_
};

/// Permits that are given back at the end of a scope. The guard can be moved, for example into a
/// goroutine's closure, so it need not end in the scope where it was made.
class [[nodiscard]] permit_guard {
 public:
  /// Holds nothing.
  permit_guard() noexcept = default;
  /// Waits for n permits.
  [[nodiscard]] explicit permit_guard(semaphore& s, std::int64_t n = 1) : semaphore_(&s), n_(n) {
    s.acquire(n);
  }
  /// Takes over n permits that the caller has acquired, for example by try_acquire().
  [[nodiscard]] permit_guard(semaphore& s, std::adopt_lock_t, std::int64_t n = 1) noexcept
      : semaphore_(&s), n_(n) {}
  permit_guard(permit_guard&& other) noexcept
      : semaphore_(std::exchange(other.semaphore_, nullptr)), n_(other.n_) {}
  permit_guard& operator=(permit_guard&& other) noexcept {
    permit_guard old = std::move(other);
    std::swap(semaphore_, old.semaphore_);
    std::swap(n_, old.n_);
    return *this;
  }
  ~permit_guard() { release(); }

  /// True if it holds permits.
  explicit operator bool() const noexcept { return semaphore_ != nullptr; }
  /// Gives the permits back now.
  void release() {
    if (semaphore_ != nullptr) std::exchange(semaphore_, nullptr)->release(n_);
  }

 private:
  semaphore* semaphore_ = nullptr;
  std::int64_t n_ = 0;
};

}  // namespace gofer
