// Time. What the library knows of time comes from here: a clock that stands still, or runs faster,
// would take the place of these functions.
#pragma once

#include <cstdint>

namespace gofer::internal::os {

/// Of the monotonic clock.
int64_t now_ns();

/// The kernel reads its own clock from the processor's counter (arch::ticks), so that counter is in
/// step on all cores.
bool kernel_trusts_ticks();

/// Sleeps about that long; the kernel's timer slack (50 us) comes on top.
void sleep_ns(int64_t ns);

}  // namespace gofer::internal::os
