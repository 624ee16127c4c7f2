// What a goroutine does to its thread by calls of libc: see thread_calls.cc.
#pragma once

#include <signal.h>

namespace gofer::internal {

/// The signal mask of every M is `starters`, that of the thread that starts the runtime, without
/// SIGURG.
void set_usual_mask(const sigset_t& starters);

}  // namespace gofer::internal
