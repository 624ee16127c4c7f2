// A trace from its begin to its end: the tracer's thread, and what is asked of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/atomic.h"
#include "runtime/threads/m.h"
#include "runtime/trace/buffers.h"

namespace gofer::internal::tracer {

struct Session {
  /// What is written now belongs to this generation; 0: nothing is recorded.
  alignas(64) atomic<uint64_t> generation{0};
  atomic<int> failure{0};  // an errno value: the trace ends, without its last generation

  alignas(64) atomic<uint64_t> number{0};  // of the trace: how many have begun
  Note work;                               // for the tracer's thread
};
extern constinit Session session;

/// The trace ends with this error, and without the generation that is being written.
void fail(int error);

/// Begins a trace that is written to a descriptor, and ends it. Errno values. The world need not be
/// stopped.
int start_recording(int fd, bool owns_fd);
int stop_recording();
bool is_recording();
/// The same when the runtime starts and has no threads yet.
int start_first_recording(int fd);

/// The trace of this number is to end, if it is still being recorded.
void request_end(uint64_t number);

/// The process ends: what has been recorded is written, if that is possible within the time. Safe
/// in signal handlers.
void finish_at_exit(int64_t limit_ns);
void finish_at_report();
/// In the child of a fork.
void forget_in_child();
/// Threads that the tracer has: for the count of all threads.
int own_threads();

}  // namespace gofer::internal::tracer
