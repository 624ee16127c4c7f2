// A token bucket. Callers that wait take tokens that are not there yet: the negative balance tells
// how long to wait, and the next caller waits behind them.
#include <gofer/context.h>
#include <gofer/detail/deadline.h>
#include <gofer/rate_limiter.h>
#include <gofer/timer.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <stdexcept>

namespace gofer {

rate_limiter::rate_limiter(double rate, double burst)
    : rate_(rate), burst_(burst), tokens_(burst), last_ns_(detail::now_ns()) {
  if (!(rate > 0) || !(burst >= 1)) {
    throw std::invalid_argument("gofer::rate_limiter: needs a rate above 0 and a burst of 1");
  }
}

bool rate_limiter::allow(double n) {
  std::lock_guard guard(mutex_);
  refill();
  if (tokens_ < n) return false;
  tokens_ -= n;
  return true;
}

void rate_limiter::wait(double n) { detail::sleep_until_ns(detail::after_ns(take(n))); }

bool rate_limiter::wait(const context& ctx, double n) {
  if (ctx.err()) return false;
  const std::int64_t delay_ns = take(n);
  const auto deadline = ctx.deadline();
  const bool in_time = !deadline || detail::now_ns() + delay_ns <= detail::deadline_at(*deadline);
  if (in_time && detail::sleep_until_ns(ctx, detail::after_ns(delay_ns))) return true;
  std::lock_guard guard(mutex_);
  tokens_ = std::min(burst_, tokens_ + n);
  return false;
}

// With the lock.
void rate_limiter::refill() {
  const std::int64_t now_ns = detail::now_ns();
  tokens_ = std::min(burst_, tokens_ + static_cast<double>(now_ns - last_ns_) * 1e-9 * rate_);
  last_ns_ = now_ns;
}

// Returns how long the caller has to wait, in nanoseconds.
std::int64_t rate_limiter::take(double n) {
  if (n > burst_) throw std::invalid_argument("gofer::rate_limiter: more than a burst");
  std::lock_guard guard(mutex_);
  refill();
  tokens_ -= n;
  if (tokens_ >= 0) return 0;
  return detail::to_ns(std::chrono::duration<double>(-tokens_ / rate_));
}

}  // namespace gofer
