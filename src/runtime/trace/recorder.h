// The flight recorder's memory: the last complete generations of a trace that is written nowhere.
//
// A generation that is kept has its batches as a file would have them, copied into one block, so
// that the buffers of many Ms with a few events each take no more than the events do. What the
// batches name (functions, texts) is noted as numbers, and looked up when the trace is written.
//
// The first generation of a trace lists all goroutines, and it is the first to be dropped. So what
// a later one takes for known has to be added when the trace is written: back_date.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/trace/output.h"
#include "runtime/trace/tables.h"

namespace gofer::internal::tracer {

/// A generation that is over.
struct Kept {
  Kept* next;
  uint64_t generation;
  uint64_t begin_ns;  // of the tracer's clock
  uint64_t end_ns;
  size_t mapped;  // bytes of this block
  size_t size;    // bytes of batches, which follow
  Used used;

  const uint8_t* batches() const { return reinterpret_cast<const uint8_t*>(this + 1); }
};

/// Of the tracer's thread.
class Recorder {
 public:
  struct Limits {
    int64_t keep_ns;
    size_t bytes;
  };
  void begin(const Limits& limits) { limits_ = limits; }
  /// How long a generation may be.
  int64_t generation_ns() const;
  uint64_t generation_bytes() const;

  /// The generation is closed: takes its full buffers, and drops generations that are too old or
  /// too many. Returns an errno value.
  int keep(uint64_t generation);
  /// Writes all that is kept, as a trace that begins with it. Returns an errno value. Allocates.
  int write(Output& output) const;
  /// Of what is kept.
  uint64_t duration_ns() const;
  void clear();

 private:
  void drop_first();
  void drop_old();

  Limits limits_{};
  Kept* first_ = nullptr;
  Kept* last_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace gofer::internal::tracer
