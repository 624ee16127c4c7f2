#include "trace/reader/event_types.h"

namespace gofer::tool {
namespace {

struct Table {
  std::array<EventSpec, 256> specs{};

  constexpr void structural(EventType type, std::string_view name, int since = 22) {
    EventSpec& spec = specs[static_cast<uint8_t>(type)];
    spec.name = name;
    spec.since = since;
  }

  template <class... Args>
  constexpr void timed(EventType type, std::string_view name, int since, Args... args) {
    EventSpec& spec = specs[static_cast<uint8_t>(type)];
    spec.name = name;
    spec.since = since;
    spec.timed = true;
    ((spec.args[spec.count++] = args), ...);
  }
};

// The arguments, as they are called in messages.
namespace arg {
constexpr Arg g{"g", ArgKind::g}, g_seq{"g_seq", ArgKind::seq}, new_g{"new_g", ArgKind::g};
constexpr Arg p{"p", ArgKind::p}, p_seq{"p_seq", ArgKind::seq}, m{"m", ArgKind::m};
constexpr Arg pstatus{"pstatus", ArgKind::proc_status}, gstatus{"gstatus", ArgKind::go_status};
constexpr Arg own_stack{"stack", ArgKind::stack}, new_stack{"new_stack", ArgKind::stack};
constexpr Arg reason{"reason", ArgKind::string}, kind{"kind", ArgKind::string};
constexpr Arg name{"name", ArgKind::string}, gc_seq{"gc_seq"};
constexpr Arg task_id{"task", ArgKind::task}, parent_task{"parent_task", ArgKind::task};
constexpr Arg id{"id"}, type{"type"}, order{"order"}, pages{"npages"}, kind_class{"kindclass"};
}  // namespace arg

constexpr void add_scheduling(Table& t) {
  using enum EventType;
  t.timed(procs_change, "ProcsChange", 22, Arg{"procs"}, arg::own_stack);
  t.timed(proc_start, "ProcStart", 22, arg::p, arg::p_seq);
  t.timed(proc_stop, "ProcStop", 22);
  t.timed(proc_steal, "ProcSteal", 22, arg::p, arg::p_seq, arg::m);
  t.timed(EventType::proc_status, "ProcStatus", 22, arg::p, arg::pstatus);
  t.timed(go_create, "GoCreate", 22, arg::new_g, arg::new_stack, arg::own_stack);
  t.timed(go_create_syscall, "GoCreateSyscall", 22, arg::new_g);
  t.timed(go_start, "GoStart", 22, arg::g, arg::g_seq);
  t.timed(go_destroy, "GoDestroy", 22);
  t.timed(go_destroy_syscall, "GoDestroySyscall", 22);
  t.timed(go_stop, "GoStop", 22, arg::reason, arg::own_stack);
  t.timed(go_block, "GoBlock", 22, arg::reason, arg::own_stack);
  t.timed(go_unblock, "GoUnblock", 22, arg::g, arg::g_seq, arg::own_stack);
  t.timed(go_syscall_begin, "GoSyscallBegin", 22, arg::p_seq, arg::own_stack);
  t.timed(go_syscall_end, "GoSyscallEnd", 22);
  t.timed(go_syscall_end_blocked, "GoSyscallEndBlocked", 22);
  t.timed(EventType::go_status, "GoStatus", 22, arg::g, arg::m, arg::gstatus);
  t.timed(go_switch, "GoSwitch", 23, arg::g, arg::g_seq);
  t.timed(go_switch_destroy, "GoSwitchDestroy", 23, arg::g, arg::g_seq);
  t.timed(go_create_blocked, "GoCreateBlocked", 23, arg::new_g, arg::new_stack, arg::own_stack);
  t.timed(go_status_stack, "GoStatusStack", 23, arg::g, arg::m, arg::gstatus, arg::own_stack);
}

constexpr void add_collector(Table& t) {
  using enum EventType;
  t.timed(stw_begin, "STWBegin", 22, arg::kind, arg::own_stack);
  t.timed(stw_end, "STWEnd", 22);
  t.timed(gc_active, "GCActive", 22, arg::gc_seq);
  t.timed(gc_begin, "GCBegin", 22, arg::gc_seq, arg::own_stack);
  t.timed(gc_end, "GCEnd", 22, arg::gc_seq);
  t.timed(gc_sweep_active, "GCSweepActive", 22, arg::p);
  t.timed(gc_sweep_begin, "GCSweepBegin", 22, arg::own_stack);
  t.timed(gc_sweep_end, "GCSweepEnd", 22, Arg{"swept"}, Arg{"reclaimed"});
  t.timed(gc_mark_assist_active, "GCMarkAssistActive", 22, arg::g);
  t.timed(gc_mark_assist_begin, "GCMarkAssistBegin", 22, arg::own_stack);
  t.timed(gc_mark_assist_end, "GCMarkAssistEnd", 22);
  t.timed(heap_alloc, "HeapAlloc", 22, Arg{"heapalloc"});
  t.timed(heap_goal, "HeapGoal", 22, Arg{"heapgoal"});
  t.timed(span, "Span", 23, arg::id, arg::pages, arg::kind_class);
  t.timed(span_alloc, "SpanAlloc", 23, arg::id, arg::pages, arg::kind_class);
  t.timed(span_free, "SpanFree", 23, arg::id);
  t.timed(heap_object, "HeapObject", 23, arg::id, arg::type);
  t.timed(heap_object_alloc, "HeapObjectAlloc", 23, arg::id, arg::type);
  t.timed(heap_object_free, "HeapObjectFree", 23, arg::id);
  t.timed(goroutine_stack, "GoroutineStack", 23, arg::id, arg::order);
  t.timed(goroutine_stack_alloc, "GoroutineStackAlloc", 23, arg::id, arg::order);
  t.timed(goroutine_stack_free, "GoroutineStackFree", 23, arg::id);
}

constexpr void add_annotations(Table& t) {
  using enum EventType;
  t.timed(go_label, "GoLabel", 22, Arg{"label", ArgKind::string});
  t.timed(user_task_begin, "UserTaskBegin", 22, arg::task_id, arg::parent_task, arg::name,
          arg::own_stack);
  t.timed(user_task_end, "UserTaskEnd", 22, arg::task_id, arg::own_stack);
  t.timed(user_region_begin, "UserRegionBegin", 22, arg::task_id, arg::name, arg::own_stack);
  t.timed(user_region_end, "UserRegionEnd", 22, arg::task_id, arg::name, arg::own_stack);
  t.timed(user_log, "UserLog", 22, arg::task_id, Arg{"key", ArgKind::string},
          Arg{"value", ArgKind::string}, arg::own_stack);
}

constexpr Table make_table() {
  using enum EventType;
  Table t;
  t.structural(event_batch, "EventBatch");
  t.structural(stacks, "Stacks");
  t.structural(EventType::stack, "Stack");
  t.structural(strings, "Strings");
  t.structural(EventType::string, "String");
  t.structural(cpu_samples, "CPUSamples");
  t.structural(cpu_sample, "CPUSample");
  t.structural(frequency, "Frequency");
  t.structural(experimental_batch, "ExperimentalBatch", 23);
  t.structural(sync, "Sync", 25);
  t.structural(clock_snapshot, "ClockSnapshot", 25);
  t.structural(end_of_generation, "EndOfGeneration", 26);
  t.structural(gofer_record, "GoferRecord", 99);
  add_scheduling(t);
  add_collector(t);
  add_annotations(t);
  return t;
}

constexpr Table table = make_table();

constexpr std::array<int8_t, 256> make_stack_args() {
  std::array<int8_t, 256> result{};
  for (int t = 0; t < 256; ++t) {
    result[t] = -1;
    const EventSpec& spec = table.specs[t];
    for (int i = 0; i < spec.count; ++i) {
      if (spec.args[i].kind == ArgKind::stack) result[t] = static_cast<int8_t>(i);
    }
  }
  result[static_cast<uint8_t>(EventType::cpu_sample)] = 0;
  return result;
}

constexpr std::array<int8_t, 256> stack_args = make_stack_args();

}  // namespace

const EventSpec& event_spec(EventType type) { return table.specs[static_cast<uint8_t>(type)]; }

int stack_arg(EventType type) { return stack_args[static_cast<uint8_t>(type)]; }

std::string_view to_string(GoStatus status) {
  switch (status) {
    case GoStatus::runnable:
      return "runnable";
    case GoStatus::running:
      return "running";
    case GoStatus::syscall:
      return "in a system call";
    case GoStatus::waiting:
      return "waiting";
    case GoStatus::bad:
      break;
  }
  return "bad";
}

std::string_view to_string(ProcStatus status) {
  switch (status) {
    case ProcStatus::running:
      return "running";
    case ProcStatus::idle:
      return "idle";
    case ProcStatus::syscall:
      return "in a system call";
    case ProcStatus::syscall_abandoned:
      return "abandoned in a system call";
    case ProcStatus::bad:
      break;
  }
  return "bad";
}

}  // namespace gofer::tool
