// The end of the process by exit() or by the return of main. See exit.cc.
#pragma once

#include "os/thread.h"
#include "runtime/process/process_state.h"

namespace gofer::internal {

/// If the calling thread is the main thread or an M, and calls exit(), the runtime hears of it
/// before the first exit handler runs.
void watch_for_exit();
/// A thread_local destructor calls this: the thread ends, or it has called exit().
void note_end_of_thread();
void install_exit_handlers();

/// Whether the calling thread runs the exit handlers.
inline bool is_exiting_thread() {
  const int tid = process.exit_tid.load(relaxed);
  return tid != 0 && tid == os::thread_id();
}

/// The calling thread runs the exit handlers and waits for what can never happen. Says so, and goes
/// on with the handlers that are left.
[[noreturn]] void exit_without_wait();

}  // namespace gofer::internal
