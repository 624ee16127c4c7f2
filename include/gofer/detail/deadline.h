// Converts time limits from std::chrono to nanoseconds of the clock that the runtime uses,
// CLOCK_MONOTONIC, which std::chrono::steady_clock reads, too.
//
// <chrono> is not included: with g++ 12 it is 31,000 lines, because it brings in streams. Callers
// that have a duration to pass have included it. So durations and points in time are told by their
// members.
#pragma once

#include <gofer/detail/config.h>

#include <cstdint>
#include <type_traits>

namespace gofer::detail {

inline constexpr std::int64_t no_deadline = INT64_MAX;

/// A std::chrono::duration.
template <class D>
concept duration_like = requires(const D& d) {
  typename D::rep;
  D::period::num;
  D::period::den;
  d.count();
};

/// A std::chrono::time_point.
template <class T>
concept time_point_like = requires(const T& t) {
  typename T::clock;
  typename T::duration;
  t.time_since_epoch();
};

constexpr std::int64_t common_divisor(std::int64_t a, std::int64_t b) {
  return b == 0 ? a : common_divisor(b, a % b);
}

/// Rounds up to a nanosecond, and limits the result to what the type can hold.
template <duration_like D>
constexpr std::int64_t to_ns(const D& d) {
  using rep = typename D::rep;
  constexpr std::int64_t num = D::period::num;
  constexpr std::int64_t den = D::period::den;
  constexpr double limit =
      9.2e9 * static_cast<double>(den) / static_cast<double>(num);  // 292 years
  const double approximate = static_cast<double>(d.count());
  if (approximate != approximate) return 0;
  if (approximate >= limit) return no_deadline;
  if (approximate <= -limit) return -no_deadline;

  // A tick is up / down nanoseconds.
  constexpr std::int64_t second = 1'000'000'000;
  constexpr std::int64_t common = common_divisor(second, den);
  if constexpr (std::is_integral_v<rep>) {
    using wide = std::common_type_t<rep, std::int64_t>;
    constexpr wide up = num * (second / common);
    constexpr wide down = den / common;
    const wide count = d.count();
    const wide rest = count % down * up;
    const bool rounds_up = rest > 0 && rest % down != 0;
    return static_cast<std::int64_t>(count / down * up + rest / down + (rounds_up ? 1 : 0));
  } else {
    using real =
        std::common_type_t<double, std::conditional_t<std::is_floating_point_v<rep>, rep, double>>;
    const real exact = static_cast<real>(d.count()) * static_cast<real>(num) *
                       static_cast<real>(second / common) / static_cast<real>(den / common);
    const auto whole = static_cast<std::int64_t>(exact);
    return whole + (static_cast<real>(whole) < exact ? 1 : 0);
  }
}

/// Reads the runtime's clock.
GOFER_API std::int64_t now_ns() noexcept;
/// The time in ns nanoseconds, ns > 0.
GOFER_API std::int64_t in_ns(std::int64_t ns) noexcept;

inline std::int64_t after_ns(std::int64_t ns) { return ns <= 0 ? 0 : in_ns(ns); }

template <duration_like D>
std::int64_t deadline_after(const D& d) {
  return after_ns(to_ns(d));
}

/// True for std::chrono::steady_clock, which cannot be named here: the name of this function has
/// the full name of its argument at the end, as in "[with Clock = std::chrono::_V2::steady_clock]".
template <class Clock>
consteval bool is_steady_clock() {
  constexpr auto& text = __PRETTY_FUNCTION__;
  constexpr const char begin[] = "Clock = std::";
  constexpr const char end[] = "::steady_clock]";
  const auto is_at = [&](const auto& part, unsigned long at) {
    for (unsigned long i = 0; i + 1 < sizeof part; ++i) {
      if (text[at + i] != part[i]) return false;
    }
    return true;
  };
  if (sizeof text <= sizeof begin + sizeof end || !is_at(end, sizeof text - sizeof end)) {
    return false;
  }
  for (unsigned long at = 0; at + sizeof begin < sizeof text; ++at) {
    if (is_at(begin, at)) return true;
  }
  return false;
}

/// For a clock other than the steady one, the remaining time is read once; a later jump of that
/// clock is not noticed.
template <time_point_like T>
std::int64_t deadline_at(const T& t) {
  if constexpr (is_steady_clock<typename T::clock>()) {
    return to_ns(t.time_since_epoch());
  } else {
    const auto now = T::clock::now();
    return t <= now ? 0 : deadline_after(t - now);
  }
}

}  // namespace gofer::detail
