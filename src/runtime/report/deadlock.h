// The detector of deadlocks: see deadlock.cc.
#pragma once

#include <cstdint>

namespace gofer::internal {

/// If it is certain that no goroutine can ever run again, reports that and ends the process. In the
/// thread that runs the exit handlers, goes on with them instead.
void check_deadlock();

/// The first look comes so long after the last M has gone idle. Each look puts the next one off,
/// up to the second time.
inline constexpr int64_t first_deadlock_look_ns = 10'000'000;
inline constexpr int64_t last_deadlock_look_ns = 10'000'000'000;
/// The time from the next look to the one after it, if it was look_ns before.
int64_t next_deadlock_look(int64_t look_ns);

}  // namespace gofer::internal
