// The buckets of a histogram of times: gofer/metrics.h.
//
// Log-linear, as in Go's runtime: each power of two is cut into four buckets of equal width, so the
// bounds of a bucket differ by a quarter at most. The first bucket has all times below 64 ns, the
// last one all from 4.9 hours on.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace gofer::detail {

inline constexpr int lowest_octave = 6;    // 2^6 ns = 64 ns
inline constexpr int highest_octave = 44;  // 2^44 ns = 4.9 h
inline constexpr int sub_bucket_bits = 2;
inline constexpr std::size_t time_buckets =
    (static_cast<std::size_t>(highest_octave - lowest_octave) << sub_bucket_bits) + 2;

/// The bucket of a time in nanoseconds; a negative one counts as 0.
constexpr std::size_t bucket_of(std::int64_t ns) {
  if (ns < std::int64_t{1} << lowest_octave) return 0;
  const auto v = static_cast<std::uint64_t>(ns);
  const int octave = static_cast<int>(std::bit_width(v)) - 1;
  if (octave >= highest_octave) return time_buckets - 1;
  const auto sub = static_cast<std::size_t>(v >> (octave - sub_bucket_bits)) & 3;
  return 1 + (static_cast<std::size_t>(octave - lowest_octave) << sub_bucket_bits) + sub;
}

/// The least time of a bucket, in nanoseconds.
constexpr std::int64_t bucket_begin_ns(std::size_t bucket) {
  if (bucket == 0) return 0;
  const std::size_t octave = (bucket - 1) >> sub_bucket_bits;
  const auto sub = static_cast<std::int64_t>((bucket - 1) & 3);
  return (std::int64_t{4} + sub) << (static_cast<int>(octave) + lowest_octave - sub_bucket_bits);
}

}  // namespace gofer::detail
