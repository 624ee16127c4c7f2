// Converts time limits from std::chrono to nanoseconds of the steady clock, which the runtime uses.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace gofer::detail {

inline constexpr std::int64_t no_deadline = std::numeric_limits<std::int64_t>::max();

/// Rounds up to a nanosecond, and limits the result to what the type can hold.
template <class Rep, class Period>
std::int64_t to_ns(std::chrono::duration<Rep, Period> d) {
  using seconds = std::chrono::duration<double>;
  constexpr double limit = 9.2e9;  // 292 years
  const double s = seconds(d).count();
  if (s != s) return 0;
  if (s >= limit) return no_deadline;
  if (s <= -limit) return -no_deadline;
  return std::chrono::ceil<std::chrono::nanoseconds>(d).count();
}

inline std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

inline std::int64_t after_ns(std::int64_t ns) {
  if (ns <= 0) return 0;
  const std::int64_t now = now_ns();
  return ns >= no_deadline - now ? no_deadline : now + ns;
}

template <class Rep, class Period>
std::int64_t deadline_after(std::chrono::duration<Rep, Period> d) {
  return after_ns(to_ns(d));
}

/// For a clock other than the steady one, the remaining time is read once; a later jump of that
/// clock is not noticed.
template <class Clock, class Duration>
std::int64_t deadline_at(std::chrono::time_point<Clock, Duration> t) {
  if constexpr (std::is_same_v<Clock, std::chrono::steady_clock>) {
    return to_ns(t.time_since_epoch());
  } else {
    const auto now = Clock::now();
    return t <= now ? 0 : deadline_after(t - now);
  }
}

}  // namespace gofer::detail
