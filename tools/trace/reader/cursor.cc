#include "trace/reader/cursor.h"

#include <string>

#include "trace/gofer_records.h"
#include "trace/reader/error.h"
#include "trace/reader/varint.h"

namespace gofer::tool {
namespace {

// The longest event or record: a kind, a time, and seven arguments.
constexpr size_t max_event_size = 1 + max_varint_size * 8;
// Times are compared as signed numbers by everything behind the reader.
constexpr uint64_t max_time = ~uint64_t{0} >> 1;

}  // namespace

void Cursor::fail(const std::string& message) const {
  throw TraceError({.generation = generation_, .m = m_, .offset = offset_}, message);
}

/// Goes to the next batch that has events. False if there is none.
bool Cursor::open_batch() {
  for (; index_ < batches_->size(); ++index_) {
    const BatchRef& batch = (*batches_)[index_];
    offset_ = batch.data;
    end_ = batch.data + batch.size;
    time_ = batch.time;
    if (time_ > max_time) fail("a batch with a time of over 63 bits");
    if (kind_ == Kind::records) {
      const auto bytes = window_.at(offset_, 1, end_);
      if (bytes.empty() || bytes[0] != gofer_records_version) continue;
      ++offset_;
    }
    if (offset_ == end_) continue;
    ++index_;
    return true;
  }
  return false;
}

bool Cursor::next() {
  if (offset_ == end_ && !open_batch()) return false;
  const uint64_t left = end_ - offset_;
  const auto bytes = window_.at(offset_, std::min<uint64_t>(left, max_event_size), end_);
  if (bytes.empty()) fail("the file became shorter while it was read");
  const uint8_t* const p = bytes.data();
  const uint8_t* const end = p + std::min<uint64_t>(bytes.size(), left);
  event_.offset = offset_;
  const uint8_t* const after = kind_ == Kind::events ? decode_event(p, end) : decode_record(p, end);
  offset_ += static_cast<uint64_t>(after - p);
  return true;
}

void Cursor::add_time(uint64_t difference) {
  if (difference > max_time - time_) fail("the time overflows 63 bits");
  time_ += difference;
  event_.time = time_;
}

const uint8_t* Cursor::decode_event(const uint8_t* p, const uint8_t* end) {
  const auto type = static_cast<EventType>(*p++);
  const EventSpec& spec = event_spec(type);
  if (spec.since > version_ || !spec.timed || type == EventType::clock_snapshot) {
    fail(spec.name.empty() || spec.since > version_
             ? "a byte " + std::to_string(static_cast<int>(type)) + ", which is no event of go 1." +
                   std::to_string(version_)
             : std::string(spec.name) + " among the events of an M");
  }
  event_.type = type;
  uint64_t difference = 0;
  p = decode_varint(p, end, &difference);
  for (size_t i = 0; i < spec.count && p != nullptr; ++i) {
    p = decode_varint(p, end, &event_.args[i]);
  }
  if (p == nullptr) fail(std::string(spec.name) + " is cut off, or has a number of over 64 bits");
  for (size_t i = spec.count; i < max_args; ++i) event_.args[i] = 0;
  add_time(difference);
  return p;
}

const uint8_t* Cursor::decode_record(const uint8_t* p, const uint8_t* end) {
  const uint8_t byte = *p++;
  const int count = byte >> 5;
  event_.type = EventType::gofer_record;
  event_.record = byte & 31;
  event_.args.fill(0);
  uint64_t difference = 0;
  p = decode_varint(p, end, &difference);
  for (int i = 0; i < count && p != nullptr; ++i) {
    uint64_t value = 0;
    p = decode_varint(p, end, &value);
    if (i < max_args) event_.args[static_cast<size_t>(i)] = value;
  }
  const std::string name(record_name(event_.record));
  if (p == nullptr) fail("Gofer's record \"" + name + "\" is cut off");
  if (count < min_record_args(event_.record)) {
    fail("Gofer's record \"" + name + "\" has " + std::to_string(count) + " arguments, of " +
         std::to_string(min_record_args(event_.record)));
  }
  add_time(difference);
  return p;
}

}  // namespace gofer::tool
