// What each P did: slices in which a goroutine ran, system calls within them, and when a thread
// held the P.
//
// The last slice of a P is written when the next one begins, because a record that the goroutine
// was paused may come after the event that ended the slice.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "trace/reader/id_map.h"
#include "trace/view/strings.h"
#include "trace/view/table.h"

namespace gofer::tool {

/// How a goroutine came to run. Numbers that may be missing are one more than what they say, and 0
/// if it is missing.
struct Arrival {
  uint32_t from = 0;     // how its slice before ended: an end
  uint64_t waited = 0;   // + 1: from that end, or its creation, until it became runnable
  uint64_t late = 0;     // + 1: from then until it ran
  uint32_t by = 0;       // + 1: the goroutine that made it runnable
  uint32_t by_lane = 0;  // + 1: the P where that happened
  uint32_t by_stack = 0;
};

struct RunSlice {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint32_t g = 0;  // the number of a row of the goroutines
  uint32_t m = 0;
  Arrival arrival;
  End ending;
};

class Lanes {
 public:
  Lanes(PageStrings& strings, std::array<TableTotals, table_count>& totals, BlockSink sink)
      : strings_(strings), totals_(totals), sink_(std::move(sink)) {}

  /// The lane of a P, which is new if there was none.
  uint32_t lane_of(uint64_t p);
  uint32_t number_of_m(uint64_t m);

  /// A goroutine begins to run.
  void begin(uint32_t lane, uint64_t now, const RunSlice& slice);
  /// The open slice ends. Returns the number of its ending. The lane must have an open slice.
  uint32_t end(uint32_t lane, uint64_t now, const End& ending);
  /// The goroutine of the open slice, or `no_goroutine`.
  uint32_t running(uint32_t lane) const;

  void begin_syscall(uint32_t lane, uint64_t now, uint32_t stack);
  void end_syscall(uint32_t lane, uint64_t now);

  void hold(uint32_t lane, uint64_t now, uint32_t m);
  void release(uint32_t lane, uint64_t now);

  /// The record of a pause: the goroutine's open slice, or the last one, ended for that. Returns
  /// false if neither was one of this goroutine.
  bool pause(uint32_t lane, uint32_t g);

  /// Ends and writes everything.
  void finish(uint64_t now);

  const std::vector<uint64_t>& procs() const { return procs_; }
  const std::vector<uint64_t>& threads() const { return threads_; }

  static constexpr uint32_t no_goroutine = ~uint32_t{0};

 private:
  struct Lane {
    Lane(uint32_t number, std::array<TableTotals, table_count>& totals);

    Table slices, syscalls, held;
    RunSlice open, last;
    bool is_open = false;
    bool has_last = false;
    bool is_paused = false;  // the open slice will end by a pause
    bool in_syscall = false;
    bool is_held = false;
    uint64_t syscall_begin = 0;
    uint32_t syscall_stack = 0;
    uint64_t free_since = 0;  // the end of the last slice
    uint64_t held_since = 0;
    uint64_t held_until = 0;
    uint32_t held_by = 0;
  };

  void write_last(Lane& lane);

  PageStrings& strings_;
  std::array<TableTotals, table_count>& totals_;
  BlockSink sink_;
  std::deque<Lane> lanes_;
  IdMap<uint32_t> lane_numbers_;
  IdMap<uint32_t> thread_numbers_;
  std::vector<uint64_t> procs_;    // their ids
  std::vector<uint64_t> threads_;  // their ids
};

}  // namespace gofer::tool
