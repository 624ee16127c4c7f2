// The flight recorder: what it keeps, what it drops, and that each file it writes is a valid trace,
// although the recording began long before it.
#include <fcntl.h>
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/sanitizer.h"
#include "runtime/procs/stop_world.h"
#include "runtime/trace/buffers.h"
#include "runtime/trace/output.h"
#include "runtime/trace/session.h"
#include "support/child.h"
#include "support/procs.h"
#include "support/scaled.h"
#include "support/traced.h"
#include "support/wait_until.h"

namespace gofer::test {
namespace {

using namespace std::chrono_literals;
namespace tracer = internal::tracer;

// Generations of a millisecond.
constexpr trace::flight_recorder_options short_memory{.keep = 4ms};

TraceContents written_by(const trace::flight_recorder& recorder) {
  const TraceFile file;
  recorder.write(file.path());
  return file.read();
}

// The same, and Go's own reader finds no mistake, where it is installed.
TraceContents written_for_go_by(const trace::flight_recorder& recorder) {
  const TraceFile file;
  recorder.write(file.path());
  EXPECT_TRUE(!has_go() || is_accepted_by_go(file.path())) << file.path();
  return file.read();
}

// What has happened until now is dropped.
void wait_until_forgotten() {
  const uint64_t now = tracer::session.generation;
  while (tracer::session.generation < now + 20) std::this_thread::sleep_for(1ms);
}

void mark(const char* name) {
  run([&] { const trace::region region(name); });
}

TEST(FlightRecorder, WritesWhatHasHappened) {
  trace::flight_recorder recorder;
  recorder.start();
  run([] {
    wait_group all;
    for (int i = 0; i < 100; ++i) all.go([] { yield(); });
    all.wait();
  });
  mark("first");
  TraceContents trace = written_by(recorder);
  EXPECT_GE(trace.count("GoCreate"), 100u);
  EXPECT_TRUE(trace.texts.contains("first"));
  mark("second");
  trace = written_by(recorder);
  EXPECT_TRUE(trace.texts.contains("first"));
  EXPECT_TRUE(trace.texts.contains("second"));
  EXPECT_GE(trace.generations, 2u);
  recorder.stop();
  EXPECT_EQ(tracer::buffers.mapped, 0);
}

TEST(FlightRecorder, DropsWhatIsTooOld) {
  trace::flight_recorder recorder(short_memory);
  recorder.start();
  mark("early");
  wait_until_forgotten();
  mark("late");
  const TraceContents trace = written_by(recorder);
  EXPECT_FALSE(trace.texts.contains("early"));
  EXPECT_LE(trace.generations, 8u);
}

TEST(FlightRecorder, DropsWhatIsTooMuch) {
  trace::flight_recorder recorder({.keep = 1h, .bytes = size_t{1} << 20});
  recorder.start();
  mark("early");
  run([] {
    for (int i = 0; i < scaled(1'000'000, 2); ++i) {
      trace::log("some", "more");
      // The tracer's thread may be late on a busy machine: no generation shall become too large.
      while (tracer::buffers.bytes > (256u << 10)) std::this_thread::sleep_for(1ms);
    }
  });
  mark("late");
  const TraceFile file;
  recorder.write(file.path());
  const TraceContents trace = file.read();
  EXPECT_FALSE(trace.texts.contains("early"));
  EXPECT_TRUE(trace.texts.contains("late"));
  EXPECT_LE(std::filesystem::file_size(file.path()), size_t{2} << 20);
}

// Parked, in a call, computing: nothing happens to them in the first generations that are kept.
TEST(FlightRecorder, KnowsGoroutinesThatHaveDoneNothingForLong) {
  std::atomic<bool> stop{false};
  std::atomic<int> computing{0};
  chan<int> sleepers(0);
  wait_group all;
  const Procs four(4);
  trace::flight_recorder recorder(short_memory);
  recorder.start();
  for (int i = 0; i < 10; ++i) all.go([&] { (void)sleepers.recv(); });
  for (int i = 0; i < 2; ++i) {
    all.go([&] {
      ++computing;
      while (!stop) {
        if constexpr (internal::tsan_enabled) checkpoint();  // no signal pauses it there
      }
      yield();
    });
    all.go([&] {
      blocking([&] {
        while (!stop) std::this_thread::sleep_for(1ms);
      });
      yield();
    });
    all.go([&] {
      while (!stop) std::this_thread::sleep_for(1ms);
      yield();
    });
  }
  while (computing < 2) std::this_thread::sleep_for(1ms);
  for (int i = 0; i < 2; ++i) {
    wait_until_forgotten();
    EXPECT_TRUE(written_for_go_by(recorder).valid);
  }
  stop = true;
  sleepers.close();
  all.wait();
  EXPECT_TRUE(written_by(recorder).valid);
}

// The generation in which the world was stopped is dropped before the world goes on.
TEST(FlightRecorder, MayBeginInAStopOfTheWorld) {
  trace::flight_recorder recorder(short_memory);
  recorder.start();
  run([] {
    yield();
    internal::M* m = internal::stop_the_world();
    wait_until_forgotten();
    internal::start_the_world(m);
    yield();
  });
  const TraceContents trace = written_for_go_by(recorder);
  EXPECT_EQ(trace.count("STWBegin"), trace.count("STWEnd"));
}

TEST(FlightRecorder, IsOneRecordingAtATime) {
  const TraceFile file;
  std::error_code ec;
  {
    trace::flight_recorder recorder;
    trace::flight_recorder other;
    recorder.write(file.path(), ec);
    EXPECT_EQ(ec, std::errc::invalid_argument);
    recorder.start();
    EXPECT_TRUE(recorder.is_recording());
    EXPECT_FALSE(other.is_recording());
    EXPECT_FALSE(trace::is_recording());
    trace::start(file.path(), ec);
    EXPECT_EQ(ec, std::errc::device_or_resource_busy);
    other.start(ec);
    EXPECT_EQ(ec, std::errc::device_or_resource_busy);
    other.write(file.path(), ec);
    EXPECT_EQ(ec, std::errc::invalid_argument);
    other.stop(ec);
    EXPECT_EQ(ec, std::errc::invalid_argument);
    trace::stop(ec);
    EXPECT_EQ(ec, std::errc::invalid_argument);
    EXPECT_TRUE(recorder.is_recording());
  }
  EXPECT_FALSE(std::filesystem::exists(file.path()));
  trace::start(file.path());
  trace::flight_recorder recorder;
  recorder.start(ec);
  EXPECT_EQ(ec, std::errc::device_or_resource_busy);
  trace::stop();
  recorder.start();
  recorder.stop();
  recorder.stop(ec);
  EXPECT_EQ(ec, std::errc::invalid_argument);
  file.read();
}

TEST(FlightRecorder, GoesOnAfterAWriteThatFails) {
  trace::flight_recorder recorder;
  recorder.start();
  const int full = open("/dev/full", O_WRONLY);
  std::error_code ec;
  recorder.write(full, ec);
  EXPECT_EQ(ec, std::errc::no_space_on_device);
  close(full);

  const auto longest =
      tracer::longest_standstill_ns.exchange(std::chrono::nanoseconds(50ms).count());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  run([] {
    for (int i = 0; i < 100'000; ++i) trace::log("more", "than the pipe takes");
  });
  recorder.write(ends[1], ec);
  EXPECT_EQ(ec, std::errc::timed_out);
  close(ends[0]);
  recorder.write(ends[1], ec);
  EXPECT_EQ(ec, std::errc::broken_pipe);
  close(ends[1]);
  tracer::longest_standstill_ns = longest;

  const TraceFile file;
  std::ofstream(file.path()) << "taken";
  recorder.write(file.path(), ec);
  EXPECT_EQ(ec, std::errc::file_exists);
  EXPECT_TRUE(written_by(recorder).valid);
}

TEST(FlightRecorder, MayBeWrittenByManyAtOnce) {
  trace::flight_recorder recorder;
  recorder.start();
  const auto write_some = [&] {
    for (int i = 0; i < 3; ++i) {
      const TraceFile file;
      recorder.write(file.path());
      file.read();
    }
  };
  wait_group all;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    all.go(write_some);
    threads.emplace_back(write_some);
  }
  for (std::thread& t : threads) t.join();
  all.wait();
}

TEST(FlightRecorder, StopsWhileOthersWrite) {
  for (int i = 0; i < scaled(20, 4); ++i) {
    trace::flight_recorder recorder;
    recorder.start();
    std::atomic<bool> stopped{false};
    std::thread writer([&] {
      while (!stopped) {
        const TraceFile file;
        std::error_code ec;
        recorder.write(file.path(), ec);
        EXPECT_TRUE(!ec || ec == std::errc::invalid_argument) << ec.message();
        EXPECT_EQ(std::filesystem::exists(file.path()), !ec);
      }
    });
    run([] { yield(); });
    recorder.stop();
    stopped = true;
    writer.join();
  }
}

TEST(FlightRecorder, RefusesLimitsThatKeepNothing) {
  std::error_code ec;
  trace::flight_recorder({.keep = 0s}).start(ec);
  EXPECT_EQ(ec, std::errc::invalid_argument);
  trace::flight_recorder({.bytes = 0}).start(ec);
  EXPECT_EQ(ec, std::errc::invalid_argument);
}

// ---- Reports

TEST(FlightRecorderReport, IsWrittenByAFatalError) {
  for (const char* scenario : {"deadlock", "throws", "overflows", "terminates", "asserts"}) {
    if (internal::tsan_enabled && scenario == std::string_view("deadlock")) continue;
    if (internal::asan_enabled && scenario == std::string_view("overflows")) continue;
    const TraceFile file;
    const ChildResult child = run_child("traced_child", {scenario},
                                        {std::string("GOFER_TRACE_FLIGHT=60s,1M,") + file.path()});
    EXPECT_TRUE(child.exited_with(2) || child.killed_by(SIGABRT)) << scenario << child;
    EXPECT_TRUE(child.err_has(std::string("s are in ") + file.path() + "\n")) << child;
    EXPECT_GE(file.read().count("GoCreate"), 10u) << scenario;
  }
}

// The report takes longer than what is kept.
TEST(FlightRecorderReport, HasWhatLedToTheReport) {
  const TraceFile file;
  const ChildResult child = run_child("traced_child", {"throws_slowly"},
                                      {std::string("GOFER_TRACE_FLIGHT=1s,") + file.path()});
  EXPECT_TRUE(child.killed_by(SIGABRT)) << child;
  EXPECT_TRUE(file.read().texts.contains("just before"));
}

TEST(FlightRecorderReport, IsWrittenWhereTheProgramSays) {
  const TraceFile file;
  const ChildResult child = run_child("traced_child", {"throws_recorded", file.path()});
  EXPECT_TRUE(child.killed_by(SIGABRT)) << child;
  EXPECT_GE(file.read().count("GoCreate"), 10u);
}

TEST(FlightRecorderReport, HasAFileOnlyIfThereIsAReport) {
  const TraceFile file;
  for (const char* scenario : {"returns", "exits", "quick_exits", "forks"}) {
    const ChildResult child =
        run_child("traced_child", {scenario}, {std::string("GOFER_TRACE_FLIGHT=") + file.path()});
    EXPECT_EQ(child.signal, 0) << child;
    EXPECT_FALSE(child.err_has("gofer: ")) << child;  // LeakSanitizer may say something
    EXPECT_FALSE(std::filesystem::exists(file.path())) << scenario;
  }
}

TEST(FlightRecorderReport, ThatCannotBeWrittenIsSaid) {
  const ChildResult child =
      run_child("traced_child", {"throws"}, {"GOFER_TRACE_FLIGHT=10s,/nowhere/a,b.trace"});
  EXPECT_TRUE(child.killed_by(SIGABRT)) << child;
  EXPECT_TRUE(child.err_has("/nowhere/a,b.trace: No such file")) << child;
}

TEST(FlightRecorderReport, NeedsAFile) {
  for (const char* value : {"10s", "10s,16M", "10s,16M,"}) {
    const ChildResult child =
        run_child("traced_child", {"returns"}, {std::string("GOFER_TRACE_FLIGHT=") + value});
    EXPECT_TRUE(child.exited_with(0)) << child;
    EXPECT_TRUE(child.err_has("no file is named")) << value << child;
  }
}

}  // namespace
}  // namespace gofer::test
