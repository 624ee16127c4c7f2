// The process as a whole.
#pragma once

namespace gofer::internal::os {

/// Ends the process at once: no exit handlers, no destructors.
[[noreturn]] void end_process(int status);

/// To be called in the child of every fork from now on.
void at_fork_in_child(void (*f)());

int process_id();

/// Cores that are switched on.
int online_cores();

}  // namespace gofer::internal::os
