// Stopping the world, and the number of Ps. See stop_world.cc.
#pragma once

#include "runtime/base/atomic.h"
#include "runtime/base/lock.h"
#include "runtime/metrics/histogram.h"
#include "runtime/sched/sched_lock.h"
#include "runtime/threads/m.h"

namespace gofer::internal {

struct alignas(64) World {
  atomic<bool> stopping{false};                    // the world is to stop
  int stop_wait GOFER_GUARDED_BY(sched_lock) = 0;  // Ps yet to stop
  Lock lock{LockRank::world};                      // of the stopper; taken outside of the runtime
  Note stopped;                                    // the last P has stopped
};

[[gnu::visibility("hidden")]] extern World world;

/// How long the world was stopped. Written under world.lock.
struct Pauses {
  Histogram stopping;    // from the request until every P has stopped
  Histogram total;       // from the request until the world goes on
  int64_t begin_ns = 0;  // of the present one
};

[[gnu::visibility("hidden")]] extern Pauses world_pauses;

/// The caller is outside of the runtime, and inside afterwards. Returns the caller's M, or nullptr
/// in a foreign thread.
M* stop_the_world() GOFER_ACQUIRES(world.lock);
/// The same for a foreign thread with which the process is about to end, so that the world does not
/// start again. Returns false if the world did not stop within the time; it may have stopped in
/// part then.
bool stop_the_world_for_good(int64_t limit_ns);
/// m is what stop_the_world has returned. The caller is outside of the runtime afterwards.
void start_the_world(M* m) GOFER_RELEASES(world.lock);

/// Sets the number of Ps while the world is stopped. Returns how many there are then: fewer than n
/// if there is no memory for them.
int resize_ps(int n) GOFER_REQUIRES(sched_lock);

}  // namespace gofer::internal
