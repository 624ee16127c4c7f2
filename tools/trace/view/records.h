// Gofer's records on the page: lengths of queues as series, the others as marks.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "trace/reader/event.h"
#include "trace/view/goroutines.h"
#include "trace/view/lanes.h"
#include "trace/view/series.h"

namespace gofer::tool {

class Records {
 public:
  Records(Lanes& lanes, const Goroutines& goroutines, std::array<TableTotals, table_count>& totals,
          BlockSink sink);

  void add(const Event& event, uint64_t now);
  void finish(uint64_t now);

  /// Lanes of the table of series. Those of the Ps' rings follow.
  enum : uint32_t { runnable = 0, global_queue = 1, all_rings = 2, first_ring = 3 };

 private:
  void queue(const Event& event, uint64_t now);
  void mark(const Event& event, uint64_t now, uint64_t a, uint64_t b, uint64_t c, uint64_t d);
  uint64_t lane(uint64_t p) { return p == none ? 0 : lanes_.lane_of(p) + 1; }
  uint64_t thread(uint64_t m) { return m == none ? 0 : lanes_.number_of_m(m) + 1; }

  Lanes& lanes_;
  const Goroutines& goroutines_;
  TableTotals& series_totals_;
  BlockSink sink_;
  Table marks_;
  Series global_queue_;
  Series all_rings_;
  std::deque<Series> rings_;  // by lane
};

}  // namespace gofer::tool
