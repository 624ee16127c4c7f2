// How often and how long something lasted: count, total, maximum, and quantiles to within 3 %.
//
// Buckets grow with the durations: 32 for each power of two. Only those that are used exist,
// because a trace may have thousands of kinds of goroutines with a dozen states each.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

namespace gofer::tool {

/// The sum of two durations. A damaged trace may have stays of 290 years; their sum stays at the
/// greatest number.
inline int64_t sum_ns(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

class Histogram {
 public:
  void add(int64_t ns) {
    ++count_;
    total_ns_ = sum_ns(total_ns_, ns);
    max_ns_ = std::max(max_ns_, ns);
    const uint16_t bucket = bucket_of(static_cast<uint64_t>(ns));
    auto at = std::lower_bound(buckets_.begin(), buckets_.end(), bucket,
                               [](const auto& entry, uint16_t b) { return entry.first < b; });
    if (at == buckets_.end() || at->first != bucket) at = buckets_.insert(at, {bucket, 0});
    ++at->second;
  }

  uint64_t count() const { return count_; }
  int64_t total_ns() const { return total_ns_; }
  int64_t max_ns() const { return max_ns_; }

  /// The duration that a part q of all durations does not exceed. 0 if there are none.
  int64_t quantile(double q) const {
    const auto wanted = static_cast<uint64_t>(q * static_cast<double>(count_) + 0.5);
    uint64_t seen = 0;
    for (const auto& [bucket, count] : buckets_) {
      seen += count;
      if (seen >= std::max<uint64_t>(wanted, 1)) return std::min(middle_of(bucket), max_ns_);
    }
    return 0;
  }

 private:
  static constexpr int bits = 5;  // 32 buckets

  static uint16_t bucket_of(uint64_t ns) {
    if (ns < (1u << bits)) return static_cast<uint16_t>(ns);
    const int shift = std::bit_width(ns) - 1 - bits;
    return static_cast<uint16_t>((shift + 1) << bits | (ns >> shift & ((1 << bits) - 1)));
  }

  static int64_t middle_of(uint16_t bucket) {
    if (bucket < (1u << bits)) return bucket;
    const int shift = (bucket >> bits) - 1;
    const uint64_t low = (uint64_t{1} << bits | (bucket & ((1u << bits) - 1))) << shift;
    return static_cast<int64_t>(low + (uint64_t{1} << shift) / 2);
  }

  uint64_t count_ = 0;
  int64_t total_ns_ = 0;
  int64_t max_ns_ = 0;
  std::vector<std::pair<uint16_t, uint64_t>> buckets_;  // sorted
};

}  // namespace gofer::tool
