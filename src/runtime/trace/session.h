// A trace from its begin to its end: generations, buffers, the thread that writes them out.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/atomic.h"
#include "runtime/base/lock.h"
#include "runtime/threads/m.h"
#include "runtime/trace/stream.h"

namespace gofer::internal::tracer {

/// Full buffers of one generation, in the order in which they became full.
struct BufferList {
  Buffer* first = nullptr;
  Buffer* last = nullptr;
};

struct Session {
  /// What is written now belongs to this generation; 0: nothing is recorded.
  alignas(64) atomic<uint64_t> generation{0};

  Lock lists{LockRank::trace_lists};
  BufferList full[2] GOFER_GUARDED_BY(lists);  // by generation, modulo 2
  Buffer* free GOFER_GUARDED_BY(lists) = nullptr;
  int buffers GOFER_GUARDED_BY(lists) = 0;  // that there are
  atomic<uint64_t> bytes{0};                // in full buffers of the generation

  atomic<uint64_t> number{0};  // of the trace: how many have begun
  Note work;                   // for the tracer's thread
  atomic<int> failure{0};      // an errno value: the trace ends, without its last generation
};
extern constinit Session session;

/// Memory that a trace may take while it waits to be written.
inline constexpr int most_buffers = 4096;

/// An empty buffer for events of m, in place of `full`, which may be nullptr. Returns nullptr if
/// none is to be had, and the trace ends.
Buffer* next_buffer(uint64_t m, Buffer* full, uint64_t generation, uint64_t time);
/// The buffer is complete: the tracer's thread writes it out.
void retire(Buffer* b);
/// The trace ends with this error, and without the generation that is being written.
void fail(int error);

/// Begins and ends a trace; errno values. The world need not be stopped.
int start_recording(int fd, bool owns_fd);
int stop_recording();
/// At the runtime's start, before it has threads: GOFER_TRACE.
void start_from_environment(const char* path);
/// The process ends: what has been recorded is written, if that is possible within the time.
void finish_at_exit(int64_t limit_ns);
/// In the child of a fork.
void forget_in_child();
/// Threads that the tracer has: for the count of all threads.
int own_threads();

}  // namespace gofer::internal::tracer
