// A summary for programs. All times are in nanoseconds, those of events from the begin of the
// trace.
#include "trace/json.h"
#include "trace/summary/summary.h"

namespace gofer::tool {
namespace {

void put_histogram(Json& json, const Histogram& h) {
  json.field("count", h.count()).field("total_ns", h.total_ns());
  json.field("p50_ns", h.quantile(0.5)).field("p99_ns", h.quantile(0.99));
  json.field("max_ns", h.max_ns());
}

void put_kind(Json& json, const Kind& kind, const Names& names) {
  json.open('{').field("function", names.string(kind.function));
  json.field("goroutines", kind.goroutines);
  const auto one = [&](const char* name, GoState state) {
    const Histogram* const h = kind.find({state, 0});
    json.key(name).open('{');
    put_histogram(json, h == nullptr ? Histogram() : *h);
    json.close('}');
  };
  one("running", GoState::running);
  one("runnable", GoState::runnable);
  one("syscall", GoState::syscall);
  json.key("blocked").open('[');
  for (const auto& [key, histogram] : kind.stays) {
    if (key.state != GoState::waiting) continue;
    json.open('{').field("reason", names.string(key.reason));
    put_histogram(json, histogram);
    json.close('}');
  }
  json.close(']').close('}');
}

void put_delay(Json& json, const Delay& delay, const Summary& summary) {
  const Names& names = summary.names();
  json.open('{').field("ns", delay.ns).field("at_ns", delay.at_ns - summary.begin_ns());
  json.id("goroutine", delay.g).field("function", names.string(delay.function));
  json.id("readied_by", delay.readied_by).id("readied_on_p", delay.readied_on);
  json.id("started_on_p", delay.started_on).id("kept_p", delay.kept_p);
  json.id("keeper", delay.keeper.g).field("keeper_function", names.string(delay.keeper.function));
  json.field("keeper_ns", delay.keeper.end_ns).close('}');
}

void put_counts(Json& json, const Counts& c) {
  json.key("scheduler").open('{');
  json.field("starts", c.starts).field("starts_elsewhere", c.starts_elsewhere);
  json.field("preempted", c.preempted).field("yielded", c.yielded);
  json.field("syscalls", c.syscalls).field("syscalls_blocked", c.syscalls_blocked);
  json.field("procs_taken", c.procs_taken).close('}');
  if (c.records == 0) return;
  json.key("gofer").open('{').field("records", c.records);
  json.field("steals", c.steals).field("stolen", c.stolen).field("hand_offs", c.hand_offs);
  json.field("passes", c.passes).field("pauses", c.pauses);
  json.field("retaken_asleep", c.retakes[0]).field("retaken_announced", c.retakes[1]);
  json.field("retaken_slice", c.retakes[2]).field("retaken_stop_the_world", c.retakes[3]);
  json.field("sysmon_rounds", c.sysmon_rounds).field("longest_queue", c.longest_queue);
  json.field("longest_global_queue", c.longest_global_queue).close('}');
}

}  // namespace

std::string to_json(const Summary& summary, const Reader& reader) {
  Json json;
  json.open('{').field("version", 1).field("format", "go 1." + std::to_string(reader.version()));
  json.field("events", reader.totals().events).field("generations", reader.totals().generations);
  json.field("span_ns", summary.span_ns());
  json.key("functions").open('[');
  for (const Kind& kind : summary.kinds()) put_kind(json, kind, summary.names());
  json.close(']').key("ps").open('[');
  for (const auto& [id, proc] : summary.procs()) {
    json.open('{').id("p", id).field("starts", proc.starts);
    json.field("running_ns", proc.ns[0]).field("syscall_ns", proc.ns[1]);
    json.field("scheduling_ns", proc.ns[2]).field("idle_ns", proc.ns[3]).close('}');
  }
  json.close(']').key("delays").open('[');
  for (const Delay& delay : summary.delays()) put_delay(json, delay, summary);
  json.close(']');
  put_counts(json, summary.counts());
  return json.close('}').take();
}

}  // namespace gofer::tool
