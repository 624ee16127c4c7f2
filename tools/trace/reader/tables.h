// The contents of those batches that hold tables instead of events.
#pragma once

#include <cstdint>
#include <span>

#include "trace/reader/generation.h"

namespace gofer::tool {

/// A batch's data, its first byte (which says what it is) still in front, and where that is in the
/// file.
struct TableData {
  std::span<const uint8_t> bytes;
  uint64_t generation = 0;
  uint64_t offset = 0;
};

// Each throws TraceError if the data are malformed, or an id occurs twice in a generation.

void read_strings(const TableData& data, Names& names, Generation& generation);
/// The generation's strings must be complete.
void read_stacks(const TableData& data, Names& names, Generation& generation);
void read_cpu_samples(const TableData& data, Generation& generation);
/// The frequency, and from 1.25 on the clocks. `time` is that of the batch.
void read_sync(const TableData& data, int version, uint64_t time, Generation& generation);

}  // namespace gofer::tool
