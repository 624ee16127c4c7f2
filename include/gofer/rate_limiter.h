// rate_limiter: a limit on events per second, with short bursts allowed.
#pragma once

#include <gofer/context.h>
#include <gofer/mutex.h>
#include <gofer/timer.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <stdexcept>

namespace gofer {

/// A token bucket: `burst` tokens at most, refilled at `rate` a second. Callers of wait() get their
/// tokens in the order of the calls.
class rate_limiter {
 public:
  rate_limiter(double rate, double burst) : rate_(rate), burst_(burst), tokens_(burst) {
    if (!(rate > 0) || !(burst >= 1)) {
      throw std::invalid_argument("gofer::rate_limiter: needs a rate above 0 and a burst of 1");
    }
  }

  /// Takes n tokens if they are available now.
  [[nodiscard]] bool allow(double n = 1) {
    std::lock_guard guard(mutex_);
    refill();
    if (tokens_ < n) return false;
    tokens_ -= n;
    return true;
  }
  /// Waits for n tokens and takes them. Throws std::invalid_argument if n is more than `burst`.
  void wait(double n = 1) { sleep_for(take(n)); }
  /// Returns false, and takes nothing, if the context is done, or will be, before they are
  /// available.
  [[nodiscard]] bool wait(const context& ctx, double n = 1) {
    if (ctx.err()) return false;
    const clock::duration delay = take(n);
    const auto deadline = ctx.deadline();
    const bool in_time = !deadline || clock::now() + delay <= *deadline;
    if (in_time && sleep_for(ctx, delay)) return true;
    std::lock_guard guard(mutex_);
    tokens_ = std::min(burst_, tokens_ + n);
    return false;
  }

 private:
  using clock = std::chrono::steady_clock;

  void refill() {
    const clock::time_point now = clock::now();
    const double elapsed = std::chrono::duration<double>(now - last_).count();
    tokens_ = std::min(burst_, tokens_ + elapsed * rate_);
    last_ = now;
  }
  // Takes tokens before they are available. The negative balance then tells how long to wait.
  clock::duration take(double n) {
    if (n > burst_) throw std::invalid_argument("gofer::rate_limiter: more than a burst");
    std::lock_guard guard(mutex_);
    refill();
    tokens_ -= n;
    if (tokens_ >= 0) return {};
    return std::chrono::ceil<clock::duration>(std::chrono::duration<double>(-tokens_ / rate_));
  }

  const double rate_;
  const double burst_;
  mutex mutex_;
  double tokens_;
  clock::time_point last_ = clock::now();
};

}  // namespace gofer
