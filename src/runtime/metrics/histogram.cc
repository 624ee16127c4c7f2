#include "runtime/metrics/histogram.h"

#include <gofer/metrics.h>

namespace gofer::debug {

std::uint64_t time_histogram::count() const noexcept {
  std::uint64_t n = 0;
  for (const std::uint64_t c : counts) n += c;
  return n;
}

double time_histogram::mean_ns() const noexcept {
  const std::uint64_t n = count();
  return n == 0 ? 0 : static_cast<double>(sum_ns) / static_cast<double>(n);
}

double time_histogram::quantile_ns(double q) const noexcept {
  const std::uint64_t n = count();
  if (n == 0) return 0;
  const double wanted = q * static_cast<double>(n);
  std::uint64_t so_far = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < bucket_count; ++i) {
    if (counts[i] == 0) continue;
    so_far += counts[i];
    last = i;
    if (static_cast<double>(so_far) >= wanted) break;
  }
  const std::size_t bound = last + 1 < bucket_count ? last + 1 : last;
  return static_cast<double>(begin_ns(bound));
}

time_histogram& time_histogram::operator+=(const time_histogram& other) noexcept {
  for (std::size_t i = 0; i < bucket_count; ++i) counts[i] += other.counts[i];
  sum_ns += other.sum_ns;
  return *this;
}

time_histogram& time_histogram::operator-=(const time_histogram& earlier) noexcept {
  for (std::size_t i = 0; i < bucket_count; ++i) counts[i] -= earlier.counts[i];
  sum_ns -= earlier.sum_ns;
  return *this;
}

}  // namespace gofer::debug
