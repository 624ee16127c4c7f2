// rate_limiter: a limit on events per second, with short bursts allowed.
#pragma once

#include <gofer/detail/config.h>
#include <gofer/mutex.h>

#include <cstdint>

namespace gofer {

class context;

/// A token bucket: `burst` tokens at most, refilled at `rate` a second. Callers of wait() get their
/// tokens in the order of the calls.
class GOFER_API rate_limiter {
 public:
  /// Throws std::invalid_argument unless rate > 0 and burst >= 1.
  rate_limiter(double rate, double burst);

  /// Takes n tokens if they are available now.
  [[nodiscard]] bool allow(double n = 1);
  /// Waits for n tokens and takes them. Throws std::invalid_argument if n is more than `burst`.
  void wait(double n = 1);
  /// Returns false, and takes nothing, if the context is done, or will be, before they are
  /// available.
  [[nodiscard]] bool wait(const context& ctx, double n = 1);

 private:
  void refill();
  std::int64_t take(double n);

  const double rate_;
  const double burst_;
  mutex mutex_;
  double tokens_;
  std::int64_t last_ns_;
};

}  // namespace gofer
