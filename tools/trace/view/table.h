// Tables of numbers for the page: columns of varints, in blocks.
//
// A block is, in varints: the table, the lane (which P or series the rows are of, 0 if it does not
// matter), the number of rows, the base, and for each column the number of its bytes, and the
// bytes. The first column of most tables is a time. It has each time's distance from the row
// before, so that most numbers take a byte or two; the base is where the first row of the block
// begins to count. So each block can be read alone.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace gofer::tool {

enum class TableId : uint8_t {
  goroutines,
  slices,       // of a P: a goroutine runs
  syscalls,     // of a P: within slices
  held,         // of a P: a thread has it
  calls,        // system calls of threads that have no P
  marks,        // Gofer's records
  stops,        // of the world
  collections,  // of garbage
  series,       // lengths of queues over time, see series.h
};
constexpr size_t table_count = 9;

using BlockSink = std::function<void(std::string_view)>;

/// What the page must know of a table to choose arrays for its columns.
struct TableTotals {
  uint64_t rows = 0;
  std::vector<uint64_t> max;            // by column
  std::vector<uint64_t> rows_of_lanes;  // by lane
};

class Table {
 public:
  /// `totals` is shared by all lanes of a table, and outlives it.
  Table(TableId id, uint32_t lane, size_t columns, TableTotals& totals);

  void add(std::initializer_list<uint64_t> row, const BlockSink& sink) { put(row, 0, sink); }

  /// A row whose first column is a time. The next row counts from `next_from`.
  void add_at(uint64_t time, uint64_t next_from, std::initializer_list<uint64_t> rest,
              const BlockSink& sink);

  void flush(const BlockSink& sink);

 private:
  static constexpr uint64_t rows_per_block = 1 << 15;

  void put(std::initializer_list<uint64_t> values, size_t first_column, const BlockSink& sink);

  TableId id_;
  uint32_t lane_;
  std::vector<std::string> columns_;
  TableTotals& totals_;
  uint64_t rows_ = 0;  // of the block
  uint64_t base_ = 0;
  uint64_t from_ = 0;  // what the next time is counted from
};

}  // namespace gofer::tool
