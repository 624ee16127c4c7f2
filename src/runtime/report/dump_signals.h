// Dumps on signals: see dump_signals.cc.
#pragma once

namespace gofer::internal {

/// Which signals make a dump; once, before start_dump_thread.
void set_dump_signals(bool sigquit, int dump_signal);

/// Starts the thread that makes the dumps, and installs the handlers. Does nothing if no signal is
/// to make one, or if the program handles them all.
void start_dump_thread();
/// How many threads that are: for the count of all threads.
int dump_threads();

}  // namespace gofer::internal
