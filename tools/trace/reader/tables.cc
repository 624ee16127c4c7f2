#include "trace/reader/tables.h"

#include <string>

#include "trace/reader/error.h"
#include "trace/reader/varint.h"

namespace gofer::tool {
namespace {

constexpr uint64_t max_string_size = 1 << 10;
constexpr uint64_t max_frames = 128;

/// Reads bytes and numbers of one table, and names the place of whatever is wrong.
class Parser {
 public:
  explicit Parser(const TableData& data)
      : data_(data), p_(data.bytes.data()), end_(p_ + data.bytes.size()) {}

  bool at_end() const { return p_ == end_; }

  EventType type() { return static_cast<EventType>(*p_++); }

  void expect(EventType wanted, const char* what) {
    if (type() != wanted) {
      --p_;
      fail(std::string("expected ") + what + ", found a byte " + std::to_string(*p_));
    }
  }

  uint64_t number(const char* what) {
    uint64_t value = 0;
    const uint8_t* const after = decode_varint(p_, end_, &value);
    if (after == nullptr) fail(std::string(what) + " is cut off, or over 64 bits");
    p_ = after;
    return value;
  }

  std::string_view text(uint64_t size) {
    if (size > static_cast<uint64_t>(end_ - p_)) fail("a string is cut off");
    const std::string_view result(reinterpret_cast<const char*>(p_), size);
    p_ += size;
    return result;
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw TraceError({.generation = data_.generation,
                      .offset = data_.offset + static_cast<uint64_t>(p_ - data_.bytes.data())},
                     message);
  }

 private:
  const TableData& data_;
  const uint8_t* p_;
  const uint8_t* end_;
};

}  // namespace

void read_strings(const TableData& data, Names& names, Generation& generation) {
  Parser in(data);
  in.expect(EventType::strings, "a batch of strings");
  while (!in.at_end()) {
    in.expect(EventType::string, "a string");
    const uint64_t id = in.number("the id of a string");
    const uint64_t size = in.number("the size of a string");
    if (size > max_string_size) {
      in.fail("a string of " + std::to_string(size) + " bytes; the limit is " +
              std::to_string(max_string_size));
    }
    const std::string_view text = in.text(size);
    if (id == 0 || id == none) in.fail("a string with the id " + std::to_string(id));
    if (generation.strings.find(id) != nullptr) {
      in.fail("string " + std::to_string(id) + " occurs twice in this generation");
    }
    generation.strings[id] = names.intern(text);
  }
}

void read_stacks(const TableData& data, Names& names, Generation& generation) {
  Parser in(data);
  const auto string_number = [&](const char* what, uint64_t stack) -> StringId {
    const uint64_t id = in.number(what);
    if (id == 0) return 0;
    const StringId* const found = generation.strings.find(id);
    if (found == nullptr) {
      in.fail("stack " + std::to_string(stack) + " names string " + std::to_string(id) +
              ", which this generation does not have");
    }
    return *found;
  };

  in.expect(EventType::stacks, "a batch of stacks");
  std::vector<Frame> frames;
  while (!in.at_end()) {
    in.expect(EventType::stack, "a stack");
    const uint64_t id = in.number("the id of a stack");
    const uint64_t count = in.number("the size of a stack");
    if (count > max_frames) {
      in.fail("a stack of " + std::to_string(count) + " frames; the limit is " +
              std::to_string(max_frames));
    }
    frames.clear();
    for (uint64_t i = 0; i < count; ++i) {
      Frame frame;
      frame.pc = in.number("the address of a frame");
      frame.function = string_number("the function of a frame", id);
      frame.file = string_number("the file of a frame", id);
      frame.line = in.number("the line of a frame");
      frames.push_back(frame);
    }
    if (id == 0 || id == none) in.fail("a stack with the id " + std::to_string(id));
    if (generation.stacks.find(id) != nullptr) {
      in.fail("stack " + std::to_string(id) + " occurs twice in this generation");
    }
    generation.stacks[id] = names.intern(frames);
  }
}

void read_cpu_samples(const TableData& data, Generation& generation) {
  Parser in(data);
  in.expect(EventType::cpu_samples, "a batch of CPU samples");
  while (!in.at_end()) {
    in.expect(EventType::cpu_sample, "a CPU sample");
    CpuSample sample;
    sample.time = in.number("the time of a sample");
    sample.m = in.number("the M of a sample");
    sample.p = in.number("the P of a sample");
    sample.g = in.number("the goroutine of a sample");
    if (sample.g == 0) sample.g = none;
    sample.stack = in.number("the stack of a sample");
    generation.samples.push_back(sample);
  }
}

void read_sync(const TableData& data, int version, uint64_t time, Generation& generation) {
  Parser in(data);
  if (version >= 25) in.expect(EventType::sync, "a batch of clocks");
  while (!in.at_end()) {
    switch (in.type()) {
      case EventType::frequency:
        if (generation.frequency != 0) in.fail("a second frequency in this generation");
        generation.frequency = in.number("the frequency");
        if (generation.frequency == 0) in.fail("a frequency of 0");
        break;
      case EventType::clock_snapshot: {
        if (version < 25) in.fail("clocks in a trace before 1.25");
        if (generation.clock) in.fail("a second set of clocks in this generation");
        ClockSnapshot clock;
        clock.time = time + in.number("a time");
        clock.monotonic_ns = in.number("the monotonic clock");
        clock.wall_s = in.number("the seconds of the wall clock");
        clock.wall_ns = in.number("the nanoseconds of the wall clock");
        generation.clock = clock;
        break;
      }
      default:
        in.fail("expected a frequency or clocks");
    }
  }
}

}  // namespace gofer::tool
