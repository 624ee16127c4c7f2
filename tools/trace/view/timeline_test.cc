#include "trace/view/timeline.h"

#include <gtest/gtest.h>

#include "trace/gofer_records.h"
#include "trace/summary/summary.h"
#include "trace/testing/trace_writer.h"
#include "trace/testing/view_tables.h"

namespace gofer::tool {
namespace {

using testing::Bytes;
using testing::call_that_loses_its_p;
using testing::Row;
using testing::TraceWriter;
using testing::view;
using testing::Viewed;
using T = EventType;

// Columns of slices.
enum : size_t { start, length, row, end, from, waited, late, by, by_lane, by_stack, thread };

TEST(View, SlicesSayWhyTheyBeganAndEnded) {
  Viewed result = view(call_that_loses_its_p(5).bytes());
  const auto& slices = result.rows(TableId::slices);
  ASSERT_EQ(slices.size(), 3u);

  EXPECT_EQ(slices[0][start], 0u);
  EXPECT_EQ(slices[0][length], 20u);
  EXPECT_EQ(slices[0][row], 0u);
  EXPECT_EQ(slices[0][late], 0u) << "it ran when the trace began";

  EXPECT_EQ(slices[1][start], 25u);
  EXPECT_EQ(slices[1][length], 25u) << "until the P was taken";
  EXPECT_EQ(slices[1][row], 1u);
  EXPECT_EQ(slices[1][late], 15u + 1) << "since it was created";
  EXPECT_EQ(slices[1][by], 0u + 1) << "its creator";
  EXPECT_EQ(slices[1][by_lane], 0u + 1);

  EXPECT_EQ(slices[2][start], 55u);
  EXPECT_EQ(slices[2][length], 10u - 0u);
  EXPECT_EQ(slices[2][from], slices[0][end]);
  EXPECT_EQ(slices[2][waited], 30u + 1);
  EXPECT_EQ(slices[2][late], 5u + 1);
  EXPECT_EQ(slices[2][by], 0u) << "M 2 had no goroutine";
  EXPECT_NE(slices[2][thread], slices[1][thread]);

  EXPECT_NE(result.index.find("[1,"), std::string::npos);
  EXPECT_NE(result.index.find("\"sleep\""), std::string::npos);
}

TEST(View, ASystemCallGoesOnWithoutItsP) {
  Viewed result = view(call_that_loses_its_p(5).bytes());
  EXPECT_EQ(result.rows(TableId::syscalls), (std::vector<Row>{{35, 15, 0}}));
  // It ends at 65: row 1, thread 0.
  EXPECT_EQ(result.rows(TableId::calls), (std::vector<Row>{{65, 15, 1, 0, 0}}));
  EXPECT_EQ(result.rows(TableId::held), (std::vector<Row>{{0, 50, 0}, {55, 10, 1}}));
}

TEST(View, GoroutinesHaveFunctionsCreatorsAndLives) {
  Viewed result = view(call_that_loses_its_p(5).bytes());
  const auto& rows = result.rows(TableId::goroutines);
  ASSERT_EQ(rows.size(), 2u);
  const Row& g8 = rows[1];
  EXPECT_EQ(g8[0], 8u);
  EXPECT_NE(g8[1], 0u) << "its function";
  EXPECT_EQ(g8[3], 10u + 1) << "when it was created";
  EXPECT_EQ(g8[4], 0u + 1) << "by whom";
  EXPECT_EQ(g8[6], 0u) << "it is alive at the end";
  EXPECT_EQ(g8[8], 65u + 1) << "and runnable since its call returned";
  EXPECT_EQ(rows[0][7], static_cast<uint64_t>(GoState::running));
}

TEST(View, RunnableGoroutinesAreCounted) {
  Viewed result = view(call_that_loses_its_p(5).bytes());
  // The first row is where the stretch begins.
  EXPECT_EQ(result.rows(TableId::series, Records::runnable),
            (std::vector<Row>{{0, 0}, {10, 1}, {25, 0}, {50, 1}, {55, 0}, {65, 1}}));
}

TEST(View, QueuesAreSeriesAndOtherRecordsMarks) {
  TraceWriter trace = call_that_loses_its_p(5);
  trace.batch(1, 2, 120, gofer_experiment)
      .raw({gofer_records_version})
      .raw({record_byte(RecordKind::queue, 3)})
      .number(0)
      .number(0)
      .number(5)
      .number(8)
      .raw({record_byte(RecordKind::queue, 3)})
      .number(10)
      .number(0)
      .number(2)
      .number(0)
      .raw({record_byte(RecordKind::steal, 4)})
      .number(1)
      .number(1)
      .number(0)
      .number(3)
      .number(2);
  Viewed result = view(trace.bytes());
  EXPECT_EQ(result.rows(TableId::series, Records::all_rings),
            (std::vector<Row>{{0, 0}, {20, 5}, {30, 2}}));
  EXPECT_EQ(result.rows(TableId::series, Records::first_ring),
            (std::vector<Row>{{0, 0}, {20, 5}, {30, 2}}));
  // Time, kind, thief, victim, taken, left.
  EXPECT_EQ(result.rows(TableId::marks),
            (std::vector<Row>{{31, static_cast<uint64_t>(RecordKind::steal), 2, 1, 3, 2}}));
}

// A pause may be recorded before or after the event by which the goroutine stops.
TEST(View, APauseIsAnEndingOfItsOwn) {
  for (const int at : {150, 220}) {
    TraceWriter trace;
    trace.batch(1, 1, 100)
        .ev(T::proc_status, 0, 0, 1)
        .ev(T::go_status, 0, 7, 1, 2)
        .ev(T::go_stop, 100, 1, 0)
        .ev(T::proc_stop, 50);
    trace.batch(1, 2, static_cast<uint64_t>(at), gofer_experiment)
        .raw({gofer_records_version})
        .raw({record_byte(RecordKind::pause, 4)})
        .number(0)
        .number(7)
        .number(1)
        .number(0)
        .number(0);
    trace.strings(1, {{1, "preempted"}});
    trace.end_generation(1);
    Viewed result = view(trace.bytes());
    ASSERT_EQ(result.rows(TableId::slices).size(), 1u);
    const uint64_t ending = result.rows(TableId::slices)[0][end];
    const std::string ends = result.index.substr(result.index.find("\"ends\":"));
    std::string expected = "[" + std::to_string(static_cast<int>(EndKind::paused)) + ",";
    size_t place = ends.find("[[") + 1;
    for (uint64_t i = 0; i < ending; ++i) place = ends.find('[', place + 1);
    EXPECT_EQ(ends.substr(place, expected.size()), expected) << at;
  }
}

TEST(Series, LongSeriesAreCutIntoStretches) {
  testing::Tables tables;
  TableTotals totals;
  const BlockSink sink = [&](std::string_view block) { testing::read_block(block, tables); };
  Series series(5, totals);
  constexpr uint64_t points = 100'000;
  for (uint64_t i = 1; i <= points; ++i) series.set(i * 3, static_cast<int64_t>(i % 1000), sink);
  series.finish(points * 3 + 1, sink);
  uint64_t last = 0;
  for (const Row& point : tables[{TableId::series, 5}]) {
    EXPECT_GE(point[0], last);
    last = point[0];
    EXPECT_EQ(point[1], point[0] / 3 % 1000);
  }
  EXPECT_EQ(last, points * 3);
  EXPECT_EQ(totals.max[0], 999u);
}

class ViewedData : public ::testing::TestWithParam<const char*> {};

TEST_P(ViewedData, SlicesAreWhereTheSummarySaysThatPsRanGoroutines) {
  const std::string path = std::string(GOFER_TRACE_DATA) + "/" + GetParam() + ".trace";
  Reader reader(open_file(path));
  Viewed result = view(reader);

  Reader again(open_file(path));
  Summary summary(again.names(), 10);
  Event event;
  while (again.next(event)) summary.add(event);
  summary.finish();

  uint64_t ns = 0;
  for (const auto& [key, rows] : result.tables) {
    if (key.first != TableId::slices) continue;
    uint64_t last = 0;
    for (const Row& slice : rows) {
      EXPECT_GE(slice[start], last);
      last = slice[start] + slice[length];
      ns += slice[length];
    }
  }
  int64_t expected = 0;
  for (const auto& [id, proc] : summary.procs()) {
    expected += proc.ns[static_cast<int>(ProcUse::running)];
    expected += proc.ns[static_cast<int>(ProcUse::syscall)];
  }
  EXPECT_EQ(static_cast<int64_t>(ns), expected);
  EXPECT_EQ(result.rows(TableId::goroutines).size(), reader.order().goroutines_seen());
}

INSTANTIATE_TEST_SUITE_P(Data, ViewedData,
                         ::testing::Values("channels", "calls", "hogs", "generations"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace gofer::tool
