// Unsigned LEB128 numbers, as the trace format has them: seven bits a byte, the lowest first, and
// the top bit of every byte but the last.
//
// Invariant: a decoder never reads at or beyond `end`, and takes ten bytes at most. A number that
// does not fit into 64 bits is refused, as Go's reader does.
#pragma once

#include <cstdint>

namespace gofer::tool {

constexpr int max_varint_size = 10;

/// Decodes the number at p. Returns the byte after it, or nullptr if the number is cut off by `end`
/// or too large.
inline const uint8_t* decode_varint(const uint8_t* p, const uint8_t* end, uint64_t* value) {
  if (p < end && *p < 0x80) {  // most numbers of a trace
    *value = *p;
    return p + 1;
  }
  uint64_t result = 0;
  for (int i = 0; i < max_varint_size && p < end; ++i) {
    const uint8_t byte = *p++;
    if (byte < 0x80) {
      if (i == max_varint_size - 1 && byte > 1) return nullptr;
      *value = result | static_cast<uint64_t>(byte) << (7 * i);
      return p;
    }
    result |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
  }
  return nullptr;
}

/// Appends value to a container of bytes.
template <class Bytes>
void append_varint(Bytes& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    out.push_back(static_cast<typename Bytes::value_type>(value | 0x80));
  }
  out.push_back(static_cast<typename Bytes::value_type>(value));
}

}  // namespace gofer::tool
