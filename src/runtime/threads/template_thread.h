// How Ms ask for one more: see template_thread.cc.
#pragma once

#include "runtime/sched/sched_lock.h"
#include "runtime/threads/m.h"

namespace gofer::internal {

/// Returns 0 or an errno value.
int start_template_thread();

/// Requests a thread for m. The caller releases the lock and then calls tell_template_thread().
void want_thread_locked(M* m) GOFER_REQUIRES(sched_lock);
void tell_template_thread();

}  // namespace gofer::internal
