// latch and barrier: points that all participants must reach before any continues.
#pragma once

#include <gofer/cond.h>
#include <gofer/detail/config.h>
#include <gofer/detail/deadline.h>
#include <gofer/detail/function.h>
#include <gofer/mutex.h>
#include <gofer/wait_group.h>

#include <climits>
#include <cstddef>

namespace gofer {

/// A count that only goes down, for one use, as std::latch.
class latch {
 public:
  static constexpr int max() noexcept { return INT_MAX; }
  explicit latch(int count) { group_.add(count); }
  latch(const latch&) = delete;
  latch& operator=(const latch&) = delete;

  void count_down(int n = 1) { group_.add(-n); }
  /// True if the count is zero.
  [[nodiscard]] bool try_wait() const { return group_.try_wait(); }
  void wait() const { group_.wait(); }
  /// Returns false if the time was over, or the context was done, first.
  template <detail::duration_like D>
  [[nodiscard]] bool wait_for(D d) const {
    return group_.wait_for(d);
  }
  template <detail::time_point_like Time>
  [[nodiscard]] bool wait_until(Time t) const {
    return group_.wait_until(t);
  }
  [[nodiscard]] bool wait(const context& ctx) const { return group_.wait(ctx); }
  void arrive_and_wait(int n = 1) {
    count_down(n);
    wait();
  }
  /// Counts down in any case. Returns false if the context was done first.
  [[nodiscard]] bool arrive_and_wait(const context& ctx, int n = 1) {
    count_down(n);
    return wait(ctx);
  }

 private:
  mutable wait_group group_;
};

/// A meeting point for a fixed number of participants, used again and again. The last participant
/// to arrive calls `completion`, then all continue. The completion runs under the barrier's lock,
/// so it must not call the barrier. If it throws, the phase still ends: the last participant gets
/// the exception, and the others continue. An arrival beyond the number of participants throws
/// std::logic_error.
class GOFER_API barrier {
 public:
  /// The phase in which a participant has arrived, for wait().
  class [[nodiscard]] arrival_token {
    friend class barrier;
    explicit arrival_token(std::size_t phase) : phase_(phase) {}
    std::size_t phase_;
  };
  static constexpr std::size_t max() noexcept { return static_cast<std::size_t>(-1); }
  explicit barrier(std::size_t participants, detail::shared_function<void()> completion = {});
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;
  ~barrier();

  void arrive_and_wait();
  /// Returns false if the context was done first. The arrival is then revoked, and the others keep
  /// waiting.
  [[nodiscard]] bool arrive_and_wait(const context& ctx);
  /// Arrives n times, without waiting.
  arrival_token arrive(std::size_t n = 1);
  /// Waits for the end of the phase in which the token was given.
  void wait(arrival_token token);
  /// Returns false if the context was done first; the arrival still counts.
  [[nodiscard]] bool wait(const context& ctx, arrival_token token);
  /// Arrives, and leaves the barrier after this phase.
  void arrive_and_drop();

 private:
  arrival_token arrive_locked(std::size_t n);
  void check_room(std::size_t n) const;
  void next_phase();

  mutex mutex_;
  cond all_here_;
  std::size_t expected_;
  std::size_t waiting_for_;
  std::size_t phase_ = 0;
  detail::shared_function<void()> completion_;
};

}  // namespace gofer
