// Memory of stacks that once went deep goes back to the system.
#pragma once

#include <cstdint>

namespace gofer::internal {

/// If it is time, a part of a pass over all stacks, some milliseconds. When it wants to be called
/// next: no_timer if no goroutine has run since the last pass. In sysmon.
int64_t scavenge(int64_t now, bool idle);

}  // namespace gofer::internal
