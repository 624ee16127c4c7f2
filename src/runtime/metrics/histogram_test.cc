// Histograms of times: which bucket has which time, sums of several, and what is read from them.
// gofer-test: once
#include "runtime/metrics/histogram.h"

#include <gofer/metrics.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace gofer::internal {
namespace {

using debug::time_histogram;
constexpr size_t buckets = time_histogram::bucket_count;
constexpr int64_t hour_ns = 3'600'000'000'000;

time_histogram read(const Histogram& h) {
  time_histogram out;
  h.add_to(out.counts, out.sum_ns);
  return out;
}

TEST(TimeBuckets, BeginWhereTheOneBeforeEnds) {
  for (size_t i = 1; i < buckets; ++i) {
    const int64_t begin = time_histogram::begin_ns(i);
    EXPECT_EQ(time_histogram::bucket_of(begin), i) << begin;
    EXPECT_EQ(time_histogram::bucket_of(begin - 1), i - 1) << begin;
    EXPECT_GT(begin, time_histogram::begin_ns(i - 1));
  }
}

TEST(TimeBuckets, HaveBoundsThatDifferByAQuarterAtMost) {
  for (size_t i = 1; i + 1 < buckets; ++i) {
    const int64_t begin = time_histogram::begin_ns(i);
    EXPECT_LE(time_histogram::begin_ns(i + 1) - begin, begin / 4);
  }
}

TEST(TimeBuckets, ReachFromAHundredNanosecondsToHours) {
  EXPECT_LE(time_histogram::begin_ns(1), 100);
  EXPECT_GE(time_histogram::begin_ns(buckets - 1), 4 * hour_ns);
  EXPECT_EQ(time_histogram::begin_ns(0), 0);
}

TEST(TimeBuckets, TakeTimesThatAreOutOfRange) {
  EXPECT_EQ(time_histogram::bucket_of(0), 0u);
  EXPECT_EQ(time_histogram::bucket_of(-1), 0u);
  EXPECT_EQ(time_histogram::bucket_of(std::numeric_limits<int64_t>::min()), 0u);
  EXPECT_EQ(time_histogram::bucket_of(100 * hour_ns), buckets - 1);
  EXPECT_EQ(time_histogram::bucket_of(std::numeric_limits<int64_t>::max()), buckets - 1);
}

TEST(Histogram, CountsEachTimeByItsWeight) {
  Histogram h;
  h.record(100);
  h.record(1000, 500);
  h.record(-5, 2);
  const time_histogram out = read(h);
  EXPECT_EQ(out.count(), 503u);
  EXPECT_EQ(out.sum_ns, 100u + 500 * 1000u);
  EXPECT_EQ(out.counts[time_histogram::bucket_of(100)], 1u);
  EXPECT_EQ(out.counts[time_histogram::bucket_of(1000)], 500u);
  EXPECT_EQ(out.counts[0], 2u);
}

TEST(Histogram, IsAddedToOthers) {
  Histogram one;
  Histogram other;
  one.record(1000, 3);
  other.record(1000, 4);
  other.record(5 * hour_ns);
  time_histogram sum = read(one);
  other.add_to(sum.counts, sum.sum_ns);
  EXPECT_EQ(sum.count(), 8u);
  EXPECT_EQ(sum.counts[time_histogram::bucket_of(1000)], 7u);
  EXPECT_EQ(sum.counts[buckets - 1], 1u);

  time_histogram twice = read(one);
  twice += read(other);
  EXPECT_EQ(twice.count(), sum.count());
  EXPECT_EQ(twice.sum_ns, sum.sum_ns);
  twice -= read(one);
  EXPECT_EQ(twice.count(), 5u);
  EXPECT_EQ(twice.sum_ns, read(other).sum_ns);
}

TEST(Histogram, TellsMeanAndQuantiles) {
  Histogram h;
  EXPECT_EQ(read(h).quantile_ns(0.5), 0);
  EXPECT_EQ(read(h).mean_ns(), 0);
  for (int64_t ns = 1; ns <= 1000; ++ns) h.record(1000 * ns);
  const time_histogram out = read(h);
  EXPECT_DOUBLE_EQ(out.mean_ns(), 500'500);
  for (const double q : {0.01, 0.5, 0.9, 0.99, 1.0}) {
    EXPECT_GE(out.quantile_ns(q), q * 1e6);
    EXPECT_LE(out.quantile_ns(q), 1.25 * q * 1e6);
  }
  EXPECT_LE(out.quantile_ns(0), 1250);
}

TEST(Histogram, DoesNotTellMoreOfTheLastBucketThanItKnows) {
  Histogram h;
  h.record(100 * hour_ns);
  EXPECT_EQ(read(h).quantile_ns(0.5), static_cast<double>(time_histogram::begin_ns(buckets - 1)));
}

}  // namespace
}  // namespace gofer::internal
