#include "trace/order/reader.h"

#include <algorithm>
#include <limits>

namespace gofer::tool {

Reader::Reader(std::unique_ptr<Source> source)
    : source_(std::move(source)), generations_(*source_, names_) {}

bool Reader::next(Event& event) {
  if (ended_) return false;
  ended_ = true;  // unless this call succeeds
  while (lanes_.empty() && next_sample_ == generation_.samples.size()) {
    if (!begin_generation()) return false;
  }
  const bool sample_is_next =
      next_sample_ < generation_.samples.size() &&
      (lanes_.empty() || generation_.samples[next_sample_].time < lanes_.front()->time);
  if (sample_is_next) {
    take_sample(event);
  } else if (Lane& first = *lanes_.front(); advance(first)) {
    event = first.head;
    stamp(event, first.time);
    replace(0);
  } else if (!advance_any(event)) {
    report_stuck();
  }
  ended_ = false;
  return true;
}

bool Reader::begin_generation() {
  lanes_.clear();  // their cursors refer to the generation
  next_sample_ = 0;
  decoded_ = 0;
  if (!generations_.next(generation_)) return false;
  ++totals_.generations;
  ns_per_unit_ = (uint64_t{1'000'000'000} << 32) / generation_.frequency;
  if (!clock_) clock_ = generation_.clock;
  order_.begin_generation(generation_.number);
  for (const ThreadBatches& thread : generation_.threads) {
    if (!thread.events.empty()) add_lane(thread, Cursor::Kind::events);
    if (!thread.records.empty()) add_lane(thread, Cursor::Kind::records);
  }
  for (size_t i = lanes_.size() / 2; i-- > 0;) sift_down(i);
  return true;
}

void Reader::add_lane(const ThreadBatches& thread, Cursor::Kind kind) {
  const bool events = kind == Cursor::Kind::events;
  auto lane = std::make_unique<Lane>(Lane{Cursor(*source_, version(), generation_.number, thread.m,
                                                 events ? thread.events : thread.records, kind),
                                          events ? &order_.thread(thread.m) : nullptr, 0, Event()});
  if (load(*lane)) lanes_.push_back(std::move(lane));
}

/// Fetches the lane's next event. False if it has none.
bool Reader::load(Lane& lane) {
  if (!lane.cursor.next()) return false;
  decoded_ += lane.cursor.event_size();
  const RawEvent& raw = lane.cursor.event();
  Event& event = lane.head;
  event.m = lane.cursor.m();
  event.p = none;
  event.g = none;
  event.victim_m = none;
  event.change_count = 0;
  event.generation = generation_.number;
  resolve(raw, event);
  lane.time = raw.time;
  return true;
}

/// Replaces the generation's numbers of strings and stacks by those of Names.
void Reader::resolve(const RawEvent& raw, Event& event) const {
  event.type = raw.type;
  event.record = raw.record;
  event.offset = raw.offset;
  event.args = raw.args;
  const EventSpec& spec = event_spec(raw.type);
  for (size_t i = 0; i < spec.count; ++i) {
    const ArgKind kind = spec.args[i].kind;
    if (kind != ArgKind::string && kind != ArgKind::stack) continue;
    const uint64_t id = raw.args[i];
    if (id == 0) continue;
    const auto& table = kind == ArgKind::string ? generation_.strings : generation_.stacks;
    const uint32_t* const found = table.find(id);
    if (found == nullptr) {
      throw TraceError({.generation = generation_.number, .m = event.m, .offset = raw.offset},
                       describe(event) + " names " +
                           (kind == ArgKind::string ? "string " : "stack ") + std::to_string(id) +
                           ", which this generation does not have");
    }
    event.args[i] = *found;
  }
}

/// The event of lanes_[index] has been taken: puts the lane where its next one belongs.
void Reader::replace(size_t index) {
  if (!load(*lanes_[index])) {
    std::swap(lanes_[index], lanes_.back());
    lanes_.pop_back();
    if (index == lanes_.size()) return;
  }
  // The lane, or the one that took its place, may belong above or below.
  while (index > 0 && lanes_[index]->time < lanes_[(index - 1) / 2]->time) {
    std::swap(lanes_[index], lanes_[(index - 1) / 2]);
    index = (index - 1) / 2;
  }
  sift_down(index);
}

void Reader::sift_down(size_t index) {
  for (;;) {
    size_t least = index;
    for (size_t child = 2 * index + 1; child <= 2 * index + 2 && child < lanes_.size(); ++child) {
      if (lanes_[child]->time < lanes_[least]->time) least = child;
    }
    if (least == index) return;
    std::swap(lanes_[index], lanes_[least]);
    index = least;
  }
}

bool Reader::advance(Lane& lane) {
  if (lane.m == nullptr) return true;  // Gofer's records are subject to no order
  try {
    return order_.advance(lane.head, *lane.m);
  } catch (const Violation& violation) {
    const Place place{
        .generation = generation_.number, .m = lane.cursor.m(), .offset = lane.head.offset};
    throw TraceError(place, describe(lane.head) + ": " + violation.what());
  }
}

/// Takes the earliest event that may come before that of the first lane.
bool Reader::advance_any(Event& event) {
  std::sort(lanes_.begin(), lanes_.end(),
            [](const auto& a, const auto& b) { return a->time < b->time; });  // is a heap, too
  for (size_t i = 1; i < lanes_.size(); ++i) {
    if (!advance(*lanes_[i])) continue;
    event = lanes_[i]->head;
    stamp(event, lanes_[i]->time);
    replace(i);
    return true;
  }
  return false;
}

void Reader::take_sample(Event& event) {
  const CpuSample& sample = generation_.samples[next_sample_++];
  event = Event();
  event.type = EventType::cpu_sample;
  event.m = sample.m;
  event.p = sample.p;
  event.g = sample.g;
  event.generation = generation_.number;
  event.offset = generation_.begin;
  if (sample.stack != 0) {
    const StackId* const stack = generation_.stacks.find(sample.stack);
    if (stack == nullptr) {
      throw TraceError({.generation = generation_.number, .m = sample.m},
                       "a CPU sample names stack " + std::to_string(sample.stack) +
                           ", which this generation does not have");
    }
    event.args[0] = *stack;
  }
  ++totals_.samples;
  stamp(event, sample.time);
}

int64_t Reader::to_ns(uint64_t time) const {
  const auto ns = static_cast<unsigned __int128>(time) * ns_per_unit_ >> 32;
  constexpr auto max = std::numeric_limits<int64_t>::max();
  return ns > static_cast<unsigned __int128>(max) ? max : static_cast<int64_t>(ns);
}

void Reader::stamp(Event& event, uint64_t time) {
  int64_t ns = to_ns(time);
  if (totals_.events == 0) {
    totals_.first_ns = ns;
  } else if (ns < totals_.last_ns) {
    ++totals_.late;
    totals_.max_late_ns = std::max(totals_.max_late_ns, totals_.last_ns - ns);
    ns = totals_.last_ns;
  }
  totals_.last_ns = ns;
  event.time_ns = ns;
  ++totals_.events;
  if (event.type == EventType::gofer_record) ++totals_.records;
}

/// No lane can go on. Blames an event that never can, or else the earliest one, and lists the
/// others.
void Reader::report_stuck() {
  constexpr size_t max_listed = 8;
  std::sort(lanes_.begin(), lanes_.end(),
            [](const auto& a, const auto& b) { return a->time < b->time; });
  size_t blamed = 0;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (order_.obstacle(lanes_[i]->head, *lanes_[i]->m).forever) {
      blamed = i;
      break;
    }
  }
  const auto say = [&](const Lane& lane) {
    return describe(lane.head) + ": " + order_.obstacle(lane.head, *lane.m).text;
  };
  std::string text = say(*lanes_[blamed]);
  size_t listed = 0;
  for (size_t i = 0; i < lanes_.size() && listed < max_listed; ++i) {
    if (i == blamed) continue;
    text += ++listed == 1 ? "\nThe next events of other Ms wait, too:" : "";
    text += "\n  M " + std::to_string(lanes_[i]->cursor.m()) + ", byte " +
            std::to_string(lanes_[i]->head.offset) + ": " + say(*lanes_[i]);
  }
  if (lanes_.size() > max_listed + 1) {
    text += "\n  and " + std::to_string(lanes_.size() - max_listed - 1) + " more";
  }
  throw TraceError({.generation = generation_.number,
                    .m = lanes_[blamed]->cursor.m(),
                    .offset = lanes_[blamed]->head.offset},
                   text);
}

}  // namespace gofer::tool
