// Memory of stacks that once went deep goes back to the system.
#pragma once

#include <cstdint>

namespace gofer::internal {

struct G;
struct M;

/// If it is time, a part of a pass over all stacks, some milliseconds. When it wants to be called
/// next: no_timer if all was idle before the last pass and no goroutine has run since. In sysmon.
int64_t scavenge(int64_t now);

/// m is about to run g, of which a bit of G::marks is set. Waits while the stack of g is being
/// trimmed, and records the sample if g is one (metrics/sampler.h).
void run_marked(M* m, G* g);

}  // namespace gofer::internal
