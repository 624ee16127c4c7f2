// Numbers of the scheduler: how many goroutines wait, how long they wait for a processor, how long
// they then run, and what threads, processors, timers, descriptors and stacks do meanwhile.
//
//   const gofer::debug::metrics_snapshot now = gofer::debug::metrics();
//   if (now.latency.quantile_ns(0.99) > 1'000'000) …    // 1 % wait for more than a millisecond
//
//   reply(gofer::debug::prometheus());                   // for a server that Prometheus scrapes
//
// They are always counted. What they have Go's name for has that name in metrics_json(), such as
// "/sched/latencies:seconds". docs/DEBUGGING.md tells what the numbers say about a slow program.
//
// Each number is right, but they are not all of one instant: goroutines go on while they are read.
// Counters and histograms only grow, also when gomaxprocs() takes processors away. Two snapshots
// have the numbers of the time between them as their difference.
#pragma once

#include <gofer/detail/buckets.h>
#include <gofer/detail/config.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace gofer::debug {

/// How often times fell into each of a row of buckets. The bounds of a bucket differ by a quarter
/// at most: each power of two from 64 ns to 4.9 hours is cut into four. The first bucket has all
/// shorter times, the last one all longer ones.
struct time_histogram {
  static constexpr std::size_t bucket_count = detail::time_buckets;

  std::uint64_t counts[bucket_count] = {};
  std::uint64_t sum_ns = 0;

  /// The least time of a bucket. It is the bound of the bucket before, which does not include it.
  static constexpr std::int64_t begin_ns(std::size_t bucket) {
    return detail::bucket_begin_ns(bucket);
  }
  static constexpr std::size_t bucket_of(std::int64_t ns) { return detail::bucket_of(ns); }

  /// How many times there are.
  GOFER_API std::uint64_t count() const noexcept;
  /// 0 if there are none.
  GOFER_API double mean_ns() const noexcept;
  /// A time that the part q of all times does not exceed, at most a quarter too large; 0 if there
  /// are none. The last bucket has no upper bound: its lower one is returned.
  GOFER_API double quantile_ns(double q) const noexcept;

  /// Adds the times of another histogram.
  GOFER_API time_histogram& operator+=(const time_histogram& other) noexcept;
  /// Takes those of an earlier snapshot away.
  GOFER_API time_histogram& operator-=(const time_histogram& earlier) noexcept;
};

/// All is 0 before the runtime has started.
struct metrics_snapshot {
  // Goroutines now. A goroutine that blocks its thread in a call that nobody announced is running
  // until its processor is taken from it.
  std::uint64_t goroutines;
  std::uint64_t goroutines_running;    ///< on a processor
  std::uint64_t goroutines_runnable;   ///< in a queue, or waiting for a processor on their threads
  std::uint64_t goroutines_waiting;    ///< for a channel, a lock, a timer, a descriptor …
  std::uint64_t goroutines_not_in_go;  ///< in calls that they announced, or without a processor
  std::uint64_t goroutines_created;    ///< since the start

  // Samples, each with the weight of as many goroutines as it stands for. A program with few
  // switches has all of them measured, and one with millions a second has one of about 1,000.
  time_histogram latency;  ///< from runnable to running
  time_histogram slices;   ///< from then until the goroutine left the processor

  /// How long the world was stopped: by gomaxprocs() and by traces that begin or end.
  time_histogram pauses_stopping;  ///< until every processor had stopped
  time_histogram pauses_total;     ///< until they went on

  // Threads of the runtime now. Those that are in none of the five states below are on the way from
  // one to another.
  std::uint64_t threads;
  std::uint64_t threads_with_processor;  ///< run goroutines, or look for work
  std::uint64_t threads_spinning;        ///< of those, look for work
  std::uint64_t threads_idle;            ///< sleep until there is work
  std::uint64_t threads_tied;      ///< were paused, or lost their processor: wait for another one
  std::uint64_t threads_bound;     ///< wait for goroutines that are bound to them (lock_os_thread)
  std::uint64_t threads_in_calls;  ///< block in calls, without a processor
  std::uint64_t threads_started;   ///< since the start

  // Processors now.
  std::uint64_t gomaxprocs;
  std::uint64_t procs_running;   ///< held by threads
  std::uint64_t procs_in_calls;  ///< of those, in calls that were announced; free to be taken
  std::uint64_t procs_idle;
  std::uint64_t procs_stopped;  ///< for a stop of the world

  // Runnable goroutines in queues now.
  std::uint64_t global_queue;         ///< that of all processors, with those below
  std::uint64_t global_queue_urgent;  ///< were woken by a timer or descriptor: run first
  std::uint64_t global_queue_tied;    ///< wait for a processor on their own threads
  std::uint64_t local_queues;         ///< those of the processors, in all
  std::uint64_t local_queue_longest;

  // What the scheduler has done since the start.
  std::uint64_t switches;           ///< times that a goroutine was resumed
  std::uint64_t steals;             ///< times that a processor found work at another one
  std::uint64_t stolen;             ///< goroutines that it brought from there
  std::uint64_t hand_offs;          ///< times that a thread left its processor to another one
  std::uint64_t retakes_announced;  ///< processors taken from threads in calls that were announced
  std::uint64_t retakes_asleep;     ///< processors taken from threads that slept in other calls
  std::uint64_t preemptions_flag;   ///< goroutines gave way at a call of the runtime
  std::uint64_t preemptions_prologue;  ///< threads were paused at the prologue of a function
  std::uint64_t preemptions_signal;    ///< threads were paused by the signal

  // The netpoller and timers.
  std::uint64_t poll_visits;      ///< times that the kernel was asked for events
  std::uint64_t poll_wakeups;     ///< goroutines and threads that events have woken
  std::uint64_t poll_registered;  ///< descriptors that are watched now
  std::uint64_t poll_waiting;     ///< goroutines and threads that wait for one now
  std::uint64_t timers;           ///< that are set now
  std::uint64_t timers_fired;

  // Stacks are address space, of which only touched pages exist: their bytes are not those that the
  // process has in memory.
  std::uint64_t stacks_reserved_bytes;  ///< in all
  std::uint64_t stacks_in_use;          ///< of goroutines that have begun to run
  std::uint64_t stacks_in_use_bytes;
  std::uint64_t stacks_cached;  ///< of ended goroutines, for new ones
  std::uint64_t stacks_cached_bytes;
  std::uint64_t stacks_given_back;  ///< times that a stack gave unused pages back to the kernel
  /// Of the runtime's records of goroutines, threads, processors and descriptors, which are used
  /// again and never freed.
  std::uint64_t record_bytes;
};

/// What the numbers are now. Goroutines and threads may call it at any time, but not in a signal
/// handler. It takes some microseconds, and waits for nothing but the scheduler's lock; in a
/// goroutine, for the end of a stop of the world, too.
[[nodiscard]] GOFER_API metrics_snapshot metrics();

/// The numbers in the text format of Prometheus, version 0.0.4, whose content type is
/// "text/plain; version=0.0.4". The buckets of a histogram are fewer there: powers of four.
[[nodiscard]] GOFER_API std::string prometheus(const metrics_snapshot& m);
[[nodiscard]] GOFER_API std::string prometheus();

/// The numbers as one JSON object. Its keys are Go's names where Go has the number too, and begin
/// with "/gofer/" otherwise. A histogram is {"count", "sum", "buckets"}, with a pair [least time in
/// seconds, count] for each bucket that has any times.
[[nodiscard]] GOFER_API std::string metrics_json(const metrics_snapshot& m);
[[nodiscard]] GOFER_API std::string metrics_json();

}  // namespace gofer::debug
