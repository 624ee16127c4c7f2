// The begin of a trace: what there is at that moment.
#pragma once

#include <cstdint>

#include "runtime/sched/sched_lock.h"
#include "runtime/threads/m.h"

namespace gofer::internal::tracer {

/// Begins the generation `first` of a new trace. The world is stopped by `caller`, which is nullptr
/// if a foreign thread has stopped it, or if the runtime has no Ms yet.
void begin_trace(M* caller, uint64_t first) GOFER_REQUIRES(sched_lock);

}  // namespace gofer::internal::tracer
