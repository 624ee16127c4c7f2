// The table of all numbers of a snapshot, from which each text format is made: its name in Go's
// style, its family for Prometheus, and what it says.
#pragma once

#include <gofer/metrics.h>

#include <cstdint>
#include <span>

namespace gofer::internal {

/// One number. Those that follow each other with the same `family` differ in their labels.
struct Number {
  const char* key;     // in Go's style; Go's own name where Go has the number
  const char* family;  // for Prometheus; a counter's ends in _total
  const char* label;   // "" or name="value"
  const char* help;    // of the family; it is read at its first number only
  uint64_t debug::metrics_snapshot::*value;
};

struct NumberOfTimes {
  const char* key;
  const char* family;
  const char* help;
  debug::time_histogram debug::metrics_snapshot::*value;
};

std::span<const Number> numbers();
std::span<const NumberOfTimes> histograms();

}  // namespace gofer::internal
