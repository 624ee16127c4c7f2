// The numbers of Go's trace format, version 2: docs/TRACING.md has their arguments and rules.
#pragma once

#include <cstdint>

namespace gofer::internal::tracer {

/// What a batch begins with.
inline constexpr uint8_t event_batch = 1;
inline constexpr uint8_t experimental_batch = 49;
/// Gofer's experiment.
inline constexpr uint8_t gofer_experiment = 1;
inline constexpr uint8_t gofer_records_version = 1;

/// What the data of a table begins with, and each of its entries.
enum class Table : uint8_t { stacks = 2, stack = 3, strings = 4, string = 5, frequency = 8 };

enum class Event : uint8_t {
  procs_change = 9,
  proc_start = 10,
  proc_stop = 11,
  proc_steal = 12,
  proc_status = 13,
  go_create = 14,
  go_create_syscall = 15,
  go_start = 16,
  go_destroy = 17,
  go_stop = 19,
  go_block = 20,
  go_unblock = 21,
  go_syscall_begin = 22,
  go_syscall_end = 23,
  go_syscall_end_blocked = 24,
  go_status = 25,
  stw_begin = 26,
  stw_end = 27,
  user_task_begin = 40,
  user_task_end = 41,
  user_region_begin = 42,
  user_region_end = 43,
  user_log = 44,
  go_status_stack = 48,
};

/// How many arguments the events of the format have, whether Gofer writes them or not: for readers
/// of what was written.
inline constexpr int longest_arguments = 4;
inline constexpr int8_t argument_counts[] = {
    // 9: ProcsChange … GoDestroySyscall
    2, 2, 0, 3, 2, 3, 1, 2, 0, 0,
    // 19: GoStop … GoStatus, STW
    2, 2, 3, 2, 0, 0, 3, 2, 0,
    // 28: GCActive … HeapGoal
    1, 2, 1, 1, 1, 2, 1, 1, 0, 1, 1,
    // 39: GoLabel, tasks, regions, UserLog
    1, 4, 2, 3, 3, 4,
    // 45: GoSwitch, GoSwitchDestroy, GoCreateBlocked, GoStatusStack
    2, 2, 3, 4};
constexpr int argument_count(Event kind) {
  return argument_counts[static_cast<int>(kind) - static_cast<int>(Event::procs_change)];
}
static_assert(argument_count(Event::user_log) == 4);

enum class GoStatus : uint8_t { runnable = 1, running = 2, in_call = 3, waiting = 4 };
enum class ProcStatus : uint8_t { running = 1, idle = 2, in_call = 3 };

/// Gofer's records.
enum class Record : uint8_t {
  steal = 1,
  queue = 2,
  global_queue = 3,
  runnext = 4,
  hand_off = 5,
  pause = 6,
  pass = 7,
  retake = 8,
  sysmon_round = 9,
  counter = 10,
};

/// The M of a batch that is of no M.
inline constexpr uint64_t no_m = ~uint64_t{0};
inline constexpr uint64_t units_a_second = 1'000'000'000;

inline constexpr char header[16] = {'g', 'o', ' ', '1', '.', '2', '3', ' ',
                                    't', 'r', 'a', 'c', 'e', 0,   0,   0};

}  // namespace gofer::internal::tracer
