#include "trace/view/table.h"

#include <algorithm>

#include "trace/reader/varint.h"

namespace gofer::tool {

Table::Table(TableId id, uint32_t lane, size_t columns, TableTotals& totals)
    : id_(id), lane_(lane), columns_(columns), totals_(totals) {
  totals_.max.resize(columns);
  totals_.rows_of_lanes.resize(std::max<size_t>(totals_.rows_of_lanes.size(), lane + 1));
}

void Table::add_at(uint64_t time, uint64_t next_from, std::initializer_list<uint64_t> rest,
                   const BlockSink& sink) {
  if (rows_ == 0) base_ = from_;
  append_varint(columns_[0], time - from_);
  totals_.max[0] = std::max(totals_.max[0], time);
  from_ = next_from;
  put(rest, 1, sink);
}

void Table::put(std::initializer_list<uint64_t> values, size_t first_column,
                const BlockSink& sink) {
  size_t column = first_column;
  for (const uint64_t value : values) {
    append_varint(columns_[column], value);
    totals_.max[column] = std::max(totals_.max[column], value);
    ++column;
  }
  ++totals_.rows;
  ++totals_.rows_of_lanes[lane_];
  if (++rows_ == rows_per_block) flush(sink);
}

void Table::flush(const BlockSink& sink) {
  if (rows_ == 0) return;
  std::string block;
  append_varint(block, static_cast<uint64_t>(id_));
  append_varint(block, lane_);
  append_varint(block, rows_);
  append_varint(block, base_);
  for (std::string& column : columns_) {
    append_varint(block, column.size());
    block += column;
    column.clear();
  }
  rows_ = 0;
  sink(block);
}

}  // namespace gofer::tool
