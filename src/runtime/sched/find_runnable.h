// Where an M looks for work: see find_runnable.cc.
#pragma once

#include "runtime/threads/m.h"

namespace gofer::internal {

/// Returns a goroutine to run, and sleeps until there is one. Returns nullptr if the thread is to
/// end. Sets `inherits` if the goroutine shares the time slice of the one before it.
G* find_runnable(M* m, bool& inherits);

/// No goroutine is scheduled any more. If the goroutine of m makes the report and waits in it, m
/// ends the process.
[[noreturn]] void wait_at_exit(M* m);

}  // namespace gofer::internal
