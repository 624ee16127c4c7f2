// Reads the page's tables back, for tests.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/order/reader.h"
#include "trace/testing/trace_writer.h"
#include "trace/view/timeline.h"

namespace gofer::tool::testing {

using Row = std::vector<uint64_t>;

/// The rows of each table and lane, with absolute times in the first column.
using Tables = std::map<std::pair<TableId, uint32_t>, std::vector<Row>>;

/// Takes numbers from the front of a text.
inline uint64_t take_number(std::string_view& text) {
  const auto* const begin = reinterpret_cast<const uint8_t*>(text.data());
  uint64_t value = 0;
  const uint8_t* const next = decode_varint(begin, begin + text.size(), &value);
  if (next == nullptr) ADD_FAILURE() << "a number is cut off";
  text.remove_prefix(next == nullptr ? text.size() : static_cast<size_t>(next - begin));
  return value;
}

/// Points of a series: time and value, first those where stretches begin.
inline void read_series(std::string_view block, uint64_t stretches, uint64_t begin,
                        std::vector<Row>& rows) {
  std::vector<Row> heads;
  for (uint64_t i = 0; i < stretches; ++i) {
    Row head;
    for (int k = 0; k < 7; ++k) head.push_back(take_number(block));
    heads.push_back(head);
  }
  for (const Row& head : heads) {
    uint64_t time = begin;
    uint64_t value = head[1];
    begin += head[5];
    rows.push_back({time, value});
    for (uint64_t i = 0; i < head[0]; ++i) {
      time += take_number(block);
      const uint64_t zigzag = take_number(block);
      value += zigzag >> 1 ^ (~(zigzag & 1) + 1);
      rows.push_back({time, value});
    }
  }
}

inline void read_block(std::string_view block, Tables& tables) {
  const auto id = static_cast<TableId>(take_number(block));
  const auto lane = static_cast<uint32_t>(take_number(block));
  const uint64_t rows = take_number(block);
  uint64_t from = take_number(block);
  std::vector<Row>& table = tables[{id, lane}];
  if (id == TableId::series) return read_series(block, rows, from, table);
  const size_t first = table.size();
  table.resize(first + rows);
  while (!block.empty()) {
    const uint64_t size = take_number(block);
    std::string_view column = block.substr(0, size);
    block.remove_prefix(size);
    for (uint64_t i = 0; i < rows; ++i) table[first + i].push_back(take_number(column));
    EXPECT_TRUE(column.empty());
  }
  if (id == TableId::goroutines) return;
  // The rows of these follow each other; others count from the end of the row before.
  const bool are_points = id == TableId::calls || id == TableId::marks || id == TableId::stops ||
                          id == TableId::collections;
  const bool begins = id == TableId::stops || id == TableId::collections;
  for (size_t i = first; i < table.size(); ++i) {
    table[i][0] += from;
    from = table[i][0] + (are_points && !begins ? 0 : table[i][1]);
  }
}

struct Viewed {
  Tables tables;
  std::string index;

  const std::vector<Row>& rows(TableId id, uint32_t lane = 0) { return tables[{id, lane}]; }
};

inline Viewed view(Reader& reader) {
  Viewed result;
  Timeline timeline(reader.names(),
                    [&](std::string_view block) { read_block(block, result.tables); });
  Event event;
  while (reader.next(event)) timeline.add(event);
  result.index = timeline.finish(reader, "a.trace", "");
  return result;
}

inline Viewed view(const Bytes& bytes) {
  Reader reader(open_bytes(bytes));
  return view(reader);
}

}  // namespace gofer::tool::testing
