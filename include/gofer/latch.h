// latch and barrier: points that all participants must reach before any continues.
#pragma once

#include <gofer/cond.h>
#include <gofer/mutex.h>
#include <gofer/wait_group.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace gofer {

/// A count that only goes down, for one use, as std::latch.
class latch {
 public:
  static constexpr int max() noexcept { return std::numeric_limits<int>::max(); }
  explicit latch(int count) { group_.add(count); }
  latch(const latch&) = delete;
  latch& operator=(const latch&) = delete;

  void count_down(int n = 1) { group_.add(-n); }
  /// True if the count is zero.
  [[nodiscard]] bool try_wait() const { return group_.wait_for(std::chrono::seconds(0)); }
  void wait() const { group_.wait(); }
  /// Returns false if the time was over, or the context was done, first.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> d) const {
    return group_.wait_for(d);
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool wait_until(std::chrono::time_point<Clock, Duration> t) const {
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
class barrier {
 public:
  /// The phase in which a participant has arrived, for wait().
  class [[nodiscard]] arrival_token {
    friend class barrier;
    explicit arrival_token(std::size_t phase) : phase_(phase) {}
    std::size_t phase_;
  };
  static constexpr std::size_t max() noexcept { return std::numeric_limits<std::size_t>::max(); }
  explicit barrier(std::size_t participants, std::function<void()> completion = {})
      : expected_(participants), waiting_for_(participants), completion_(std::move(completion)) {}
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;

  void arrive_and_wait() {
    std::unique_lock lock(mutex_);
    wait_locked(lock, arrive_locked(1));
  }
  /// Returns false if the context was done first. The arrival is then revoked, and the others keep
  /// waiting.
  [[nodiscard]] bool arrive_and_wait(const context& ctx) {
    if (!mutex_.lock(ctx)) return false;
    std::unique_lock lock(mutex_, std::adopt_lock);
    const arrival_token token = arrive_locked(1);
    if (all_here_.wait(ctx, lock, [&] { return phase_ != token.phase_; })) return true;
    ++waiting_for_;
    return false;
  }
  /// Arrives n times, without waiting.
  arrival_token arrive(std::size_t n = 1) {
    std::lock_guard lock(mutex_);
    return arrive_locked(n);
  }
  /// Waits for the end of the phase in which the token was given.
  void wait(arrival_token token) {
    std::unique_lock lock(mutex_);
    wait_locked(lock, token);
  }
  /// Returns false if the context was done first; the arrival still counts.
  [[nodiscard]] bool wait(const context& ctx, arrival_token token) {
    if (!mutex_.lock(ctx)) return false;
    std::unique_lock lock(mutex_, std::adopt_lock);
    return all_here_.wait(ctx, lock, [&] { return phase_ != token.phase_; });
  }
  /// Arrives, and leaves the barrier after this phase.
  void arrive_and_drop() {
    std::lock_guard lock(mutex_);
    check_room(1);
    --expected_;
    if (--waiting_for_ == 0) next_phase();
  }

 private:
  arrival_token arrive_locked(std::size_t n) {
    check_room(n);
    const arrival_token token(phase_);
    waiting_for_ -= n;
    if (waiting_for_ == 0) next_phase();
    return token;
  }
  void check_room(std::size_t n) const {
    if (n > waiting_for_) throw std::logic_error("gofer::barrier: more arrivals than participants");
  }
  void wait_locked(std::unique_lock<mutex>& lock, arrival_token token) {
    all_here_.wait(lock, [&] { return phase_ != token.phase_; });
  }
  void next_phase() {
    // The guard runs even if the completion ends by an exception or by goexit().
    struct guard {
      barrier& b;
      ~guard() {
        b.waiting_for_ = b.expected_;
        ++b.phase_;
        b.all_here_.broadcast();
      }
    } g{*this};
    if (completion_) completion_();
  }

  mutex mutex_;
  cond all_here_;
  std::size_t expected_;
  std::size_t waiting_for_;
  std::size_t phase_ = 0;
  std::function<void()> completion_;
};

}  // namespace gofer
