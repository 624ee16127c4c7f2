#include "trace/view/records.h"

#include "trace/gofer_records.h"

namespace gofer::tool {
namespace {

TableTotals& of(std::array<TableTotals, table_count>& totals, TableId id) {
  return totals[static_cast<size_t>(id)];
}

/// A length from a record. A damaged trace may have any number.
int64_t length(uint64_t value) { return static_cast<int64_t>(value & 0x7fffffff); }

}  // namespace

Records::Records(Lanes& lanes, const Goroutines& goroutines,
                 std::array<TableTotals, table_count>& totals, BlockSink sink)
    : lanes_(lanes),
      goroutines_(goroutines),
      series_totals_(of(totals, TableId::series)),
      sink_(std::move(sink)),
      marks_(TableId::marks, 0, 6, of(totals, TableId::marks)),
      global_queue_(global_queue, series_totals_),
      all_rings_(all_rings, series_totals_) {}

void Records::mark(const Event& event, uint64_t now, uint64_t a, uint64_t b, uint64_t c,
                   uint64_t d) {
  marks_.add_at(now, now, {event.record, a, b, c, d}, sink_);
}

void Records::queue(const Event& event, uint64_t now) {
  const uint64_t lane_number = lane(event.args[0]);
  if (lane_number == 0) return;
  while (rings_.size() < lane_number) {
    rings_.emplace_back(first_ring + static_cast<uint32_t>(rings_.size()), series_totals_);
  }
  Series& ring = rings_[lane_number - 1];
  const int64_t change = length(event.args[1]) - ring.value();
  ring.set(now, ring.value() + change, sink_);
  all_rings_.set(now, all_rings_.value() + change, sink_);
}

void Records::add(const Event& event, uint64_t now) {
  const auto& args = event.args;
  const auto goroutine = [&](uint64_t id) { return uint64_t{goroutines_.number_of(id)}; };
  switch (static_cast<RecordKind>(event.record)) {
    case RecordKind::steal:
      return mark(event, now, lane(args[0]), lane(args[1]), args[2], args[3]);
    case RecordKind::queue:
      return queue(event, now);
    case RecordKind::global_queue:
      return global_queue_.set(now, length(args[0]), sink_);
    case RecordKind::runnext:
      return mark(event, now, lane(args[0]), goroutine(args[1]), goroutine(args[2]), 0);
    case RecordKind::hand_off:
      return mark(event, now, lane(args[0]), args[1] == 0 ? 0 : thread(args[1]),
                  args[2] == 0 ? 0 : thread(args[2]), 0);
    case RecordKind::pause: {
      const uint64_t g = goroutine(args[0]);
      const uint64_t p = lane(args[2]);
      if (g != 0 && p != 0) {
        (void)lanes_.pause(static_cast<uint32_t>(p - 1), static_cast<uint32_t>(g - 1));
      }
      return mark(event, now, g, thread(args[1]), p, args[3]);
    }
    case RecordKind::pass:
      return mark(event, now, lane(args[0]), thread(args[1]), thread(args[2]), goroutine(args[3]));
    case RecordKind::retake:
      return mark(event, now, lane(args[0]), thread(args[1]), args[2], 0);
    case RecordKind::sysmon:
      return mark(event, now, args[0], args[1], args[2], 0);
    case RecordKind::counter:
      return;  // the page does not show the program's own numbers
  }
}

void Records::finish(uint64_t now) {
  marks_.flush(sink_);
  global_queue_.finish(now, sink_);
  all_rings_.finish(now, sink_);
  for (Series& ring : rings_) ring.finish(now, sink_);
}

}  // namespace gofer::tool
