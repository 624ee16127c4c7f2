// The events of one M in one generation, one after the other: from its batches, through a window on
// the file.
//
// A cursor decodes and knows the shape of events, not their meaning. Its time is in the units of
// the trace.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "trace/reader/generation.h"

namespace gofer::tool {

/// An event as it was written.
struct RawEvent {
  EventType type = EventType::invalid;
  uint8_t record = 0;  // of a gofer_record
  uint64_t time = 0;
  uint64_t offset = 0;
  std::array<uint64_t, max_args> args{};
};

class Cursor {
 public:
  enum class Kind : uint8_t { events, records };

  Cursor(Source& source, int version, uint64_t generation, uint64_t m,
         const std::vector<BatchRef>& batches, Kind kind)
      : window_(source, 4096),
        batches_(&batches),
        generation_(generation),
        m_(m),
        version_(version),
        kind_(kind) {}

  uint64_t m() const { return m_; }
  Kind kind() const { return kind_; }
  /// The event that next() has read.
  const RawEvent& event() const { return event_; }
  /// How many bytes it took.
  uint64_t event_size() const { return offset_ - event_.offset; }

  /// Reads an event; false if there is none left. Throws TraceError.
  bool next();

 private:
  bool open_batch();
  const uint8_t* decode_event(const uint8_t* p, const uint8_t* end);
  const uint8_t* decode_record(const uint8_t* p, const uint8_t* end);
  void add_time(uint64_t difference);
  [[noreturn]] void fail(const std::string& message) const;

  Window window_;
  const std::vector<BatchRef>* batches_;
  size_t index_ = 0;     // of the next batch
  uint64_t offset_ = 0;  // of the next event
  uint64_t end_ = 0;     // of the batch
  uint64_t time_ = 0;
  uint64_t generation_;
  uint64_t m_;
  int version_;
  Kind kind_;
  RawEvent event_;
};

}  // namespace gofer::tool
