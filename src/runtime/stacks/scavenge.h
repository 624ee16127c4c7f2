// Memory of stacks that once went deep goes back to the system.
#pragma once

#include <cstdint>

namespace gofer::internal {

struct G;

/// If it is time, a part of a pass over all stacks, some milliseconds. When it wants to be called
/// next: no_timer if all was idle before the last pass and no goroutine has run since. In sysmon.
int64_t scavenge(int64_t now);

/// Waits while the stack of g, which the calling M is about to run, is being trimmed.
void wait_until_trimmed(G* g);

}  // namespace gofer::internal
