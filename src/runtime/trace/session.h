// A trace from its begin to its end: the tracer's thread, and what is asked of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/atomic.h"
#include "runtime/threads/m.h"
#include "runtime/trace/buffers.h"
#include "runtime/trace/recorder.h"

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

/// The same for a trace of which only the last part is kept, in memory. It is known by its number.
struct Flight {
  Recorder::Limits limits;
  const char* report_path;  // where a report writes it (create_file), or nullptr
};
inline constexpr Recorder::Limits default_limits{10'000'000'000, 16u << 20};
int start_flight(const Flight& flight, uint64_t* number);
int stop_flight(uint64_t number);
bool is_flight_recording(uint64_t number);
/// Writes what is kept as a trace to the descriptor. The recording goes on.
int write_flight(uint64_t number, int fd);

/// When the runtime starts and has no threads yet.
int start_first_recording(int fd);
int start_first_flight(const Flight& flight);

/// The trace of this number is to end, if it is still being recorded.
void request_end(uint64_t number);

/// The process ends: what has been recorded is written, if that is possible within the time. A
/// report also writes what the flight recorder has. Safe in signal handlers.
void finish_at_exit(int64_t limit_ns);
void finish_at_report();
/// In the child of a fork.
void forget_in_child();
/// Threads that the tracer has: for the count of all threads.
int own_threads();

}  // namespace gofer::internal::tracer
