// Runs code that may fault: see fault_guard.cc.
#pragma once

namespace gofer::internal {

/// Calls run(argument). Returns false if a fault (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT) ended
/// the call; nothing that it had begun is undone. For one
/// thread at a time: if another one does not come to an end with it, the call is made unguarded.
bool run_guarded(void (*run)(void*), void* argument);

}  // namespace gofer::internal
