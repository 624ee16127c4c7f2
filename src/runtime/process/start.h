// The runtime's start, on first use, and the end of scheduling. See start.cc.
#pragma once

#include "runtime/process/process_state.h"

namespace gofer::internal {

void start_runtime();
inline void ensure_started() {
  if (!process.started.load(acquire)) [[unlikely]]
    start_runtime();
}

/// The runtime was used in the child of a fork: says so and aborts.
[[noreturn]] void used_after_fork();

/// The caller makes a report with which the process ends. From now on no goroutine is scheduled and
/// none is paused; those that compute go on like detached threads.
void stop_scheduling();

}  // namespace gofer::internal
