// The kinds of events in a trace of format version 2, and the shape of each.
//
// The numbers and the arguments are the wire format of Go 1.22 to 1.26. A version adds kinds and
// never changes one, so `since` is all that differs between headers.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace gofer::tool {

enum class EventType : uint8_t {
  invalid,
  // What a file consists of.
  event_batch,
  stacks,
  stack,
  strings,
  string,
  cpu_samples,
  cpu_sample,
  frequency,
  // Processors.
  procs_change,
  proc_start,
  proc_stop,
  proc_steal,
  proc_status,
  // Goroutines.
  go_create,
  go_create_syscall,
  go_start,
  go_destroy,
  go_destroy_syscall,
  go_stop,
  go_block,
  go_unblock,
  go_syscall_begin,
  go_syscall_end,
  go_syscall_end_blocked,
  go_status,
  // The stopped world and Go's garbage collector.
  stw_begin,
  stw_end,
  gc_active,
  gc_begin,
  gc_end,
  gc_sweep_active,
  gc_sweep_begin,
  gc_sweep_end,
  gc_mark_assist_active,
  gc_mark_assist_begin,
  gc_mark_assist_end,
  heap_alloc,
  heap_goal,
  // Annotations.
  go_label,
  user_task_begin,
  user_task_end,
  user_region_begin,
  user_region_end,
  user_log,
  // 1.23
  go_switch,
  go_switch_destroy,
  go_create_blocked,
  go_status_stack,
  experimental_batch,
  // 1.25
  sync,
  clock_snapshot,
  // 1.26
  end_of_generation,

  // 1.23, with GODEBUG=traceallocfree=1.
  span = 128,
  span_alloc,
  span_free,
  heap_object,
  heap_object_alloc,
  heap_object_free,
  goroutine_stack,
  goroutine_stack_alloc,
  goroutine_stack_free,

  // No number of the format: a record of Gofer's experimental batch (gofer_records.h).
  gofer_record = 255,
};

enum class ArgKind : uint8_t { value, g, m, p, seq, go_status, proc_status, string, stack, task };

constexpr int max_args = 5;

struct Arg {
  std::string_view name;
  ArgKind kind = ArgKind::value;
};

/// The shape of one kind of event. The time difference that precedes the arguments is not counted.
struct EventSpec {
  std::string_view name;  // empty: no such kind
  int since = 0;          // the first header version that has it
  bool timed = false;     // appears among the events of an M
  uint8_t count = 0;      // of arguments
  std::array<Arg, max_args> args{};
};

/// The shape of events with this number; its name is empty if there are none.
const EventSpec& event_spec(EventType type);

/// The index of the argument that is the stack of the goroutine that the event is about, or -1.
int stack_arg(EventType type);

enum class GoStatus : uint8_t { bad, runnable, running, syscall, waiting };
enum class ProcStatus : uint8_t { bad, running, idle, syscall, syscall_abandoned };

std::string_view to_string(GoStatus status);
std::string_view to_string(ProcStatus status);

}  // namespace gofer::tool
