// A trace as the tables that the page shows.
//
// Times are in nanoseconds since the first event. A status says what held since the begin of the
// trace, so what it introduces begins at 0.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "trace/order/reader.h"
#include "trace/view/goroutines.h"
#include "trace/view/lanes.h"
#include "trace/view/records.h"
#include "trace/view/series.h"
#include "trace/view/strings.h"
#include "trace/view/table.h"

namespace gofer::tool {

class Timeline {
 public:
  /// Blocks go to `sink` as soon as they are full.
  Timeline(const Names& names, BlockSink sink);

  void add(const Event& event);

  /// Ends all slices and writes what is left. Returns the index: what the page must know before it
  /// reads the blocks, as JSON. `damage` says what is wrong with the trace, if anything is.
  std::string finish(const Reader& reader, const std::string& title, const std::string& damage);

  uint64_t slices() const { return totals_[static_cast<size_t>(TableId::slices)].rows; }

 private:
  void change_goroutine(const Event& event, const Transition& change);
  void change_proc(const Event& event, const Transition& change);
  void name(const Event& event);
  void becomes_runnable(const Event& event, LiveGoroutine& g, bool is_first);
  void starts(const Event& event, LiveGoroutine& g, bool is_first);
  void enters_syscall(const Event& event, LiveGoroutine& g, bool is_first);
  void leaves_syscall(LiveGoroutine& g);
  void stops(const Event& event, LiveGoroutine& g, GoState to);
  void end_slice(LiveGoroutine& g, const End& ending);
  void ranges(const Event& event);
  void put_tables(Json& json) const;

  const Names& names_;
  BlockSink sink_;
  std::array<TableTotals, table_count> totals_;
  PageStrings strings_;
  Lanes lanes_;
  Goroutines goroutines_;
  Records records_;
  Series runnable_;
  Table calls_;
  Table stops_;
  Table collections_;
  int64_t runnable_now_ = 0;
  bool begun_ = false;
  int64_t begin_ns_ = 0;
  uint64_t now_ = 0;
  uint64_t stopped_at_ = none;
  uint32_t stopped_for_ = 0;
  uint64_t collects_since_ = none;
};

}  // namespace gofer::tool
