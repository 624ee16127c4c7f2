// The rules for events that do not schedule: annotations, the stopped world, Go's garbage
// collector.
#include <algorithm>

#include "trace/order/order.h"

namespace gofer::tool {

bool Order::other(Event& event, MState& m) {
  using enum EventType;
  switch (event.type) {
    case procs_change:
    case go_label:
    case user_log:
      require(m, Need::yes, Need::yes);
      return true;
    case user_task_begin:
    case user_task_end:
      return task(event, m);
    case user_region_begin:
    case user_region_end:
      return region(event, m);
    case stw_begin:
    case gc_mark_assist_begin:
      require(m, Need::yes, Need::yes);
      begin_range(m.g->ranges, event.type == stw_begin ? range_stw : range_mark_assist);
      return true;
    case stw_end:
    case gc_mark_assist_end:
      require(m, Need::yes, Need::yes);
      end_range(m.g->ranges, event.type == stw_end ? range_stw : range_mark_assist);
      return true;
    case gc_mark_assist_active: {
      GState* const g = gs_.find(event.args[0]);
      if (g == nullptr) {
        throw Violation("goroutine " + std::to_string(event.args[0]) + " does not exist");
      }
      active_range(g->ranges, range_mark_assist);
      return true;
    }
    case gc_sweep_begin:
    case gc_sweep_end:
      require(m, Need::yes, Need::maybe);
      event.type == gc_sweep_begin ? begin_range(m.p->ranges, range_sweep)
                                   : end_range(m.p->ranges, range_sweep);
      return true;
    case gc_sweep_active: {
      PState* const p = ps_.find(event.args[0]);
      if (p == nullptr) throw Violation("P " + std::to_string(event.args[0]) + " does not exist");
      active_range(p->ranges, range_sweep);
      return true;
    }
    case gc_active:
    case gc_begin:
    case gc_end:
      return collector(event, m);
    case heap_alloc:
    case heap_goal:
      require(m, Need::yes, Need::maybe);
      return true;
    default:
      require(m, Need::maybe, Need::maybe);
      return true;  // traceallocfree's
  }
}

void Order::begin_range(uint8_t& ranges, Range range) {
  if ((ranges & range) != 0) throw Violation("begins what has begun already");
  ranges |= range;
}

void Order::end_range(uint8_t& ranges, Range range) {
  if ((ranges & range) == 0) throw Violation("ends what has not begun");
  ranges &= static_cast<uint8_t>(~range);
}

void Order::active_range(uint8_t& ranges, Range range) const {
  if (!is_first_generation() && (ranges & range) == 0) {
    throw Violation("goes on with what has not begun");
  }
  if (is_first_generation()) begin_range(ranges, range);
}

// A task may end unseen, end twice, or end without a beginning; it cannot begin twice.
bool Order::task(const Event& event, const MState& m) {
  const uint64_t id = event.args[0];
  require(m, Need::yes, Need::yes);
  if (event.type == EventType::user_task_end) {
    tasks_.erase(id);
    return true;
  }
  if (id == none) throw Violation("a task with an id of 2^64-1");
  if (tasks_.find(id) != nullptr) throw Violation("task " + std::to_string(id) + " has begun");
  tasks_[id] = 1;
  return true;
}

// Regions of a goroutine nest. Those that began before the trace end without a beginning.
bool Order::region(const Event& event, const MState& m) {
  require(m, Need::yes, Need::yes);
  GState& g = *m.g;
  const std::pair<uint64_t, StringId> region{event.args[0], static_cast<StringId>(event.args[1])};
  if (event.type == EventType::user_region_begin) {
    regions_[g.id].push_back(region);
    g.has_regions = true;
    return true;
  }
  if (!g.has_regions) return true;
  auto& open = regions_[g.id];
  if (open.empty()) return true;
  if (open.back() != region) {
    throw Violation("goroutine " + std::to_string(g.id) +
                    " ends a region that is not the innermost one");
  }
  open.pop_back();
  return true;
}

// The cycles of the collector have one count for the whole trace, over all generations.
bool Order::collector(const Event& event, const MState& m) {
  const uint64_t sequence = event.args[0];
  const bool ends = event.type == EventType::gc_end;
  const bool is_first = event.type == EventType::gc_active
                            ? is_first_generation()
                            : !ends && collector_ == Collector::undetermined;
  if (is_first) {
    if (collector_ != Collector::undetermined) {
      throw Violation("comes after another event of the collector in the first generation");
    }
    collector_sequence_ = sequence;
    collector_ = Collector::on;
    return true;
  }
  if (sequence != collector_sequence_ + 1) return false;
  const bool was_on = collector_ == Collector::on;
  if (was_on != (event.type != EventType::gc_begin)) {
    throw Violation(was_on ? "the collector runs already" : "the collector does not run");
  }
  require(m, Need::yes, Need::yes);
  collector_sequence_ = sequence;
  collector_ = ends ? Collector::off : Collector::on;
  return true;
}

}  // namespace gofer::tool
