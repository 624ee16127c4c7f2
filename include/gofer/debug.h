// A look inside: what every goroutine does now, and statistics of the scheduler.
//
//   gofer::debug::dump(STDERR_FILENO);
//
// prints every goroutine with its state and its trace, as Go does:
//
//   goroutine 4 "report" [sync.Mutex.Lock, 12 minutes]:
//   gofer::mutex::lock(...)
//       include/gofer/mutex.h:29
//   report(...)
//       examples/debugging/hang.cc:22 +0x9c
//   created by main in goroutine 1
//       examples/debugging/hang.cc:36 +0x5c
//
// A program that hangs prints the same on SIGQUIT (Ctrl-\), and ends: docs/DEBUGGING.md has more.
#pragma once

#include <gofer/detail/config.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <vector>

namespace gofer {

namespace debug {

enum class grouping : std::uint8_t {
  automatic,  ///< by equal traces if there are more than 100 goroutines
  always,
  never,
};

struct dump_options {
  /// Whether goroutines that wait for the same, at the same place, are shown as one.
  grouping group = grouping::automatic;
  /// Shows at most so many goroutines, or groups, those with the lowest numbers. 0: all.
  std::size_t limit = 0;
  /// Shows only goroutines that have waited at least so long, to about 0.1 s. 0: all.
  std::chrono::nanoseconds waiting_for{0};
  /// False: shows only the line with the state.
  bool traces = true;
};

/// Writes what every goroutine does now: number, name, state, since when it waits, trace, and which
/// call created it. The calling goroutine is the first. Goroutines that run are shown where they
/// are. What cannot be written is dropped.
///
/// May be called in any goroutine and thread, any number of times, but not in a signal handler.
/// Scheduling stops for as long as it takes to collect the traces (20 to 40 ms for 100,000
/// goroutines), not for the output. Goroutines that compute or are in system calls go on meanwhile;
/// the calls are started again, so a call with a relative time limit begins it anew. Nothing waits
/// for locks that goroutines hold, malloc's among them.
GOFER_API void dump(int fd, const dump_options& options = {});
GOFER_API void dump(std::ostream& out, const dump_options& options = {});

}  // namespace debug

/// What one processor has done since the start. The figures are read while it works: each is right,
/// but they are not of one instant.
struct processor_stats {
  std::uint64_t started;   ///< goroutines it ran for the first time
  std::uint64_t switches;  ///< times that a goroutine was resumed here
  std::uint64_t steals;    ///< times it found work at another processor
  std::uint64_t stolen;    ///< goroutines it brought from there
  std::uint32_t queued;    ///< goroutines in its local queue now
};

struct scheduler_stats {
  int gomaxprocs;
  int idle_procs;
  int threads;  ///< threads of the runtime
  int idle_threads;
  int spinning_threads;      ///< threads that look for work now
  std::size_t global_queue;  ///< goroutines in the global queue
  std::size_t goroutines;
  std::uint64_t preemptions;  ///< times that a goroutine was paused so that others could run
  std::uint64_t handoffs;     ///< times that a thread lost its processor because it slept
  std::vector<processor_stats> procs;
};

GOFER_API scheduler_stats stats();

}  // namespace gofer
