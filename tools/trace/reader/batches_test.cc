// The file as a sequence of batches: headers, sizes, generations, tables.
#include "trace/reader/batches.h"

#include <gtest/gtest.h>

#include "trace/testing/trace_writer.h"

namespace gofer::tool {
namespace {

using namespace testing;
using ::testing::Test;
using enum EventType;

Bytes bytes_of(std::string_view text) { return Bytes(text.begin(), text.end()); }

/// A trace of one P, one M and one goroutine that logs nothing.
TraceWriter small_trace(int version) {
  TraceWriter trace(version);
  trace.batch(1, 5).ev(proc_status, 0, 0, 1).ev(EventType::go_status, 5, 7, 5, 2);
  return trace.end_generation(1);
}

void expect_error(const Bytes& bytes, std::string_view text) {
  const std::string error = error_in(bytes);
  EXPECT_NE(error.find(text), std::string::npos) << "got: " << error << "\nwanted: " << text;
}

TEST(Batches, EverySupportedVersionIsRead) {
  for (const int version : {22, 23, 25, 26}) {
    EXPECT_EQ(error_in(small_trace(version).bytes()), "") << version;
    EXPECT_EQ(read_all(small_trace(version).bytes()).size(), 2u) << version;
  }
}

TEST(Batches, WhatIsNoTraceIsRefused) {
  expect_error({}, "empty");
  expect_error(bytes_of("go"), "not an execution trace");
  expect_error(bytes_of("\x7f"
                        "ELF is something else"),
               "not an execution trace");
  expect_error(bytes_of("go 1.x3 trace....."), "not an execution trace");
  expect_error(bytes_of(std::string_view("go 1.21 trace\0\0\0", 16)), "format go 1.21");
  expect_error(bytes_of(std::string_view("go 1.24 trace\0\0\0", 16)), "format go 1.24");
}

TEST(Batches, ATraceThatIsCutOffAnywhereHasAnErrorOrLessEvents) {
  for (const int version : {23, 26}) {
    const Bytes bytes = small_trace(version).bytes();
    for (size_t size = 16; size < bytes.size(); ++size) {
      const std::string error = error_in(Bytes(bytes.begin(), bytes.begin() + size));
      if (size == 16) {
        EXPECT_EQ(error, "") << "a trace without a generation";
      } else {
        EXPECT_NE(error, "") << version << " " << size;
      }
    }
  }
}

TEST(Batches, ABatchHasAtMost64KiB) {
  TraceWriter trace;
  trace.raw({1, 1, 5, 0, 0x81, 0x80, 0x04});  // 65537 bytes
  expect_error(trace.bytes(), "byte 16: a batch of 65537 bytes; the limit is 65536");
}

TEST(Batches, ABatchThatIsLongerThanTheFileIsCutOff) {
  TraceWriter trace;
  trace.raw({1, 1, 5, 0, 9, 1, 2});
  expect_error(trace.bytes(), "the file ends in a batch: 2 of 9 bytes are there");
}

TEST(Batches, WhatIsNoBatchIsRefused) {
  TraceWriter trace;
  trace.raw({7});
  expect_error(trace.bytes(), "expected a batch, found a byte 7");
}

TEST(Batches, ExperimentalBatchesAreSkippedFrom23On) {
  for (const int version : {22, 23}) {
    TraceWriter trace(version);
    trace.batch(1, 5, 0, 9).text("whatever");
    trace.end_generation(1);
    if (version == 22) {
      expect_error(trace.bytes(), "expected a batch, found a byte 49");
    } else {
      EXPECT_EQ(error_in(trace.bytes()), "");
    }
  }
}

TEST(Batches, EmptyBatchesAreNoEvents) {
  TraceWriter trace = small_trace(23);
  trace.batch(1, 5);
  trace.batch(1, 6);
  EXPECT_EQ(read_all(trace.bytes()).size(), 2u);
}

TEST(Generations, NumbersGoUpByOneBefore26) {
  TraceWriter trace = small_trace(23);
  trace.batch(3, 5).ev(proc_status, 0, 0, 1);
  expect_error(trace.bytes(), "generation 1, byte 52: is followed by a batch of generation 3");
}

TEST(Generations, From26OnAnEndIsNeeded) {
  TraceWriter trace(26);
  trace.batch(1, 5).ev(proc_status, 0, 0, 1);
  expect_error(trace.bytes(), "the file ends in this generation");
  trace.batch(2, 5).ev(proc_status, 0, 0, 1);
  expect_error(trace.bytes(), "without an EndOfGeneration");
}

TEST(Generations, NumbersNeverGoBack) {
  TraceWriter trace(26);
  trace.end_generation(4).end_generation(4);
  expect_error(trace.bytes(), "comes after generation 4");
}

TEST(Generations, AGenerationNeedsAFrequency) {
  TraceWriter trace;
  trace.batch(1, 5).ev(proc_status, 0, 0, 1);
  expect_error(trace.bytes(), "no frequency");
  trace.end_generation(1).end_generation(1);
  expect_error(trace.bytes(), "a second frequency");
  expect_error(TraceWriter().end_generation(1, 0).bytes(), "a frequency of 0");
}

TEST(Generations, AGenerationBeforeTheDamageIsRead) {
  TraceWriter trace = small_trace(23);
  trace.raw({1, 2, 5, 0, 100, 1});
  Reader reader(open_bytes(trace.bytes()));
  const Bytes bytes = trace.bytes();
  Reader whole(open_bytes(bytes));
  Event event;
  EXPECT_TRUE(whole.next(event));
  EXPECT_TRUE(whole.next(event));
  EXPECT_THROW(whole.next(event), TraceError);
  EXPECT_FALSE(whole.next(event)) << "after an error there is nothing";
}

TEST(Generations, TimesAreConvertedToNanoseconds) {
  TraceWriter trace;
  trace.batch(1, 5, 100).ev(proc_status, 0, 0, 1).ev(EventType::go_status, 5, 7, 5, 2);
  trace.end_generation(1, 15'625'000);  // 64 ns
  const auto events = read_all(trace.bytes());
  EXPECT_EQ(events[0].time_ns, 6400);
  EXPECT_EQ(events[1].time_ns, 6720);
}

TEST(Generations, TimesDoNotOverflow) {
  TraceWriter trace;
  trace.batch(1, 5, ~uint64_t{0} >> 1).ev(proc_status, 1, 0, 1);
  trace.end_generation(1);
  expect_error(trace.bytes(), "the time overflows 63 bits");
}

TEST(Tables, StringsAndStacksAreTheSameInAllGenerations) {
  TraceWriter trace;
  for (const uint64_t gen : {1, 2}) {
    trace.batch(gen, 5).ev(proc_status, 0, 0, 1).ev(EventType::go_status, 5, 7, 5, 2);
    if (gen == 1) trace.batch(gen, 5).ev(go_label, 1, 10).ev(EventType::go_stop, 1, 10, 1);
    trace.strings(gen, {{gen == 1 ? 10 : 20, "why"}, {3, "f"}, {4, "f.cc"}});
    trace.stack(gen, gen, {{99, 3, 4, 12}, {98, 4, 3, 1}});
    trace.end_generation(gen);
    if (gen == 1) continue;
  }
  // In the second generation goroutine 7 is runnable.
  Bytes bytes = trace.bytes();
  EXPECT_NE(error_in(bytes).find("goroutine 7 is runnable after the events before"),
            std::string::npos);
  Reader reader(open_bytes(bytes));
  Event event;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(reader.next(event));
  const Names& names = reader.names();
  EXPECT_EQ(names.string(static_cast<StringId>(event.args[0])), "why");
  ASSERT_EQ(names.depth(event.stack()), 2u);
  EXPECT_EQ(names.string(names.innermost(event.stack())), "f");
  EXPECT_EQ(names.string(names.outermost(event.stack())), "f.cc");
  EXPECT_EQ(names.frame(event.stack(), 0).line, 12u);
}

TEST(Tables, DamagedTablesAreRefused) {
  const auto with = [](auto fill) {
    TraceWriter trace;
    fill(trace);
    return trace.end_generation(1).bytes();
  };
  expect_error(with([](auto& t) { t.strings(1, {{1, "a"}, {1, "b"}}); }), "occurs twice");
  expect_error(with([](auto& t) { t.strings(1, {{0, "a"}}); }), "the id 0");
  expect_error(with([](auto& t) {
                 t.strings(1, {{1, std::string(1025, 'x')}});
               }),
               "a string of 1025 bytes");
  expect_error(with([](auto& t) {
                 t.batch(1, none).raw({4, 5, 1, 9}).text("abc");
               }),
               "a string is cut off");
  expect_error(with([](auto& t) { t.batch(1, none).raw({4, 9}); }), "expected a string");
  expect_error(with([](auto& t) { t.stack(1, 1, {{1, 77, 0, 0}}); }), "names string 77");
  expect_error(with([](auto& t) { t.stack(1, 1, {}).stack(1, 1, {}); }), "occurs twice");
  expect_error(with([](auto& t) {
                 t.batch(1, none).raw({2, 3, 1}).number(129);
               }),
               "a stack of 129 frames");
  expect_error(with([](auto& t) { t.batch(1, none).raw({2, 3, 1, 1, 5}); }), "is cut off");
}

TEST(Tables, EventsNameWhatTheirGenerationHas) {
  TraceWriter trace = small_trace(23);
  trace.batch(1, 5).ev(EventType::go_stop, 0, 17, 0);
  expect_error(trace.bytes(), "GoStop names string 17");
  TraceWriter other = small_trace(23);
  other.batch(1, 5).ev(EventType::go_stop, 0, 0, 17);
  expect_error(other.bytes(), "GoStop names stack 17");
}

TEST(Samples, CpuSamplesComeInTheOrderOfTime) {
  TraceWriter trace;
  trace.batch(1, 5, 100).ev(proc_status, 0, 0, 1).ev(EventType::go_status, 50, 7, 5, 2);
  Events& samples = trace.batch(1, none);
  samples.raw({static_cast<int>(cpu_samples)});
  for (const uint64_t time : {200, 120}) {
    samples.raw({static_cast<int>(cpu_sample)})
        .number(time)
        .number(5)
        .number(0)
        .number(7)
        .number(0);
  }
  trace.end_generation(1);
  const auto events = read_all(trace.bytes());
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].type, proc_status);
  EXPECT_EQ(events[1].type, cpu_sample);
  EXPECT_EQ(events[1].time_ns, 120);
  EXPECT_EQ(events[1].g, 7u);
  EXPECT_EQ(events[2].type, EventType::go_status);
  EXPECT_EQ(events[3].time_ns, 200);
}

TEST(Events, WhatIsNoEventIsRefused) {
  TraceWriter trace(22);
  trace.batch(1, 5).ev(proc_status, 0, 0, 1).ev(go_switch, 0, 1, 1);
  trace.end_generation(1);
  expect_error(trace.bytes(), "a byte 45, which is no event of go 1.22");
  TraceWriter other;
  other.batch(1, 5).ev(proc_status, 0, 0, 1).raw({static_cast<int>(stack)});
  other.end_generation(1);
  expect_error(other.bytes(), "Stack among the events of an M");
  TraceWriter cut;
  cut.batch(1, 5).ev(proc_status, 0, 0, 1).raw({static_cast<int>(EventType::go_start), 1, 1});
  cut.end_generation(1);
  expect_error(cut.bytes(), "GoStart is cut off");
}

}  // namespace
}  // namespace gofer::tool
