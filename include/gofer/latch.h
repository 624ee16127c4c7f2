// latch and barrier: points that several must reach before one goes on.
#pragma once

#include <gofer/cond.h>
#include <gofer/mutex.h>
#include <gofer/wait_group.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <utility>

namespace gofer {

/// A count that only goes down, once, as std::latch.
class latch {
 public:
  explicit latch(int count) { group_.add(count); }
  void count_down(int n = 1) { group_.add(-n); }
  void wait() { group_.wait(); }
  /// False: the time was over, or the context was done, before.
  template <class Rep, class Period>
  bool wait_for(std::chrono::duration<Rep, Period> d) {
    return group_.wait_for(d);
  }
  bool wait(const context& ctx) { return group_.wait(ctx); }
  void arrive_and_wait(int n = 1) {
    count_down(n);
    wait();
  }

 private:
  wait_group group_;
};

/// A meeting point for a fixed number of participants, again and again. The last to arrive calls
/// `completion`, then all go on.
class barrier {
 public:
  explicit barrier(std::size_t participants, std::function<void()> completion = {})
      : expected_(participants), waiting_for_(participants), completion_(std::move(completion)) {}
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;

  void arrive_and_wait() {
    std::unique_lock lock(mutex_);
    const std::size_t phase = phase_;
    if (--waiting_for_ == 0) {
      next_phase();
    } else {
      all_here_.wait(lock, [&] { return phase_ != phase; });
    }
  }
  /// Arrives, and takes no part in the phases after this one.
  void arrive_and_drop() {
    std::lock_guard lock(mutex_);
    --expected_;
    if (--waiting_for_ == 0) next_phase();
  }

 private:
  void next_phase() {
    if (completion_) completion_();
    waiting_for_ = expected_;
    ++phase_;
    all_here_.broadcast();
  }

  mutex mutex_;
  cond all_here_;
  std::size_t expected_;
  std::size_t waiting_for_;
  std::size_t phase_ = 0;
  std::function<void()> completion_;
};

}  // namespace gofer
