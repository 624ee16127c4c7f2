// Writes protobuf messages: the few field types that Perfetto's format needs.
//
// A nested message is begun, filled and ended in place: its length takes four bytes, padded with
// continuation bits, which the encoding permits. So nothing is built twice.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trace/reader/varint.h"

namespace gofer::tool {

class ProtobufWriter {
 public:
  void number(uint32_t field, uint64_t value) {
    append_varint(out_, field << 3 | varint_type);
    append_varint(out_, value);
  }

  void fixed64(uint32_t field, uint64_t value) {
    append_varint(out_, field << 3 | fixed64_type);
    for (int i = 0; i < 8; ++i) out_ += static_cast<char>(value >> (8 * i));
  }

  void string(uint32_t field, std::string_view text) {
    append_varint(out_, field << 3 | bytes_type);
    append_varint(out_, text.size());
    out_ += text;
  }

  /// A nested message with what `fill` writes. It must be shorter than 256 MiB.
  template <class Fill>
  void message(uint32_t field, Fill fill) {
    append_varint(out_, field << 3 | bytes_type);
    const size_t at = out_.size();
    out_.append(length_size, '\0');
    fill();
    size_t length = out_.size() - at - length_size;
    for (size_t i = 0; i < length_size; ++i, length >>= 7) {
      out_[at + i] = static_cast<char>((length & 0x7f) | (i + 1 < length_size ? 0x80 : 0));
    }
  }

  const std::string& bytes() const { return out_; }
  void clear() { out_.clear(); }

 private:
  enum : uint32_t { varint_type = 0, fixed64_type = 1, bytes_type = 2 };
  static constexpr size_t length_size = 4;

  std::string out_;
};

}  // namespace gofer::tool
