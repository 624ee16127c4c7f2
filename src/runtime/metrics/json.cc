// The numbers as a JSON object.
#include <gofer/metrics.h>

#include <charconv>
#include <string>
#include <string_view>

#include "runtime/metrics/table.h"

namespace gofer::debug {

using namespace internal;

namespace {

template <class T>
void append(std::string& out, T n) {
  char digits[32];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, n).ptr);
}

// None of the keys has a character that JSON would escape.
void append_key(std::string& out, std::string_view key) {
  out.append(out.size() == 1 ? "\n  \"" : ",\n  \"").append(key).append("\": ");
}

void append_histogram(std::string& out, const time_histogram& h) {
  out.append("{\"count\": ");
  append(out, h.count());
  out.append(", \"sum\": ");
  append(out, static_cast<double>(h.sum_ns) / 1e9);
  out.append(", \"buckets\": [");
  bool first = true;
  for (std::size_t i = 0; i < time_histogram::bucket_count; ++i) {
    if (h.counts[i] == 0) continue;
    out.append(first ? "[" : ", [");
    first = false;
    append(out, static_cast<double>(time_histogram::begin_ns(i)) / 1e9);
    out.append(", ");
    append(out, h.counts[i]);
    out.append("]");
  }
  out.append("]}");
}

}  // namespace

std::string metrics_json(const metrics_snapshot& m) {
  std::string out;
  out.reserve(8 * 1024);
  out.append("{");
  for (const Number& number : numbers()) {
    append_key(out, number.key);
    append(out, m.*number.value);
  }
  for (const NumberOfTimes& times : histograms()) {
    append_key(out, times.key);
    append_histogram(out, m.*times.value);
  }
  out.append("\n}\n");
  return out;
}

std::string metrics_json() { return metrics_json(metrics()); }

}  // namespace gofer::debug
