// What the page must know of each goroutine: when it lived, which function it runs, who created it.
//
// A row of the table is 56 bytes of memory until the end of the trace, because a function may be
// known late. What is only needed while a goroutine is alive is kept apart.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/reader/event.h"
#include "trace/reader/id_map.h"
#include "trace/view/lanes.h"

namespace gofer::tool {

struct GoroutineRow {
  uint64_t id = 0;
  uint64_t created = 0;   // + 1; 0: before the trace
  uint64_t ended = 0;     // + 1; 0: alive at the end
  uint64_t ready = 0;     // + 1: runnable at the end since then
  uint32_t function = 0;  // a string of the page
  uint32_t name = 0;      // its label
  uint32_t creator = 0;   // + 1: a row
  uint32_t stack = 0;     // where it was created
  uint32_t ready_by = 0;  // + 1
  uint8_t state = 0;      // at its first mention: a GoState
};

/// What is known of a goroutine that is alive.
struct LiveGoroutine {
  uint32_t row = 0;
  GoState state = GoState::undetermined;
  uint32_t lane = 0;      // where it runs
  uint64_t since = 0;     // it left its P, or was created
  uint64_t ready_at = 0;  // if it is runnable
  bool ready_known = false;
  Arrival next;  // of its next slice, as far as it is known

  // A system call without a P.
  bool in_call = false;
  uint64_t call_begin = 0;
  uint32_t call_m = 0;
  uint32_t call_stack = 0;
};

class Goroutines {
 public:
  /// The goroutine with this id, which is new if there was none alive.
  LiveGoroutine& live(uint64_t id);
  LiveGoroutine* find(uint64_t id) { return live_.find(id); }
  void end(uint64_t id) { live_.erase(id); }
  GoroutineRow& row(uint32_t number) { return rows_[number]; }
  /// A row's number + 1, or 0 if no such goroutine is alive.
  uint32_t number_of(uint64_t id) const {
    const LiveGoroutine* const found = live_.find(id);
    return found == nullptr ? 0 : found->row + 1;
  }

  template <class F>
  void each_live(F f) {
    live_.each([&](uint64_t, LiveGoroutine& g) { f(g); });
  }

  void write(TableTotals& totals, const BlockSink& sink) const;

 private:
  std::vector<GoroutineRow> rows_;
  IdMap<LiveGoroutine> live_;
};

}  // namespace gofer::tool
