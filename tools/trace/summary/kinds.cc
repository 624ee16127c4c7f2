#include "trace/summary/kinds.h"

namespace gofer::tool {
namespace {

constexpr size_t max_unnamed_stays = 64;

void add(Kind& kind, StayKey key, int64_t ns) {
  for (auto& [known, histogram] : kind.stays) {
    if (known == key) return histogram.add(ns);
  }
  kind.stays.emplace_back(key, Histogram()).second.add(ns);
}

}  // namespace

const Histogram* Kind::find(StayKey key) const {
  for (const auto& [known, histogram] : stays) {
    if (known == key) return &histogram;
  }
  return nullptr;
}

int64_t Kind::total_ns(GoState state) const {
  int64_t total = 0;
  for (const auto& [key, histogram] : stays) {
    if (key.state == state) total = sum_ns(total, histogram.total_ns());
  }
  return total;
}

void Kinds::set_kind(uint64_t g, StringId function) {
  GoroutineTimes& times = goroutines_[g];
  if (times.kind != GoroutineTimes::no_kind) return;
  const auto [at, is_new] =
      kind_of_function_.try_emplace(function, static_cast<uint32_t>(kinds_.size()));
  if (is_new) kinds_.push_back({.function = function, .goroutines = 0, .stays = {}});
  times.kind = at->second;
  Kind& kind = kinds_[times.kind];
  ++kind.goroutines;
  const auto waiting = unnamed_.find(g);
  if (waiting == unnamed_.end()) return;
  for (const auto& [key, ns] : waiting->second) add(kind, key, ns);
  unnamed_.erase(waiting);
}

void Kinds::give_up_naming(uint64_t g, GoroutineTimes& times) {
  if (times.kind == GoroutineTimes::no_kind) set_kind(g, 0);
}

void Kinds::name_goroutines(const Event& event, const Names& names) {
  const StackId stack = event.stack();
  switch (event.type) {
    case EventType::go_create:
    case EventType::go_create_blocked:
      if (event.args[1] != 0) {
        set_kind(event.args[0], names.outermost(static_cast<StackId>(event.args[1])));
      }
      break;
    case EventType::go_status_stack:
      if (stack != 0) set_kind(event.args[0], names.outermost(stack));
      return;
    case EventType::cpu_sample:
      return;  // its goroutine may be gone
    default:
      break;
  }
  if (stack == 0 || event.g == none) return;
  const GoroutineTimes* const times = goroutines_.find(event.g);
  if (times != nullptr && times->kind == GoroutineTimes::no_kind) {
    set_kind(event.g, names.outermost(stack));
  }
}

void Kinds::add_stay(uint64_t g, GoroutineTimes& times, int64_t now_ns) {
  const int64_t ns = now_ns - times.since_ns;
  if (times.kind == GoroutineTimes::no_kind) {
    auto& stays = unnamed_[g];
    stays.emplace_back(times.stay, ns);
    if (stays.size() > max_unnamed_stays) give_up_naming(g, times);
    return;
  }
  add(kinds_[times.kind], times.stay, ns);
}

GoroutineTimes Kinds::change(const Event& event, const Transition& change) {
  GoroutineTimes& times = goroutines_[change.id];
  const bool begins =
      change.go_from() == GoState::undetermined || change.go_from() == GoState::absent;
  if (!begins && change.from == change.to) return times;  // a status in a later generation
  const GoroutineTimes before = times;
  if (!begins) add_stay(change.id, times, event.time_ns);
  if (change.go_to() == GoState::absent) {
    give_up_naming(change.id, times);
    goroutines_.erase(change.id);
    return before;
  }
  times.since_ns = change.go_from() == GoState::undetermined ? begin_ns_ : event.time_ns;
  times.stay = {change.go_to(), 0};
  if (event.type == EventType::go_block) times.stay.reason = static_cast<StringId>(event.args[0]);
  if (change.go_to() == GoState::runnable) {
    times.readied_on_p = event.p;
    times.readied_by = event.g == change.id ? none : event.g;
  }
  return before;
}

void Kinds::finish(int64_t now_ns) {
  std::vector<uint64_t> alive;
  goroutines_.each([&](uint64_t g, GoroutineTimes&) { alive.push_back(g); });
  for (const uint64_t g : alive) {
    GoroutineTimes& times = goroutines_[g];
    add_stay(g, times, now_ns);
    give_up_naming(g, times);
    times.since_ns = now_ns;
  }
}

StringId Kinds::function_of(uint64_t g) const {
  const GoroutineTimes* const times = goroutines_.find(g);
  return times == nullptr || times->kind == GoroutineTimes::no_kind ? 0
                                                                    : kinds_[times->kind].function;
}

bool Kinds::is_running(uint64_t g) const {
  const GoroutineTimes* const times = goroutines_.find(g);
  return times != nullptr && times->stay.state == GoState::running;
}

}  // namespace gofer::tool
