#include "trace/view/series.h"

#include <algorithm>

#include "trace/reader/varint.h"

namespace gofer::tool {

Series::Series(uint32_t lane, TableTotals& totals) : lane_(lane), totals_(totals) {
  totals_.max.resize(1);
  totals_.rows_of_lanes.resize(std::max<size_t>(totals_.rows_of_lanes.size(), lane + 1));
}

void Series::set(uint64_t time, int64_t value, const BlockSink& sink) {
  if (pending_ && time != time_) put_point(sink);
  if (value == value_ && !pending_) return;
  if (all_points_ == 0 && !pending_) {  // value_ may have been set since
    written_ = begin_value_ = min_ = max_ = value_;
  }
  time_ = time;
  value_ = value;
  pending_ = true;
}

void Series::put_point(const BlockSink& sink) {
  pending_ = false;
  area_ += static_cast<double>(time_ - written_at_) * static_cast<double>(written_);
  append_varint(points_, time_ - written_at_);
  const int64_t change = value_ - written_;
  append_varint(points_, static_cast<uint64_t>(change) << 1 ^ static_cast<uint64_t>(change >> 63));
  written_at_ = time_;
  written_ = value_;
  min_ = std::min(min_, value_);
  max_ = std::max(max_, value_);
  totals_.max[0] = std::max(totals_.max[0], static_cast<uint64_t>(std::max<int64_t>(max_, 0)));
  ++all_points_;
  ++totals_.rows;
  ++totals_.rows_of_lanes[lane_];
  if (++count_ == points_per_stretch) end_stretch(written_at_, sink);
}

void Series::end_stretch(uint64_t time, const BlockSink& sink) {
  area_ += static_cast<double>(time - written_at_) * static_cast<double>(written_);
  const double mean =
      time == begin_ ? static_cast<double>(written_) : area_ / static_cast<double>(time - begin_);
  const auto positive = [](int64_t n) { return static_cast<uint64_t>(std::max<int64_t>(n, 0)); };
  if (stretches_ == 0) block_begin_ = begin_;
  for (const uint64_t n : {count_, positive(begin_value_), positive(min_), positive(max_),
                           static_cast<uint64_t>(std::max(mean, 0.0) * 256), time - begin_,
                           uint64_t{points_.size()}}) {
    append_varint(heads_, n);
  }
  bytes_ += points_;
  points_.clear();
  count_ = 0;
  area_ = 0;
  begin_ = written_at_ = time;
  begin_value_ = min_ = max_ = written_;
  if (++stretches_ == stretches_per_block) flush(sink);
}

void Series::finish(uint64_t time, const BlockSink& sink) {
  if (all_points_ == 0 && !pending_) {
    if (value_ == 0) return;  // the trace does not have this series
    written_ = begin_value_ = min_ = max_ = value_;
  }
  if (pending_) put_point(sink);
  if (time != begin_ || count_ != 0) end_stretch(std::max(time, written_at_), sink);
  flush(sink);
}

void Series::flush(const BlockSink& sink) {
  if (stretches_ == 0) return;
  std::string block;
  append_varint(block, static_cast<uint64_t>(TableId::series));
  append_varint(block, lane_);
  append_varint(block, stretches_);
  append_varint(block, block_begin_);
  block += heads_;
  block += bytes_;
  heads_.clear();
  bytes_.clear();
  stretches_ = 0;
  sink(block);
}

}  // namespace gofer::tool
