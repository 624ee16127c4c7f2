// Statistics of the scheduler.
#pragma once

#include <gofer/detail/config.h>

#include <cstdint>
#include <vector>

namespace gofer {

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
