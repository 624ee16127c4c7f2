// Writing the tables of a generation: batches of strings, of stacks, and of the clock's frequency.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "runtime/trace/events.h"
#include "runtime/trace/writer.h"

namespace gofer::internal::tracer {

inline constexpr size_t longest_text = 1024;  // by the format

/// Batches of one table.
class TableWriter {
 public:
  using Sink = void (*)(const void* bytes, size_t size);
  TableWriter(uint64_t generation, uint64_t time, Table kind, Sink sink)
      : generation_(generation), time_(time), kind_(kind), sink_(sink) {
    begin();
  }
  ~TableWriter() { end(); }
  TableWriter(const TableWriter&) = delete;
  TableWriter& operator=(const TableWriter&) = delete;

  void byte(Table value) { data_[used_++] = static_cast<uint8_t>(value); }
  void number(uint64_t value) {
    used_ = static_cast<size_t>(put_varint(data_ + used_, value) - data_);
  }
  void text(std::string_view value) {
    number(value.size());
    std::memcpy(data_ + used_, value.data(), value.size());
    used_ += value.size();
  }
  /// Before each entry.
  void need(size_t size) {
    if (used_ + size <= sizeof data_) return;
    end();
    begin();
  }

 private:
  void begin() {
    used_ = 0;
    byte(kind_);
  }
  void end() {
    uint8_t head[1 + 4 * longest_varint];
    uint8_t* at = head;
    *at++ = event_batch;
    at = put_varint(at, generation_);
    at = put_varint(at, no_m);
    at = put_varint(at, time_);
    at = put_varint(at, used_);
    sink_(head, static_cast<size_t>(at - head));
    sink_(data_, used_);
  }

  uint64_t generation_;
  uint64_t time_;
  Table kind_;
  Sink sink_;
  size_t used_ = 0;
  uint8_t data_[8192];
};

inline void put_string(TableWriter& out, uint64_t id, std::string_view text) {
  text = text.substr(0, longest_text);
  out.need(text.size() + 1 + 2 * longest_varint);
  out.byte(Table::string);
  out.number(id);
  out.text(text);
}

}  // namespace gofer::internal::tracer
