// Whether the runtime has started, and whether the process ends or is the child of a fork.
#pragma once

#include "runtime/base/atomic.h"

namespace gofer::internal {

struct M;

/// Hot paths read it, and it changes a few times in the life of a process. So it has a cache line
/// of its own.
struct alignas(64) ProcessState {
  atomic<bool> started{false};
  atomic<bool> forked{false};   // this is the child of a fork
  atomic<bool> exiting{false};  // a report is made: no goroutine is scheduled any more
  atomic<M*> exit_m{nullptr};   // the M whose goroutine makes the report, if one does
  atomic<int> exit_tid{0};      // the thread that runs the exit handlers, if one does
};

[[gnu::visibility("hidden")]] extern ProcessState process;

}  // namespace gofer::internal
