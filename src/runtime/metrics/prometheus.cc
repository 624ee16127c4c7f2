// The numbers as text for Prometheus:
// https://prometheus.io/docs/instrumenting/exposition_formats/
#include <gofer/metrics.h>

#include <charconv>
#include <string>
#include <string_view>

#include "runtime/metrics/table.h"

namespace gofer::debug {

using namespace internal;

namespace {

constexpr std::string_view counter_suffix = "_total";

// The bounds of the few buckets: 2^8 ns = 256 ns, 2^10 ns, … 2^36 ns = 69 s.
constexpr int first_bound = 8;
constexpr int last_bound = 36;
constexpr int bound_step = 2;

void append(std::string& out, uint64_t n) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
}

// The shortest text that gives the same number again.
void append_seconds(std::string& out, double ns) {
  char digits[32];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, ns / 1e9).ptr);
}

void append_head(std::string& out, std::string_view family, std::string_view help,
                 std::string_view type) {
  out.append("# HELP ").append(family).append(" ").append(help).append("\n");
  out.append("# TYPE ").append(family).append(" ").append(type).append("\n");
}

void append_number(std::string& out, const Number& number, uint64_t value) {
  out.append(number.family);
  if (*number.label != '\0') out.append("{").append(number.label).append("}");
  out.append(" ");
  append(out, value);
  out.append("\n");
}

// A bucket of Prometheus has all times up to its bound, and the bound itself, which is the least
// time of the next bucket here: a nanosecond of difference.
void append_histogram(std::string& out, std::string_view family, const time_histogram& h) {
  uint64_t so_far = 0;
  std::size_t next = 0;
  for (int bound = first_bound; bound <= last_bound; bound += bound_step) {
    const int64_t bound_ns = int64_t{1} << bound;
    for (; time_histogram::begin_ns(next) < bound_ns; ++next) so_far += h.counts[next];
    out.append(family).append("_bucket{le=\"");
    append_seconds(out, static_cast<double>(bound_ns));
    out.append("\"} ");
    append(out, so_far);
    out.append("\n");
  }
  const uint64_t count = h.count();
  out.append(family).append("_bucket{le=\"+Inf\"} ");
  append(out, count);
  out.append("\n").append(family).append("_sum ");
  append_seconds(out, static_cast<double>(h.sum_ns));
  out.append("\n").append(family).append("_count ");
  append(out, count);
  out.append("\n");
}

}  // namespace

std::string prometheus(const metrics_snapshot& m) {
  std::string out;
  out.reserve(16 * 1024);
  std::string_view family;
  for (const Number& number : numbers()) {
    if (number.family != family) {
      family = number.family;
      append_head(out, family, number.help, family.ends_with(counter_suffix) ? "counter" : "gauge");
    }
    append_number(out, number, m.*number.value);
  }
  for (const NumberOfTimes& times : histograms()) {
    append_head(out, times.family, times.help, "histogram");
    append_histogram(out, times.family, m.*times.value);
  }
  return out;
}

std::string prometheus() { return prometheus(metrics()); }

}  // namespace gofer::debug
