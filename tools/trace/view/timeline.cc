#include "trace/view/timeline.h"

namespace gofer::tool {

Timeline::Timeline(const Names& names, BlockSink sink)
    : names_(names),
      sink_(std::move(sink)),
      strings_(names),
      lanes_(strings_, totals_, sink_),
      records_(lanes_, goroutines_, totals_, sink_),
      runnable_(Records::runnable, totals_[static_cast<size_t>(TableId::series)]),
      calls_(TableId::calls, 0, 5, totals_[static_cast<size_t>(TableId::calls)]),
      stops_(TableId::stops, 0, 3, totals_[static_cast<size_t>(TableId::stops)]),
      collections_(TableId::collections, 0, 2, totals_[static_cast<size_t>(TableId::collections)]) {
  totals_[static_cast<size_t>(TableId::goroutines)].max.resize(10);
}

void Timeline::add(const Event& event) {
  if (!begun_) {
    begun_ = true;
    begin_ns_ = event.time_ns;
  }
  now_ = static_cast<uint64_t>(event.time_ns - begin_ns_);
  if (event.type == EventType::gofer_record) return records_.add(event, now_);
  if (event.type == EventType::cpu_sample) return;
  for (const Transition& change : event.changes()) {
    if (change.is_proc) {
      change_proc(event, change);
    } else {
      change_goroutine(event, change);
    }
  }
  name(event);
  ranges(event);
}

void Timeline::change_goroutine(const Event& event, const Transition& change) {
  if (change.from == change.to) return;  // the status of a later generation
  const bool is_first = change.go_from() == GoState::undetermined;
  LiveGoroutine& g = goroutines_.live(change.id);
  if (is_first) goroutines_.row(g.row).state = change.to;
  if (change.go_from() == GoState::absent) {
    GoroutineRow& row = goroutines_.row(g.row);
    row.created = now_ + 1;
    row.creator = event.g == none ? 0 : goroutines_.number_of(event.g);
    row.stack = strings_.stack(event.stack());
    g.since = now_;
  }
  if (change.go_from() == GoState::runnable) runnable_.set(now_, --runnable_now_, sink_);
  const bool leaves_call = g.in_call && change.go_to() != GoState::syscall;
  if (leaves_call) leaves_syscall(g);
  g.state = change.go_to();
  switch (change.go_to()) {
    case GoState::running:
      starts(event, g, is_first);
      break;
    case GoState::syscall:
      enters_syscall(event, g, is_first);
      break;
    default:
      if (change.go_from() == GoState::running || change.go_from() == GoState::syscall) {
        stops(event, g, change.go_to());
      }
      if (change.go_to() == GoState::runnable) becomes_runnable(event, g, is_first);
  }
  if (change.go_to() != GoState::absent) return;
  goroutines_.row(g.row).ended = now_ + 1;
  goroutines_.end(change.id);
}

void Timeline::becomes_runnable(const Event& event, LiveGoroutine& g, bool is_first) {
  ++runnable_now_;
  if (is_first && runnable_.points() == 0) {
    runnable_.begin_with(runnable_now_);
  } else {
    runnable_.set(now_, runnable_now_, sink_);
  }
  g.ready_known = true;
  g.ready_at = is_first ? 0 : now_;
  g.next.waited = g.ready_at - std::min(g.since, g.ready_at) + 1;
  const bool by_another =
      !is_first && event.g != none && goroutines_.number_of(event.g) != g.row + 1;
  g.next.by = by_another ? goroutines_.number_of(event.g) : 0;
  g.next.by_stack = by_another ? strings_.stack(event.stack()) : 0;
  g.next.by_lane = is_first || event.p == none ? 0 : lanes_.lane_of(event.p) + 1;
}

void Timeline::starts(const Event& event, LiveGoroutine& g, bool is_first) {
  if (event.p == none) return;
  const uint32_t lane = lanes_.lane_of(event.p);
  g.lane = lane;
  if (lanes_.running(lane) == g.row) return lanes_.end_syscall(lane, now_);
  RunSlice slice;
  slice.g = g.row;
  slice.m = lanes_.number_of_m(event.m);
  slice.arrival = g.next;
  if (g.ready_known) slice.arrival.late = now_ - g.ready_at + 1;
  lanes_.begin(lane, is_first ? 0 : now_, slice);
  g.next = {};
  g.ready_known = false;
}

void Timeline::enters_syscall(const Event& event, LiveGoroutine& g, bool is_first) {
  const uint64_t begin = is_first ? 0 : now_;
  const uint32_t stack =
      event.type == EventType::go_syscall_begin ? strings_.stack(event.stack()) : uint32_t{0};
  if (event.p == none) {
    g.in_call = true;
    g.call_begin = begin;
    g.call_m = lanes_.number_of_m(event.m);
    g.call_stack = stack;
    return;
  }
  const uint32_t lane = lanes_.lane_of(event.p);
  if (lanes_.running(lane) != g.row) starts(event, g, is_first);
  g.lane = lane;
  g.call_stack = stack;
  lanes_.begin_syscall(lane, begin, stack);
}

/// A call that had lost its P, or never had one, returns.
void Timeline::leaves_syscall(LiveGoroutine& g) {
  g.in_call = false;
  // Rows are in the order of their ends.
  calls_.add_at(now_, now_, {now_ - g.call_begin, g.row, g.call_m, g.call_stack}, sink_);
}

void Timeline::stops(const Event& event, LiveGoroutine& g, GoState to) {
  const uint32_t stack = strings_.stack(event.stack());
  End ending{.kind = EndKind::ended, .reason = 0, .stack = stack};
  if (event.type == EventType::go_block || event.type == EventType::go_stop) {
    ending.kind = to == GoState::waiting ? EndKind::blocked : EndKind::stopped;
    ending.reason = strings_.string(static_cast<StringId>(event.args[0]));
  } else if (event.type == EventType::go_switch) {
    ending.kind = EndKind::blocked;
  } else if (event.type == EventType::go_syscall_end_blocked) {
    return;  // the slice ended when the P was lost
  }
  end_slice(g, ending);
}

void Timeline::end_slice(LiveGoroutine& g, const End& ending) {
  if (lanes_.running(g.lane) != g.row) return;
  g.next = {};
  g.next.from = lanes_.end(g.lane, now_, ending);
  g.since = now_;
}

void Timeline::change_proc(const Event& event, const Transition& change) {
  const uint32_t lane = lanes_.lane_of(change.id);
  const bool is_first = change.proc_from() == ProcState::undetermined;
  if (change.from == change.to && !is_first) return;
  if (change.proc_to() != ProcState::idle) {
    const bool takes = event.type == EventType::proc_start || event.type == EventType::proc_status;
    if (takes) lanes_.hold(lane, is_first ? 0 : now_, lanes_.number_of_m(event.m));
    return;
  }
  lanes_.release(lane, now_);
  const uint32_t row = lanes_.running(lane);
  if (row == Lanes::no_goroutine) return;
  LiveGoroutine* const g = goroutines_.find(goroutines_.row(row).id);
  if (g == nullptr) return;
  end_slice(*g, {.kind = EndKind::lost, .reason = 0, .stack = g->call_stack});
  g->in_call = true;
  g->call_begin = now_;
  g->call_m = lanes_.number_of_m(event.victim_m == none ? event.m : event.victim_m);
}

/// Learns the function of a goroutine from the first event that tells it.
void Timeline::name(const Event& event) {
  const auto set = [&](uint64_t id, StackId stack) {
    if (id == none || stack == 0) return;
    const LiveGoroutine* const g = goroutines_.find(id);
    if (g == nullptr) return;
    GoroutineRow& row = goroutines_.row(g->row);
    if (row.function == 0) row.function = strings_.string(names_.outermost(stack));
  };
  switch (event.type) {
    case EventType::go_create:
    case EventType::go_create_blocked:
      set(event.args[0], static_cast<StackId>(event.args[1]));
      break;
    case EventType::go_status_stack:
      return set(event.args[0], event.stack());
    case EventType::go_label:
      if (const LiveGoroutine* const g = goroutines_.find(event.g)) {
        goroutines_.row(g->row).name = strings_.string(static_cast<StringId>(event.args[0]));
      }
      break;
    default:
      break;
  }
  set(event.g, event.stack());
}

void Timeline::ranges(const Event& event) {
  switch (event.type) {
    case EventType::stw_begin:
      stopped_at_ = now_;
      stopped_for_ = strings_.string(static_cast<StringId>(event.args[0]));
      break;
    case EventType::stw_end:
      if (stopped_at_ == none) stopped_at_ = 0;
      stops_.add_at(stopped_at_, now_, {now_ - stopped_at_, stopped_for_}, sink_);
      stopped_at_ = none;
      stopped_for_ = 0;
      break;
    case EventType::gc_active:
      collects_since_ = 0;
      break;
    case EventType::gc_begin:
      collects_since_ = now_;
      break;
    case EventType::gc_end:
      if (collects_since_ == none) collects_since_ = 0;
      collections_.add_at(collects_since_, now_, {now_ - collects_since_}, sink_);
      collects_since_ = none;
      break;
    default:
      break;
  }
}

void Timeline::put_tables(Json& json) const {
  json.key("tables").open('[');
  for (const TableTotals& table : totals_) {
    json.open('{').field("rows", table.rows).key("max").open('[');
    for (const uint64_t max : table.max) json.value(max);
    json.close(']').key("lanes").open('[');
    for (const uint64_t rows : table.rows_of_lanes) json.value(rows);
    json.close(']').close('}');
  }
  json.close(']');
}

std::string Timeline::finish(const Reader& reader, const std::string& title,
                             const std::string& damage) {
  goroutines_.each_live([&](LiveGoroutine& g) {
    if (g.in_call) leaves_syscall(g);
    if (g.state != GoState::runnable) return;
    GoroutineRow& row = goroutines_.row(g.row);
    row.ready = g.ready_at + 1;
    row.ready_by = g.next.by;
  });
  lanes_.finish(now_);
  records_.finish(now_);
  runnable_.finish(now_, sink_);
  if (stopped_at_ != none)
    stops_.add_at(stopped_at_, now_, {now_ - stopped_at_, stopped_for_}, sink_);
  if (collects_since_ != none) {
    collections_.add_at(collects_since_, now_, {now_ - collects_since_}, sink_);
  }
  for (Table* const table : {&calls_, &stops_, &collections_}) table->flush(sink_);
  goroutines_.write(totals_[static_cast<size_t>(TableId::goroutines)], sink_);

  Json json;
  json.open('{').field("version", 1).field("title", title).field("damage", damage);
  json.field("format", "go 1." + std::to_string(reader.version()));
  json.field("events", reader.totals().events).field("records", reader.totals().records);
  json.field("span", now_).key("procs").open('[');
  for (const uint64_t p : lanes_.procs()) json.value(p);
  json.close(']').key("threads").open('[');
  for (const uint64_t m : lanes_.threads()) json.value(m == none ? -1.0 : static_cast<double>(m));
  json.close(']');
  put_tables(json);
  strings_.put(json);
  return json.close('}').take();
}

}  // namespace gofer::tool
