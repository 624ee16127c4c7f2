// What has to be added to the later generations of a trace, so that a trace can begin with them.
//
// The format wants each goroutine to be introduced in a trace's first generation, or created after
// it. A generation mentions a goroutine only when something happens to it, with the state that it
// has had since the generation began. So a goroutine, or a P, that is mentioned for the first time
// in a later generation was in that state all through the ones before: its first mention is true at
// the begin of the first generation, too, and is repeated there. Goroutines that nothing happened
// to remain unknown, which the format allows.
//
// A goroutine that runs, and a P that is held, have to be introduced by their own M. That M has
// written nothing before it mentioned them, so the batch that is added for it is its first.
//
// The end of a stop of the world whose begin was dropped has to be left out: its batch is cut in
// two.
//
// All of it happens when the trace is written, so recording costs nothing more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/trace/events.h"
#include "runtime/trace/output.h"
#include "runtime/trace/recorder.h"

namespace gofer::internal::tracer {

class BackDated {
 public:
  /// Reads all generations. Throws std::bad_alloc.
  explicit BackDated(const Kept* first);

  /// What is added in front of the batches of the first generation. Errno values.
  int write(Output& output) const;
  /// The batches of any generation.
  int write_batches(Output& output, const Kept& kept) const;

 private:
  friend class Scan;
  struct Mention {
    uint64_t m;  // whose batch it goes to
    Event kind;
    uint64_t args[3];
  };
  // An event that is to be left out, with the batch around it.
  struct Cut {
    const uint8_t* batch = nullptr;
    const uint8_t* data = nullptr;
    const uint8_t* event = nullptr;
    const uint8_t* after = nullptr;
    const uint8_t* end = nullptr;
    uint64_t m = 0;
    uint64_t begin_ns = 0;
    uint64_t event_ns = 0;
  };

  int write_cut(Output& output) const;
  static int write_batch(Output& output, uint64_t generation, uint64_t m, uint64_t time,
                         const uint8_t* data, const uint8_t* end);

  uint64_t generation_;
  uint64_t begin_ns_;
  std::vector<Mention> mentions_;
  Cut cut_;
  uint64_t cut_generation_ = 0;
};

}  // namespace gofer::internal::tracer
