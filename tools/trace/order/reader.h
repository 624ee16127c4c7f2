// A trace, event by event, in an order that fits the rules of Order.
//
//   Reader reader(open_file(path));
//   Event event;
//   while (reader.next(event)) …;
//
// The reader goes through one generation at a time. It keeps a lane for each M and takes the event
// with the earliest time that the rules allow. Clocks that differ between cores may put an event
// behind one that needs it. Such an event is taken later, with the time of its predecessor.
//
// Memory: for each M of a generation some 5 KiB, for each goroutine that is alive some 100 bytes,
// and the strings and stacks; nothing that grows with the number of events.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trace/order/order.h"
#include "trace/reader/cursor.h"
#include "trace/reader/event.h"
#include "trace/reader/generation.h"
#include "trace/reader/source.h"

namespace gofer::tool {

class Reader {
 public:
  /// Throws FileError if the source is not a trace.
  explicit Reader(std::unique_ptr<Source> source);

  /// The next event; false at the end. Throws TraceError, and then has no more events.
  bool next(Event& event);

  int version() const { return generations_.version(); }
  const Names& names() const { return names_; }
  const Order& order() const { return order_; }

  struct Totals {
    uint64_t generations = 0;
    uint64_t events = 0;
    uint64_t records = 0;  // of Gofer, included in events
    uint64_t samples = 0;  // of the CPU, included in events
    int64_t first_ns = 0;  // times of the first and the last event
    int64_t last_ns = 0;
    uint64_t late = 0;  // events that the rules put behind a later one
    int64_t max_late_ns = 0;
  };
  const Totals& totals() const { return totals_; }
  /// The clocks of the first generation, if the trace has them.
  const std::optional<ClockSnapshot>& clock() const { return clock_; }

  uint64_t size() const { return source_->size(); }
  /// How many bytes have been read, roughly: of size().
  uint64_t position() const { return generation_.begin + decoded_; }

 private:
  /// What is yet to come from one M: its next event, and the cursor behind that.
  struct Lane {
    Cursor cursor;
    MState* m;
    uint64_t time;
    Event head;
  };

  bool begin_generation();
  void add_lane(const ThreadBatches& thread, Cursor::Kind kind);
  bool load(Lane& lane);
  void resolve(const RawEvent& raw, Event& event) const;
  void replace(size_t index);
  void sift_down(size_t index);
  bool advance(Lane& lane);
  bool advance_any(Event& event);
  void take_sample(Event& event);
  void stamp(Event& event, uint64_t time);
  int64_t to_ns(uint64_t time) const;
  [[noreturn]] void report_stuck();

  std::unique_ptr<Source> source_;
  Names names_;
  GenerationReader generations_;
  Order order_;
  Generation generation_;
  uint64_t ns_per_unit_ = 0;                  // in units of 2^-32
  std::vector<std::unique_ptr<Lane>> lanes_;  // a heap by time
  size_t next_sample_ = 0;
  uint64_t decoded_ = 0;
  bool ended_ = false;
  Totals totals_;
  std::optional<ClockSnapshot> clock_;
};

}  // namespace gofer::tool
