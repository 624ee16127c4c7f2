// Writes small traces by hand, right and wrong ones. It checks nothing.
//
//   TraceWriter trace(23);
//   trace.batch(1, 5).ev(EventType::proc_status, 0, 0, 1).ev(EventType::go_status, 0, 7, 5, 2);
//   trace.end_generation(1);
//   read_all(trace.bytes())
#pragma once

#include <cstdint>
#include <initializer_list>
#include <list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/order/reader.h"
#include "trace/reader/varint.h"

namespace gofer::tool::testing {

using Bytes = std::vector<uint8_t>;

struct TestFrame {
  uint64_t pc = 0, function = 0, file = 0, line = 0;
};

/// The data of a batch.
class Events {
 public:
  /// An event: its kind, the time since the one before, and its arguments.
  template <class... Args>
  Events& ev(EventType type, uint64_t dt, Args... args) {
    data_.push_back(static_cast<uint8_t>(type));
    append_varint(data_, dt);
    (append_varint(data_, static_cast<uint64_t>(args)), ...);
    return *this;
  }
  Events& raw(std::initializer_list<int> bytes) {
    for (const int byte : bytes) data_.push_back(static_cast<uint8_t>(byte));
    return *this;
  }
  Events& number(uint64_t value) {
    append_varint(data_, value);
    return *this;
  }
  Events& text(std::string_view text) {
    data_.insert(data_.end(), text.begin(), text.end());
    return *this;
  }
  const Bytes& data() const { return data_; }

 private:
  Bytes data_;
};

class TraceWriter {
 public:
  explicit TraceWriter(int version = 23) : version_(version) {
    const std::string header = "go 1." + std::to_string(version) + " trace";
    head_.assign(header.begin(), header.end());
    head_.insert(head_.end(), 3, 0);
  }

  /// A batch, to be filled through what this returns.
  Events& batch(uint64_t generation, uint64_t m, uint64_t time = 1000, uint8_t experiment = 0) {
    parts_.push_back({generation, m, time, experiment, {}, {}});
    return parts_.back().events;
  }

  TraceWriter& strings(uint64_t generation,
                       std::initializer_list<std::pair<uint64_t, std::string_view>> list) {
    Events& events = batch(generation, none);
    events.raw({static_cast<int>(EventType::strings)});
    for (const auto& [id, text] : list) {
      events.raw({static_cast<int>(EventType::string)}).number(id).number(text.size()).text(text);
    }
    return *this;
  }

  TraceWriter& stack(uint64_t generation, uint64_t id, std::initializer_list<TestFrame> frames) {
    Events& events = batch(generation, none);
    events.raw({static_cast<int>(EventType::stacks), static_cast<int>(EventType::stack)});
    events.number(id).number(frames.size());
    for (const TestFrame& frame : frames) {
      events.number(frame.pc).number(frame.function).number(frame.file).number(frame.line);
    }
    return *this;
  }

  /// The clocks, and from 1.26 on the mark of the end.
  TraceWriter& end_generation(uint64_t generation, uint64_t frequency = 1'000'000'000) {
    Events& events = batch(generation, none);
    if (version_ >= 25) events.raw({static_cast<int>(EventType::sync)});
    events.raw({static_cast<int>(EventType::frequency)}).number(frequency);
    if (version_ >= 25) events.ev(EventType::clock_snapshot, 0, 1, 2, 3);
    if (version_ >= 26) raw({static_cast<uint8_t>(EventType::end_of_generation)});
    return *this;
  }

  /// Bytes after what has been written so far.
  TraceWriter& raw(Bytes bytes) {
    parts_.push_back({0, 0, 0, 0, {}, std::move(bytes)});
    return *this;
  }

  Bytes bytes() const {
    Bytes out = head_;
    for (const Part& part : parts_) {
      out.insert(out.end(), part.raw.begin(), part.raw.end());
      if (!part.raw.empty()) continue;
      const bool experimental = part.experiment != 0;
      out.push_back(static_cast<uint8_t>(experimental ? EventType::experimental_batch
                                                      : EventType::event_batch));
      if (experimental) out.push_back(part.experiment);
      for (const uint64_t n : {part.generation, part.m, part.time}) append_varint(out, n);
      const Bytes& data = part.events.data();
      append_varint(out, data.size());
      out.insert(out.end(), data.begin(), data.end());
    }
    return out;
  }

 private:
  struct Part {
    uint64_t generation, m, time;
    uint8_t experiment;
    Events events;
    Bytes raw;
  };

  int version_;
  Bytes head_;
  std::list<Part> parts_;  // batch() hands out references
};

/// G 7 runs on P 0, creates G 8 and blocks. G 8 runs, `late` after that, and makes a call, in which
/// M 2 takes the P, wakes G 7 and runs it.
inline TraceWriter call_that_loses_its_p(uint64_t late) {
  TraceWriter trace;
  trace.batch(1, 1, 100)
      .ev(EventType::proc_status, 0, 0, 1)
      .ev(EventType::go_status, 0, 7, 1, 2)
      .ev(EventType::go_create, 10, 8, 1, 0)
      .ev(EventType::go_block, 10, 2, 0)
      .ev(EventType::go_start, late, 8, 1)
      .ev(EventType::go_syscall_begin, 10, 1, 0)
      .ev(EventType::go_syscall_end_blocked, 30);
  trace.batch(1, 2, 150)
      .ev(EventType::proc_steal, 0, 0, 2, 1)
      .ev(EventType::go_unblock, 0, 7, 1, 0)
      .ev(EventType::proc_start, 5, 0, 3)
      .ev(EventType::go_start, 0, 7, 2);
  trace.strings(1, {{1, "work"}, {2, "sleep"}, {3, "x.cc"}});
  trace.stack(1, 1, {{16, 1, 3, 1}});
  trace.end_generation(1);
  return trace;
}

/// All events of a trace.
inline std::vector<Event> read_all(const Bytes& bytes) {
  Reader reader(open_bytes(bytes));
  std::vector<Event> events;
  Event event;
  while (reader.next(event)) events.push_back(event);
  return events;
}

/// What is wrong with a trace; empty if nothing is.
inline std::string error_in(const Bytes& bytes) {
  try {
    (void)read_all(bytes);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace gofer::tool::testing
