// Ms that wait on their own threads for a P for their own goroutine. See bound.cc.
#pragma once

#include "runtime/sched/sched_lock.h"
#include "runtime/threads/m.h"

namespace gofer::internal {

/// How many Ms wait for a P for their own goroutine.
[[gnu::visibility("hidden")]] extern int idle_bound_ms GOFER_GUARDED_BY(sched_lock);

/// Blocks until this M is handed a P for its own goroutine. Returns false if the M must continue
/// without one (M::let_go, M::released).
bool wait_for_p(M* m);
/// m gives its P to another M, and waits until it gets one for its own goroutine.
void stop_bound_m(M* m);
/// Gives the P of m to the M whose own goroutine g is.
void start_bound_m(M* m, G* g);

/// m stops for the M that stops the world. Returns false if the thread of m is to end.
bool stop_for_world(M* m);

}  // namespace gofer::internal
