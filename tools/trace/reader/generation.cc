#include "trace/reader/generation.h"

#include <algorithm>
#include <string>

#include "trace/reader/error.h"
#include "trace/reader/tables.h"

namespace gofer::tool {

GenerationReader::GenerationReader(Source& source, Names& names)
    : source_(source), names_(names), scanner_(source) {}

const std::vector<uint8_t>& GenerationReader::data_of(const Batch& batch) {
  data_.resize(batch.size);
  if (source_.read(batch.data, data_.data(), batch.size) != batch.size) {
    throw TraceError({.generation = batch.generation, .offset = batch.data},
                     "the file became shorter while it was read");
  }
  return data_;
}

/// The next batch of this generation. None at its end.
std::optional<Batch> GenerationReader::next_batch(const Generation& generation) {
  std::optional<Batch> batch;
  const bool marked_ends = version() >= 26;
  const uint64_t number = generation.number;
  if (spilled_) {
    batch.swap(spilled_);
  } else {
    try {
      batch = scanner_.next();
    } catch (const TraceError&) {
      // Possibly the first batch of the next generation: this one may be complete.
      if (number == 0 || marked_ends) throw;
      error_behind_ = std::current_exception();
      return std::nullopt;
    }
  }
  const uint64_t offset = scanner_.offset();
  if (!batch) {
    if (number == 0 || !marked_ends) return std::nullopt;
    throw TraceError({.generation = number, .offset = offset},
                     "the file ends in this generation, so it is cut off");
  }
  if (batch->ends_generation) {
    if (number == 0) throw TraceError({.offset = offset - 1}, "a generation without batches");
    return std::nullopt;
  }
  if (number == 0) {
    if (batch->generation <= last_number_) {
      throw TraceError({.generation = batch->generation, .offset = batch->begin},
                       "comes after generation " + std::to_string(last_number_));
    }
    return batch;
  }
  if (batch->generation == number) return batch;
  if (!marked_ends && batch->generation == number + 1) {
    spilled_ = batch;
    return std::nullopt;
  }
  throw TraceError({.generation = number, .offset = batch->begin},
                   "is followed by a batch of generation " + std::to_string(batch->generation) +
                       (marked_ends ? " without an EndOfGeneration" : ""));
}

bool GenerationReader::next(Generation& generation) {
  if (error_behind_) std::rethrow_exception(error_behind_);
  generation = Generation();
  stack_batches_.clear();
  while (const std::optional<Batch> batch = next_batch(generation)) {
    if (generation.number == 0) {
      generation.number = batch->generation;
      generation.begin = batch->begin;
    }
    add(generation, *batch);
  }
  if (generation.number == 0) return false;
  last_number_ = generation.number;
  generation.end = spilled_ ? spilled_->begin : scanner_.offset();
  finish(generation);
  return true;
}

void GenerationReader::add(Generation& generation, const Batch& batch) {
  if (batch.size == 0) return;
  const auto table = [&] { return TableData{data_of(batch), batch.generation, batch.data}; };
  if (batch.experiment == 0) {
    const auto clock_batch = version() >= 25 ? EventType::sync : EventType::frequency;
    if (batch.first == clock_batch) {
      return read_sync(table(), version(), batch.time, generation);
    }
    switch (batch.first) {
      case EventType::strings:
        return read_strings(table(), names_, generation);
      case EventType::cpu_samples:
        return read_cpu_samples(table(), generation);
      case EventType::stacks:
        stack_batches_.push_back(batch);
        return;
      default:
        break;
    }
  } else if (batch.experiment != 1) {
    return;  // nothing is known of it
  }

  uint32_t at = static_cast<uint32_t>(generation.threads.size());
  if (batch.m == none) {  // no key of the map
    at = generation.no_thread == ~uint32_t{0} ? at : generation.no_thread;
    generation.no_thread = at;
  } else if (const uint32_t* known = generation.thread_index.find(batch.m)) {
    at = *known;
  } else {
    generation.thread_index[batch.m] = at;
  }
  if (at == generation.threads.size()) {
    generation.threads.push_back({.m = batch.m, .events = {}, .records = {}});
  }
  ThreadBatches& thread = generation.threads[at];
  (batch.experiment == 0 ? thread.events : thread.records)
      .push_back({batch.time, batch.data, batch.size});
}

void GenerationReader::finish(Generation& generation) {
  const Place place{.generation = generation.number, .offset = generation.end};
  if (generation.frequency == 0) {
    if (error_behind_) std::rethrow_exception(error_behind_);
    throw TraceError(place, "no frequency up to here: the file is cut off, or damaged");
  }
  if (version() >= 25 && !generation.clock) throw TraceError(place, "no clocks up to here");
  for (const Batch& batch : stack_batches_) {
    read_stacks(TableData{data_of(batch), batch.generation, batch.data}, names_, generation);
  }
  std::stable_sort(generation.samples.begin(), generation.samples.end(),
                   [](const CpuSample& a, const CpuSample& b) { return a.time < b.time; });
}

}  // namespace gofer::tool
