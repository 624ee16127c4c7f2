// A number that changes over time, such as the length of a queue.
//
// The page keeps series as they are here, because they may have millions of points, and decodes the
// stretches that it draws. A stretch has up to 32 points, and tells its minimum, maximum and mean
// without being decoded: a pixel that covers more than one needs no points. A block has up to 4,096
// stretches:
//
//   table and lane, the number of stretches, the time where the first one begins
//   for each stretch: points, value where it begins, minimum, maximum, mean in 1/256, how long it
//     lasts, number of bytes
//   the bytes of all stretches: for each point the time since the one before, and the change of
//     the value (zigzag: 0, -1, 1, -2, …)
#pragma once

#include <cstdint>
#include <string>

#include "trace/view/table.h"

namespace gofer::tool {

class Series {
 public:
  Series(uint32_t lane, TableTotals& totals);

  /// What the value was since the begin. To be called before the first point only.
  void begin_with(int64_t value) { value_ = value; }
  /// The value as it is from `time` on. Times must not decrease.
  void set(uint64_t time, int64_t value, const BlockSink& sink);
  int64_t value() const { return value_; }
  uint64_t points() const { return all_points_; }
  /// The value has held until `time`, and nothing follows.
  void finish(uint64_t time, const BlockSink& sink);

 private:
  static constexpr uint64_t points_per_stretch = 32;
  static constexpr uint64_t stretches_per_block = 4096;

  void put_point(const BlockSink& sink);
  void end_stretch(uint64_t time, const BlockSink& sink);
  void flush(const BlockSink& sink);

  uint32_t lane_;
  TableTotals& totals_;
  int64_t value_ = 0;        // after the last point
  uint64_t time_ = 0;        // of the last point
  int64_t written_ = 0;      // the value and
  uint64_t written_at_ = 0;  // the time of the last point that is in points_
  bool pending_ = false;     // the last point is not in points_ yet: its value may still change

  // The open stretch.
  std::string points_;
  uint64_t count_ = 0;
  uint64_t begin_ = 0;
  uint64_t block_begin_ = 0;
  int64_t begin_value_ = 0;
  int64_t min_ = 0;
  int64_t max_ = 0;
  double area_ = 0;

  std::string heads_;  // of the stretches of the open block
  std::string bytes_;
  uint64_t stretches_ = 0;
  uint64_t all_points_ = 0;
};

}  // namespace gofer::tool
