#include "trace/summary/summary.h"

#include <gtest/gtest.h>

#include "trace/gofer_records.h"
#include "trace/testing/trace_writer.h"
#include "trace/text.h"

namespace gofer::tool {
namespace {

using namespace testing;
using T = EventType;

TEST(Histogram, QuantilesAreWithin3Percent) {
  Histogram h;
  for (int64_t ns = 1; ns <= 100'000; ++ns) h.add(ns);
  EXPECT_EQ(h.count(), 100'000u);
  EXPECT_EQ(h.max_ns(), 100'000);
  EXPECT_EQ(h.total_ns(), 5'000'050'000);
  EXPECT_NEAR(static_cast<double>(h.quantile(0.5)), 50'000, 1'600);
  EXPECT_NEAR(static_cast<double>(h.quantile(0.99)), 99'000, 3'100);
  EXPECT_EQ(Histogram().quantile(0.5), 0);
}

TEST(Histogram, OneDurationIsItsOwnQuantile) {
  for (const int64_t ns : {int64_t{0}, int64_t{31}, int64_t{1'000'000'007}, INT64_MAX}) {
    Histogram h;
    h.add(ns);
    EXPECT_NEAR(static_cast<double>(h.quantile(0.99)), static_cast<double>(ns),
                static_cast<double>(ns) * 0.03);
    EXPECT_LE(h.quantile(0.99), h.max_ns());
  }
}

TEST(Histogram, ATotalThatIsTooLargeStaysAtTheGreatestNumber) {
  Histogram h;
  h.add(INT64_MAX - 1);
  h.add(INT64_MAX - 1);
  EXPECT_EQ(h.total_ns(), INT64_MAX);
  EXPECT_EQ(h.count(), 2u);
}

TEST(Text, DurationsHaveThreeDigits) {
  EXPECT_EQ(duration(0), "0 ns");
  EXPECT_EQ(duration(999), "999 ns");
  EXPECT_EQ(duration(1'230), "1.23 us");
  EXPECT_EQ(duration(45'600'000), "45.6 ms");
  EXPECT_EQ(duration(789'000'000'000), "789 s");
}

TEST(Text, WhatComesFromAFileDoesNotSteerATerminal) {
  EXPECT_EQ(printable("a\x1b[31mb\nc\x80z\xc2\x9b"), "a?[31mb?c?z?");
  EXPECT_EQ(printable("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(json_string("a\"\\\n\xff"), "\"a\\\"\\\\\\u000a\\ufffd\"");
}

/// Times in microseconds. On P 0, goroutine 7 ("main") creates 8 ("work") at 1, runs until 11, and
/// waits. 8 runs from 11 to 14, with a call from 12 to 13, and ends. P 1 is idle.
struct Example {
  Example() {
    trace.batch(1, 1, 0)
        .ev(T::proc_status, 0, 0, 1)
        .ev(T::go_status_stack, 0, 7, 1, 2, 1)
        .ev(T::proc_status, 0, 1, 2)
        .ev(T::go_create, 1000, 8, 2, 1)
        .ev(T::go_block, 10000, 5, 1)
        .ev(T::go_start, 0, 8, 1)
        .ev(T::go_syscall_begin, 1000, 1, 0)
        .ev(T::go_syscall_end, 1000)
        .ev(T::go_destroy, 1000)
        .ev(T::proc_stop, 0);
    trace.batch(1, 2, 0, gofer_experiment)
        .raw({gofer_records_version, record_byte(RecordKind::steal, 4), 10, 1, 0, 3, 2})
        .raw({record_byte(RecordKind::retake, 3), 10, 0, 1, 1})
        .raw({record_byte(RecordKind::queue, 3), 10, 0, 17, 8});
    trace.strings(1, {{3, "main"}, {4, "work"}, {5, "sleep"}, {6, "inner"}, {9, "x.cc"}});
    trace.stack(1, 1, {{16, 6, 9, 1}, {17, 3, 9, 2}});
    trace.stack(1, 2, {{18, 4, 9, 3}});
    trace.end_generation(1);
    bytes = trace.bytes();
  }

  TraceWriter trace;
  Bytes bytes;
};

TEST(Summary, HasTheTimesOfEachFunction) {
  const Example example;
  Reader reader(open_bytes(example.bytes));
  Summary summary(reader.names(), 10);
  Event event;
  while (reader.next(event)) summary.add(event);
  summary.finish();

  ASSERT_EQ(summary.kinds().size(), 2u);
  const Kind& main = summary.kinds()[0];
  const Kind& work = summary.kinds()[1];
  EXPECT_EQ(reader.names().string(main.function), "main") << "the outermost frame";
  EXPECT_EQ(reader.names().string(work.function), "work");
  EXPECT_EQ(main.total_ns(GoState::running), 11'000);
  EXPECT_EQ(main.total_ns(GoState::waiting), 3'000) << "until the end of the trace";
  EXPECT_EQ(reader.names().string(main.stays.back().first.reason), "sleep");
  EXPECT_EQ(work.total_ns(GoState::runnable), 10'000);
  EXPECT_EQ(work.total_ns(GoState::running), 2'000);
  EXPECT_EQ(work.total_ns(GoState::syscall), 1'000);

  ASSERT_EQ(summary.procs().size(), 2u);
  const ProcTimes& p0 = summary.procs().at(0);
  EXPECT_EQ(p0.ns[static_cast<int>(ProcUse::running)], 13'000);
  EXPECT_EQ(p0.ns[static_cast<int>(ProcUse::syscall)], 1'000);
  EXPECT_EQ(summary.procs().at(1).ns[static_cast<int>(ProcUse::idle)], 14'000);

  ASSERT_EQ(summary.delays().size(), 1u);
  const Delay& delay = summary.delays()[0];
  EXPECT_EQ(delay.ns, 10'000);
  EXPECT_EQ(delay.g, 8u);
  EXPECT_EQ(delay.readied_by, 7u);
  EXPECT_EQ(delay.keeper.g, 7u);
  EXPECT_EQ(delay.keeper.end_ns, 10'000);

  const Counts& counts = summary.counts();
  EXPECT_EQ(counts.steals, 1u);
  EXPECT_EQ(counts.stolen, 3u);
  EXPECT_EQ(counts.retakes[static_cast<int>(RetakeReason::announced)], 1u);
  EXPECT_EQ(counts.longest_queue, 17u);
}

TEST(Summary, IsTextOrJson) {
  const Example example;
  Reader reader(open_bytes(example.bytes));
  Summary summary(reader.names(), 10);
  Event event;
  while (reader.next(event)) summary.add(event);
  summary.finish();
  const std::string text = to_text(summary, reader, 0);
  for (const char* part : {"work: 1", "blocked: sleep", "goroutine 8 work, readied by goroutine 7",
                           "meanwhile ran goroutine 7 main for 10.0 us", "1 steals of 3 goroutines",
                           "1 from announced calls"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  const std::string json = to_json(summary, reader);
  for (const char* part : {"\"function\":\"work\",\"goroutines\":1", "\"reason\":\"sleep\"",
                           "\"keeper\":7", "\"steals\":1,\"stolen\":3"}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json;
  }
}

TEST(Summary, GoroutinesWithoutAStackAreOneKind) {
  TraceWriter trace;
  Events& events = trace.batch(1, 1, 0);
  events.ev(T::proc_status, 0, 0, 1);
  for (uint64_t g = 1; g <= 3; ++g) {
    events.ev(T::go_create, 1, g, 0, 0).ev(T::go_start, 1, g, 1);
    for (uint64_t i = 0; i < 100; ++i) events.ev(T::go_stop, 1, 0, 0).ev(T::go_start, 1, g, i + 2);
    events.ev(T::go_destroy, 1);
  }
  trace.end_generation(1);
  const Bytes bytes = trace.bytes();
  Reader reader(open_bytes(bytes));
  Summary summary(reader.names(), 0);
  Event event;
  while (reader.next(event)) summary.add(event);
  summary.finish();
  ASSERT_EQ(summary.kinds().size(), 1u);
  EXPECT_EQ(summary.kinds()[0].goroutines, 3u);
  EXPECT_EQ(summary.kinds()[0].find({GoState::running, 0})->count(), 303u);
  EXPECT_EQ(summary.counts().yielded, 300u);
}

}  // namespace
}  // namespace gofer::tool
