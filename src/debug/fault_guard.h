// Runs code that may fault: see fault_guard.cc.
#pragma once

namespace gofer::internal {

/// Calls run(argument). Returns false if a fault (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT) ended
/// the call; nothing that it had begun is undone. One thread at a time.
bool run_guarded(void (*run)(void*), void* argument);

}  // namespace gofer::internal
