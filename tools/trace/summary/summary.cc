#include "trace/summary/summary.h"

#include <algorithm>

#include "trace/gofer_records.h"

namespace gofer::tool {
namespace {

bool longer(const Delay& a, const Delay& b) { return a.ns > b.ns; }

}  // namespace

void Summary::add(const Event& event) {
  if (!begun_) {
    begun_ = true;
    begin_ns_ = event.time_ns;
    kinds_.begin(begin_ns_);
    procs_.begin(begin_ns_);
  }
  last_ns_ = event.time_ns;
  if (event.type == EventType::gofer_record) return count_record(event);
  count(event);
  kinds_.name_goroutines(event, names_);
  for (const Transition& change : event.changes()) {
    if (change.is_proc) continue;
    const GoroutineTimes before = kinds_.change(event, change);
    if (change.go_from() == GoState::runnable && change.go_to() == GoState::running) {
      started(event, change, before);
    }
  }
  procs_.add(event, kinds_);
}

void Summary::count(const Event& event) {
  switch (event.type) {
    case EventType::go_stop: {
      const bool preempted = names_.string(static_cast<StringId>(event.args[0])) == "preempted";
      ++(preempted ? counts_.preempted : counts_.yielded);
      break;
    }
    case EventType::go_syscall_begin:
      ++counts_.syscalls;
      break;
    case EventType::go_syscall_end_blocked:
      ++counts_.syscalls_blocked;
      break;
    case EventType::proc_steal:
      ++counts_.procs_taken;
      break;
    default:
      break;
  }
}

void Summary::count_record(const Event& event) {
  ++counts_.records;
  switch (static_cast<RecordKind>(event.record)) {
    case RecordKind::steal:
      ++counts_.steals;
      counts_.stolen += event.args[2];
      break;
    case RecordKind::queue:
      counts_.longest_queue = std::max(counts_.longest_queue, event.args[1]);
      break;
    case RecordKind::global_queue:
      counts_.longest_global_queue = std::max(counts_.longest_global_queue, event.args[0]);
      break;
    case RecordKind::hand_off:
      ++counts_.hand_offs;
      break;
    case RecordKind::pass:
      ++counts_.passes;
      break;
    case RecordKind::pause:
      ++counts_.pauses;
      break;
    case RecordKind::retake:
      if (event.args[2] < counts_.retakes.size()) ++counts_.retakes[event.args[2]];
      break;
    case RecordKind::sysmon:
    case RecordKind::counter:
      ++counts_.sysmon_rounds;
      break;
    case RecordKind::runnext:
      break;
  }
}

void Summary::started(const Event& event, const Transition& change, const GoroutineTimes& before) {
  ++counts_.starts;
  if (before.readied_on_p != none && before.readied_on_p != event.p) ++counts_.starts_elsewhere;
  Delay delay;
  delay.ns = event.time_ns - before.since_ns;
  if (max_delays_ == 0 || (delays_.size() == max_delays_ && delay.ns <= delays_.front().ns)) return;
  delay.at_ns = before.since_ns;
  delay.g = change.id;
  delay.readied_by = before.readied_by;
  delay.readied_on = before.readied_on_p;
  delay.started_on = event.p;
  delay.kept_p = before.readied_on_p != none ? before.readied_on_p : event.p;
  delay.function = kinds_.function_of(change.id);
  delay.keeper = procs_.longest_between(delay.kept_p, delay.at_ns, event.time_ns);
  if (delays_.size() == max_delays_) {
    std::pop_heap(delays_.begin(), delays_.end(), longer);
    delays_.pop_back();
  }
  delays_.push_back(delay);
  std::push_heap(delays_.begin(), delays_.end(), longer);
}

void Summary::finish() {
  for (Delay& delay : delays_) {
    if (delay.function == 0) delay.function = kinds_.function_of(delay.g);
    if (delay.keeper.function == 0) delay.keeper.function = kinds_.function_of(delay.keeper.g);
  }
  std::sort(delays_.begin(), delays_.end(), longer);
  kinds_.finish(last_ns_);
  procs_.finish(last_ns_);
}

}  // namespace gofer::tool
