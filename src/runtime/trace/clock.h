// The tracer's clock: nanoseconds of the monotonic clock, from the processor's counter where that
// is steady, because it is read in a third of the time.
#pragma once

#include <cstdint>

#include "arch/arch.h"
#include "os/clock.h"
#include "runtime/base/atomic.h"

namespace gofer::internal::tracer {

struct Clock {
  uint64_t base_ticks = 0;
  uint64_t base_ns = 0;
  uint64_t ns_per_tick = 0;  // in units of 2^-32; 0: the counter is not used
};
extern constinit Clock clock;

/// Compares the counter with the monotonic clock. Takes some milliseconds, the first time.
void set_clock();

inline uint64_t now() {
  if (clock.ns_per_tick == 0) [[unlikely]]
    return static_cast<uint64_t>(os::now_ns());
  const uint64_t ticks = arch::ticks() - clock.base_ticks;
  return clock.base_ns +
         static_cast<uint64_t>(static_cast<unsigned __int128>(ticks) * clock.ns_per_tick >> 32);
}

}  // namespace gofer::internal::tracer
