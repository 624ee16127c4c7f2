// One generation of a trace: its batches sorted by M, and its tables.
//
// A generation is a stretch of a trace that can be read alone: it has its own strings, stacks and
// clock frequency. All of its batches lie together in the file. Up to 1.25 a generation ends where
// a batch of the next one begins; from 1.26 on, at an EndOfGeneration. Its tables may come at its
// end, so events can be read only when all of its batches have been seen.
//
// Memory: 24 bytes a batch, and the tables. The events stay in the file.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

#include "trace/reader/batches.h"
#include "trace/reader/id_map.h"
#include "trace/reader/names.h"

namespace gofer::tool {

/// A batch of events, as far as it is needed once it is known whose it is.
struct BatchRef {
  uint64_t time = 0;
  uint64_t data = 0;
  uint32_t size = 0;
};

/// The batches of one M in the order of the file, which is the order in which the M wrote them.
struct ThreadBatches {
  uint64_t m = 0;
  std::vector<BatchRef> events;
  std::vector<BatchRef> records;  // of experiment 1
};

struct CpuSample {
  uint64_t time = 0;
  uint64_t m = 0, p = 0, g = 0;
  uint64_t stack = 0;  // of the generation's table
};

/// What relates the clock of the trace to others.
struct ClockSnapshot {
  uint64_t time = 0;  // of the trace
  uint64_t monotonic_ns = 0;
  uint64_t wall_s = 0;
  uint64_t wall_ns = 0;
};

struct Generation {
  uint64_t number = 0;
  uint64_t begin = 0;  // in the file
  uint64_t end = 0;
  std::vector<ThreadBatches> threads;
  std::vector<CpuSample> samples;  // sorted by time
  uint64_t frequency = 0;          // units of time in a second
  std::optional<ClockSnapshot> clock;
  IdMap<StringId> strings;  // from the generation's numbers to those of Names
  IdMap<StackId> stacks;
  IdMap<uint32_t> thread_index;       // M -> threads
  uint32_t no_thread = ~uint32_t{0};  // the index of what is of no M, if there is any
};

class GenerationReader {
 public:
  GenerationReader(Source& source, Names& names);

  int version() const { return scanner_.version(); }

  /// Reads the next generation; false at the end of the trace. Throws TraceError.
  bool next(Generation& generation);

  /// What is wrong behind the generation that next() returned last; none if nothing is.
  std::exception_ptr error_behind() const { return error_behind_; }

 private:
  std::optional<Batch> next_batch(const Generation& generation);
  void add(Generation& generation, const Batch& batch);
  void finish(Generation& generation);
  const std::vector<uint8_t>& data_of(const Batch& batch);

  Source& source_;
  Names& names_;
  BatchScanner scanner_;
  std::optional<Batch> spilled_;  // the first batch of the next generation
  std::vector<Batch> stack_batches_;
  std::exception_ptr error_behind_;
  uint64_t last_number_ = 0;
  std::vector<uint8_t> data_;
};

}  // namespace gofer::tool
