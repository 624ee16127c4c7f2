#include "trace/view/lanes.h"

#include <algorithm>

namespace gofer::tool {
namespace {

TableTotals& of(std::array<TableTotals, table_count>& totals, TableId id) {
  return totals[static_cast<size_t>(id)];
}

uint32_t number(IdMap<uint32_t>& numbers, std::vector<uint64_t>& ids, uint64_t id) {
  if (const uint32_t* const found = numbers.find(id)) return *found;
  const auto next = static_cast<uint32_t>(ids.size());
  if (id != none) numbers[id] = next;
  ids.push_back(id);
  return next;
}

}  // namespace

Lanes::Lane::Lane(uint32_t number, std::array<TableTotals, table_count>& totals)
    : slices(TableId::slices, number, 11, of(totals, TableId::slices)),
      syscalls(TableId::syscalls, number, 3, of(totals, TableId::syscalls)),
      held(TableId::held, number, 3, of(totals, TableId::held)) {}

uint32_t Lanes::lane_of(uint64_t p) {
  const uint32_t lane = number(lane_numbers_, procs_, p);
  if (lane == lanes_.size()) lanes_.emplace_back(lane, totals_);
  return lane;
}

uint32_t Lanes::number_of_m(uint64_t m) { return number(thread_numbers_, threads_, m); }

uint32_t Lanes::running(uint32_t lane) const {
  return lanes_[lane].is_open ? lanes_[lane].open.g : no_goroutine;
}

void Lanes::begin(uint32_t number, uint64_t now, const RunSlice& slice) {
  Lane& lane = lanes_[number];
  if (lane.is_open) (void)end(number, now, {});
  write_last(lane);
  lane.is_open = true;
  lane.is_paused = false;
  lane.open = slice;
  // What a status says held since the begin, unless the P did something else meanwhile.
  lane.open.begin = std::max(now, lane.free_since);
}

uint32_t Lanes::end(uint32_t number, uint64_t now, const End& ending) {
  Lane& lane = lanes_[number];
  end_syscall(number, now);
  lane.is_open = false;
  lane.has_last = true;
  lane.last = lane.open;
  lane.last.end = lane.free_since = std::max(now, lane.open.begin);
  lane.last.ending = ending;
  if (lane.is_paused && ending.kind == EndKind::stopped) {
    lane.last.ending.kind = EndKind::paused;
  }
  return strings_.end(lane.last.ending);
}

void Lanes::write_last(Lane& lane) {
  if (!lane.has_last) return;
  lane.has_last = false;
  const RunSlice& slice = lane.last;
  const Arrival& arrival = slice.arrival;
  lane.slices.add_at(
      slice.begin, slice.end,
      {slice.end - slice.begin, slice.g, strings_.end(slice.ending), arrival.from, arrival.waited,
       arrival.late, arrival.by, arrival.by_lane, arrival.by_stack, slice.m},
      sink_);
}

void Lanes::begin_syscall(uint32_t number, uint64_t now, uint32_t stack) {
  Lane& lane = lanes_[number];
  lane.in_syscall = true;
  lane.syscall_begin = std::max(now, lane.open.begin);
  lane.syscall_stack = stack;
}

void Lanes::end_syscall(uint32_t number, uint64_t now) {
  Lane& lane = lanes_[number];
  if (!lane.in_syscall) return;
  lane.in_syscall = false;
  const uint64_t end = std::max(now, lane.syscall_begin);
  lane.syscalls.add_at(lane.syscall_begin, end, {end - lane.syscall_begin, lane.syscall_stack},
                       sink_);
}

void Lanes::hold(uint32_t number, uint64_t now, uint32_t m) {
  release(number, now);
  Lane& lane = lanes_[number];
  lane.is_held = true;
  lane.held_since = std::max(now, lane.held_until);
  lane.held_by = m;
}

void Lanes::release(uint32_t number, uint64_t now) {
  Lane& lane = lanes_[number];
  if (!lane.is_held) return;
  lane.is_held = false;
  lane.held_until = std::max(now, lane.held_since);
  lane.held.add_at(lane.held_since, lane.held_until,
                   {lane.held_until - lane.held_since, lane.held_by}, sink_);
}

bool Lanes::pause(uint32_t number, uint32_t g) {
  Lane& lane = lanes_[number];
  if (lane.is_open && lane.open.g == g) {
    lane.is_paused = true;
    return true;
  }
  if (!lane.has_last || lane.last.g != g || lane.last.ending.kind != EndKind::stopped) return false;
  lane.last.ending.kind = EndKind::paused;
  return true;
}

void Lanes::finish(uint64_t now) {
  for (uint32_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i].is_open) (void)end(i, now, {.kind = EndKind::still_running});
    release(i, now);
    write_last(lanes_[i]);
    lanes_[i].slices.flush(sink_);
    lanes_[i].syscalls.flush(sink_);
    lanes_[i].held.flush(sink_);
  }
}

}  // namespace gofer::tool
