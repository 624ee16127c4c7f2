#include "trace/reader/varint.h"

#include <gtest/gtest.h>

#include <vector>

namespace gofer::tool {
namespace {

using Bytes = std::vector<uint8_t>;

const uint8_t* decode(const Bytes& bytes, uint64_t* value) {
  return decode_varint(bytes.data(), bytes.data() + bytes.size(), value);
}

TEST(Varint, NumbersSurviveARoundTrip) {
  for (const uint64_t n : {uint64_t{0}, uint64_t{1}, uint64_t{127}, uint64_t{128}, uint64_t{300},
                           uint64_t{1} << 35, ~uint64_t{0} >> 1, ~uint64_t{0}}) {
    Bytes bytes;
    append_varint(bytes, n);
    uint64_t value = 1;
    EXPECT_EQ(decode(bytes, &value), bytes.data() + bytes.size());
    EXPECT_EQ(value, n);
  }
}

TEST(Varint, ANumberThatIsCutOffIsRefused) {
  uint64_t value = 0;
  EXPECT_EQ(decode({}, &value), nullptr);
  EXPECT_EQ(decode({0x80}, &value), nullptr);
  EXPECT_EQ(decode({0xff, 0xff, 0xff}, &value), nullptr);
}

TEST(Varint, ANumberOfMoreThan64BitsIsRefused) {
  Bytes bytes(9, 0xff);
  bytes.push_back(2);
  uint64_t value = 0;
  EXPECT_EQ(decode(bytes, &value), nullptr);
  bytes.back() = 1;
  EXPECT_NE(decode(bytes, &value), nullptr);
  EXPECT_EQ(value, ~uint64_t{0});
  bytes.back() = 0x80;
  bytes.push_back(0);
  EXPECT_EQ(decode(bytes, &value), nullptr) << "eleven bytes";
}

}  // namespace
}  // namespace gofer::tool
