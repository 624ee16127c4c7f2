#include "trace/view/goroutines.h"

namespace gofer::tool {

LiveGoroutine& Goroutines::live(uint64_t id) {
  if (LiveGoroutine* const found = live_.find(id)) return *found;
  LiveGoroutine& g = live_[id];
  g.row = static_cast<uint32_t>(rows_.size());
  rows_.emplace_back().id = id;
  return g;
}

void Goroutines::write(TableTotals& totals, const BlockSink& sink) const {
  Table table(TableId::goroutines, 0, 10, totals);
  for (const GoroutineRow& row : rows_) {
    table.add({row.id, row.function, row.name, row.created, row.creator, row.stack, row.ended,
               row.state, row.ready, row.ready_by},
              sink);
  }
  table.flush(sink);
}

}  // namespace gofer::tool
