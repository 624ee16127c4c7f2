// Stopping the world, and the number of Ps. See stop_world.cc.
#pragma once

#include "runtime/sched/sched.h"
#include "runtime/sched/sched_lock.h"

namespace gofer::internal {

/// The caller is outside of the runtime, and inside afterwards. Returns the caller's M, or nullptr
/// in a foreign thread.
M* stop_the_world() GOFER_ACQUIRES(sched.world);
/// m is what stop_the_world has returned. The caller is outside of the runtime afterwards.
void start_the_world(M* m) GOFER_RELEASES(sched.world);

/// Sets the number of Ps while the world is stopped. Returns how many there are then: fewer than n
/// if there is no memory for them.
int resize_ps(int n) GOFER_REQUIRES(sched_lock);

}  // namespace gofer::internal
