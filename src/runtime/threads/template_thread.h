// How Ms ask for one more: see template_thread.cc.
#pragma once

#include "runtime/sched/sched.h"

namespace gofer::internal {

/// 0 or an errno value.
int start_template_thread();

/// Needs the scheduler's lock: m's thread is to be started. tell_template_thread() must follow.
void want_thread_locked(M* m) GOFER_REQUIRES(sched.lock);
void tell_template_thread();

}  // namespace gofer::internal
