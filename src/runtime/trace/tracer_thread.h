// What the tracer's thread and the threads that start and end traces share.
//
// What other threads ask of the tracer's thread names the trace that it is about, because a trace
// may end by itself at any moment, and another one begin.
#pragma once

#include <cstdint>

#include "runtime/base/atomic.h"
#include "runtime/trace/file_name.h"
#include "runtime/trace/output.h"
#include "runtime/trace/recorder.h"

namespace gofer::internal::tracer {

enum State : uint32_t { off, starting, recording };

// What the tracer's thread does for another one, which waits for it. One at a time.
struct Errand {
  enum State : uint32_t { free, taken, asked, done };
  atomic<uint32_t> state{free};  // a futex
  // Of the thread that has taken it; while it is asked for, of the tracer's thread.
  uint64_t flight = 0;  // to write this flight recording; 0: to open the output of a trace
  int fd = -1;
  bool owned = false;
  int result = 0;  // an errno value
};

struct Control {
  atomic<uint32_t> state{off};
  atomic<bool> has_thread{false};
  atomic<int> thread_id{0};  // of the tracer's thread, once it runs
  Errand errand;

  atomic<uint64_t> end_wanted{0};    // the greatest number of a trace that was to end
  atomic<int64_t> end_wanted_ns{0};  // when that was
  atomic<uint32_t> ends{0};          // traces that have ended; a futex
  atomic<uint64_t> ended{0};         // the number of the last one
  atomic<int> result{0};             // of the last one
  atomic<int> untold[2] = {};        // the same until a caller is told, of files and of flights

  atomic<bool> in_memory{false};  // a flight is recorded
  enum Report : uint32_t { none, wanted, written };
  atomic<uint32_t> report{none};  // a futex

  // Of the thread that has the state, which is the tracer's while a trace is recorded.
  uint64_t last_generation = 0;  // of all traces
  Output output;                 // unless it is a flight
  Recorder recorder;             // of a flight
  char report_path[longest_file_name] = "";
};
extern constinit Control control;

/// Changes the state of the errand and tells all that wait for it.
void set_errand(Errand::State state);

/// Starts the tracer's thread, once. Returns an errno value.
int start_thread();

}  // namespace gofer::internal::tracer
