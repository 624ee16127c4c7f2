// Since when a goroutine waits, at the price of a load and a store.
//
// A goroutine notes the time when it parks. Reading the kernel's clock there would double the cost
// of a park, so it notes the value of a variable, which others keep up to date: sysmon in each of
// its rounds, and every M that gets a P after it slept. While a P is in use sysmon makes a round at
// least every 10 ms; while none is, nothing parks, and the first M that wakes writes the clock
// before it runs a goroutine. So the clock is some 10 ms late at most, unless sysmon gets no core.
//
// The unit is 2^26 ns, 67 ms. 32 bits of it are nine years.
#pragma once

#include <cstdint>

#include "runtime/base/atomic.h"

namespace gofer::internal {

/// Read at each park and seldom written, so it has a cache line of its own.
struct alignas(64) CoarseClock {
  atomic<uint32_t> now{0};
};

[[gnu::visibility("hidden")]] extern CoarseClock coarse_clock;

inline constexpr int coarse_unit_bits = 26;

inline uint32_t coarse_time(int64_t ns) { return static_cast<uint32_t>(ns >> coarse_unit_bits); }

/// The time from then to now_ns.
inline int64_t since_coarse(uint32_t then, int64_t now_ns) {
  const auto units = static_cast<int32_t>(coarse_time(now_ns) - then);
  return units > 0 ? int64_t{units} << coarse_unit_bits : 0;
}

/// The time was now_ns a moment ago.
inline void set_coarse_clock(int64_t now_ns) {
  const uint32_t now = coarse_time(now_ns);
  if (coarse_clock.now.load(relaxed) != now) coarse_clock.now.store(now, relaxed);
}

}  // namespace gofer::internal
