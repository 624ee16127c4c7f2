// Traces of small programs: valid, and with the events that the programs ask for.
#include <fcntl.h>
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/sanitizer.h"
#include "support/child.h"
#include "support/procs.h"
#include "support/scaled.h"
#include "support/traced.h"

namespace gofer::test {
namespace {

using namespace std::chrono_literals;

void spin_for(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST(Trace, HasEachGoroutineFromItsCreationToItsEnd) {
  constexpr int n = 100;
  const TraceContents trace = traced([] {
    wait_group all;
    for (int i = 0; i < n; ++i) all.go([] {});
    all.wait();
  });
  EXPECT_EQ(trace.count("GoCreate") + trace.count("GoCreateSyscall"), n);
  // The last ones may have said that they are done, and not have ended.
  EXPECT_GE(static_cast<int>(trace.count("GoDestroy")), n - gomaxprocs(0));
  EXPECT_GE(trace.count("GoStart"), n);
}

TEST(Trace, SaysWhyAGoroutineWaits) {
  run([] {
    const TraceContents trace = traced([] {
      chan<int> ready(0);
      mutex m;
      wait_group all;
      m.lock();
      all.go([&] { ready.send(1); });
      all.go([&] {
        m.lock();
        m.unlock();
      });
      yield();
      sleep_for(1ms);
      ready.recv();
      m.unlock();
      all.wait();
    });
    EXPECT_GE(trace.blocks.at("chan send"), 1u);
    EXPECT_GE(trace.blocks.at("sync.Mutex.Lock"), 1u);
    EXPECT_GE(trace.blocks.at("sleep"), 1u);
  });
}

TEST(Trace, NamesTheFunctionOfAGoroutine) {
  run([] {
    const TraceContents trace = traced([] {
      wait_group all;
      for (int i = 0; i < 3; ++i) all.go([] {});
      all.wait();
    });
    bool named = false;
    for (const auto& [function, count] : trace.created) {
      named = named || (function.find("TestBody") != function.npos && count == 3);
      RecordProperty("function", function);
    }
    EXPECT_TRUE(named) << trace.created.begin()->first;
  });
}

TEST(Trace, ShowsAnnouncedCalls) {
  run([] {
    const TraceContents trace = traced([] {
      blocking([] { std::this_thread::sleep_for(5ms); });
      blocking(handoff, [] { std::this_thread::sleep_for(5ms); });
    });
    EXPECT_GE(trace.count("GoSyscallBegin"), 2u);
  });
}

TEST(Trace, BeginsWhileGoroutinesComputeAndBlock) {
  run([] {
    std::atomic<bool> stop{false};
    wait_group all;
    for (int i = 0; i < 4; ++i) {
      all.go([&] {
        while (!stop) {
          if constexpr (internal::tsan_enabled) checkpoint();  // no signal pauses it there
        }
      });
      all.go([&] {
        while (!stop) std::this_thread::sleep_for(1ms);
      });
      all.go([&] {
        while (!stop) blocking([] { std::this_thread::sleep_for(1ms); });
      });
    }
    for (int i = 0; i < 5; ++i) {
      traced([] { sleep_for(10ms); });
    }
    stop = true;
    all.wait();
  });
}

TEST(Trace, HasAGenerationForEachSecond) {
  run([] {
    const TraceContents trace = traced([] {
      chan<int> c(0);
      wait_group all;
      all.go([&] {
        while (c.recv()) {
        }
      });
      const auto end = std::chrono::steady_clock::now() + 2500ms;
      while (std::chrono::steady_clock::now() < end) {
        c.send(1);
        sleep_for(1ms);
      }
      c.close();
      all.wait();
    });
    EXPECT_GE(trace.generations, 3u);
  });
}

// Marks of generations come again after 255 of them.
TEST(Trace, OfManyTracesEachIsValid) {
  chan<int> never(0);
  wait_group all;
  for (int i = 0; i < 1000; ++i) all.go([&] { (void)never.recv(); });
  for (int i = 0; i < scaled(600, 10); ++i) {
    const TraceFile file;
    trace::start(file.path());
    if (i % 50 == 0) run([] { yield(); });
    wait_group some;
    for (int k = 0; k < 20; ++k) some.go([] { yield(); });
    some.wait();
    trace::stop();
    if (i % 17 == 0 || i > 250) file.read();
  }
  never.close();
  all.wait();
}

TEST(Trace, HasTheStopOfTheWorld) {
  run([] {
    const TraceContents trace = traced([] {
      Procs three(3);
      Procs one(1);
    });
    EXPECT_GE(trace.count("STWBegin"), 4u);
    EXPECT_EQ(trace.count("STWBegin"), trace.count("STWEnd"));
    EXPECT_GE(trace.count("ProcsChange"), 4u);
  });
}

TEST(Trace, HasTheMarksOfTheProgram) {
  run([] {
    const TraceContents trace = traced([] {
      const trace::task request("request");
      const trace::task part(request, "part");
      {
        const trace::region outer(request, "outer");
        const trace::region inner("inner");
        trace::log(part, "found", "17");
        trace::log("lost", std::string(3000, 'x'));
        trace::counter("queue", -3);
      }
    });
    EXPECT_EQ(trace.count("UserTaskBegin"), 2u);
    EXPECT_EQ(trace.count("UserTaskEnd"), 2u);
    EXPECT_EQ(trace.count("UserRegionBegin"), 2u);
    EXPECT_EQ(trace.count("UserRegionEnd"), 2u);
    EXPECT_EQ(trace.count("UserLog"), 2u);
    for (const char* text : {"request", "part", "outer", "inner", "found: 17"}) {
      EXPECT_TRUE(trace.texts.contains(text)) << text;
    }
  });
}

TEST(Trace, ARegionMaySpanTheBeginAndTheEndOfATrace) {
  run([] {
    const trace::region before("before");
    const TraceFile first;
    trace::start(first.path());
    {
      const trace::region across("across");
      trace::stop();
      const TraceFile second;
      trace::start(second.path());
      const trace::region within("within");
      trace::stop();
      second.read();
    }
    first.read();
  });
}

TEST(Trace, MarksOfOtherThreadsAreNotRecorded) {
  const TraceContents trace = traced([] {
    const trace::task task("task");
    const trace::region region("region");
    trace::log("a", "b");
  });
  EXPECT_EQ(trace.count("UserTaskBegin"), 0u);
}

TEST(Trace, OneAtATime) {
  const TraceFile file;
  const TraceFile other;
  trace::start(file.path());
  std::error_code ec;
  trace::start(other.path(), ec);
  EXPECT_EQ(ec, std::errc::device_or_resource_busy);
  EXPECT_FALSE(std::filesystem::exists(other.path()));
  EXPECT_TRUE(trace::is_recording());
  trace::stop();
  EXPECT_FALSE(trace::is_recording());
  trace::stop(ec);
  EXPECT_EQ(ec, std::errc::invalid_argument);
  file.read();
}

TEST(Trace, TheFileIsNewAndItsOwnersAlone) {
  const TraceFile file;
  trace::start(file.path());
  trace::stop();
  struct stat status {};
  ASSERT_EQ(stat(file.path(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  std::error_code ec;
  trace::start(file.path(), ec);
  EXPECT_EQ(ec, std::errc::file_exists);
}

TEST(Trace, AFullDiskEndsTheTraceAndNotTheProgram) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  trace::start(pipe_ends[1]);
  close(pipe_ends[0]);
  run([] {
    wait_group all;
    for (int i = 0; i < 10'000; ++i) all.go([] {});
    all.wait();
  });
  std::error_code ec;
  trace::stop(ec);
  EXPECT_EQ(ec, std::errc::broken_pipe);
  close(pipe_ends[1]);
  traced([] {});

  const int full = open("/dev/full", O_WRONLY);
  trace::start(full, ec);
  EXPECT_EQ(ec, std::errc::no_space_on_device);
  close(full);
}

TEST(Trace, GoesToADescriptor) {
  const TraceFile file;
  const int fd = open(file.path(), O_WRONLY | O_CREAT | O_EXCL, 0600);
  trace::start(fd);
  run([] { yield(); });
  trace::stop();
  EXPECT_EQ(close(fd), 0);
  file.read();
}

// ---- GOFER_TRACE

ChildResult run_traced(const TraceFile& file, const std::string& program,
                       const std::string& scenario) {
  return run_child(program, {scenario}, {std::string("GOFER_TRACE=") + file.path()});
}

TEST(TraceOfAProgram, EndsWithIt) {
  const TraceFile file;
  const ChildResult child =
      run_child("traced_child", {"returns"}, {std::string("GOFER_TRACE=") + file.path()});
  EXPECT_TRUE(child.exited_with(0)) << child;
  const TraceContents trace = file.read();
  EXPECT_GE(trace.count("GoCreate"), 10u);
  EXPECT_GE(trace.count("GoDestroy"), 10u);
}

TEST(TraceOfAProgram, EndsWithExitInAGoroutine) {
  const TraceFile file;
  const ChildResult child = run_traced(file, "traced_child", "exits");
  EXPECT_TRUE(child.exited_with(3)) << child;
  EXPECT_GE(file.read().count("GoCreate"), 10u);
}

TEST(TraceOfAProgram, EndsWithAFatalReport) {
  for (const char* scenario : {"deadlock", "throws", "aborts"}) {
    // A thread of TSan's own keeps the detector silent.
    if (internal::tsan_enabled && scenario == std::string_view("deadlock")) continue;
    const TraceFile file;
    const ChildResult child = run_traced(file, "traced_child", scenario);
    const bool ends =
        scenario == std::string_view("deadlock") ? child.exited_with(2) : child.killed_by(SIGABRT);
    EXPECT_TRUE(ends) << child;
    EXPECT_GE(file.read().count("GoCreate"), 10u);
  }
}

TEST(TraceOfAProgram, EndsWithQuickExit) {
  const TraceFile file;
  const ChildResult child = run_traced(file, "traced_child", "quick_exits");
  EXPECT_TRUE(child.exited_with(4)) << child;
  EXPECT_GE(file.read().count("GoCreate"), 10u);
}

TEST(TraceOfAProgram, EndsWithAReportThatAborts) {
  for (const char* scenario : {"overflows", "terminates", "asserts"}) {
    // ASan reports overflows by itself.
    if (internal::asan_enabled && scenario == std::string_view("overflows")) continue;
    const TraceFile file;
    const ChildResult child = run_traced(file, "traced_child", scenario);
    EXPECT_TRUE(child.killed_by(SIGABRT)) << scenario << child;
    EXPECT_GE(file.read().count("GoCreate"), 10u) << scenario;
  }
}

TEST(TraceOfAProgram, DoesNotGoOnInAForkedChild) {
  const TraceFile file;
  const ChildResult child = run_traced(file, "traced_child", "forks");
  EXPECT_TRUE(child.exited_with(0)) << child;
  file.read();
}

TEST(TraceOfAProgram, HasTheNumberOfTheProcessInItsName) {
  const TraceFile file;
  const ChildResult child =
      run_child("traced_child", {"says_pid"}, {std::string("GOFER_TRACE=") + file.path() + ".%p"});
  EXPECT_TRUE(child.exited_with(0)) << child;
  const std::string path = file.path() + ("." + child.out.substr(0, child.out.find('\n')));
  EXPECT_TRUE(read_trace(path).valid) << path;
  std::filesystem::remove(path);
}

TEST(TraceOfAProgram, HasTheNumberInItsNameAlsoIfThatIsTaken) {
  const TraceFile file;
  std::ofstream(file.path()) << "taken";
  const ChildResult child = run_traced(file, "traced_child", "says_pid");
  EXPECT_TRUE(child.exited_with(0)) << child;
  const std::string path = file.path() + ("." + child.out.substr(0, child.out.find('\n')));
  EXPECT_TRUE(read_trace(path).valid) << path;
  std::filesystem::remove(path);
  EXPECT_EQ(std::filesystem::file_size(file.path()), 5u);
}

// A program with rights that its caller does not have must not write files for it.
TEST(TraceOfAProgram, IsNotRecordedWithForeignRights) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to make a program that runs as another user";
  if (internal::asan_enabled) GTEST_SKIP() << "LSan cannot look into such a process, and fails";
  const TraceFile program;
  const TraceFile file;
  std::filesystem::copy_file(GOFER_TEST_PROGRAMS "/traced_child", program.path());
  constexpr uid_t nobody = 65534;
  ASSERT_EQ(chown(program.path(), nobody, nobody), 0);
  ASSERT_EQ(chmod(program.path(), 04755), 0);
  const std::string up = "../../../../../../../../../../../..";
  const ChildResult child =
      run_child(up + program.path(), {"says_secure"}, {std::string("GOFER_TRACE=") + file.path()});
  EXPECT_TRUE(child.exited_with(0)) << child;
  if (!child.out_has("secure=1")) GTEST_SKIP() << "the bit has no effect here";
  EXPECT_FALSE(std::filesystem::exists(file.path()));
  EXPECT_EQ(child.err, "");
}

TEST(Trace, OfARuntimeThatCannotStartIsAnError) {
  if (internal::asan_enabled || internal::tsan_enabled) GTEST_SKIP() << "they need address space";
  const TraceFile file;
  const ChildResult child = run_child("traced_child", {"starts_without_memory", file.path()});
  EXPECT_TRUE(child.exited_with(0)) << child;
}

TEST(TraceOfAProgram, ThatCannotBeWrittenIsSaid) {
  const ChildResult child =
      run_child("traced_child", {"returns"}, {"GOFER_TRACE=/nowhere/app.trace"});
  EXPECT_TRUE(child.exited_with(0)) << child;
  EXPECT_TRUE(child.err_has("GOFER_TRACE: /nowhere/app.trace: No such file")) << child;
}

// ---- Go's own tools

TEST(Trace, IsAcceptedByGo) {
  if (!has_go()) GTEST_SKIP() << "no Go";
  const TraceFile file;
  trace::start(file.path());
  run([] {
    wait_group all;
    for (int i = 0; i < 100; ++i) {
      all.go([] {
        const trace::region region("work");
        sleep_for(1ms);
        blocking([] { std::this_thread::sleep_for(1ms); });
      });
    }
    all.go([] { spin_for(50ms); });
    all.go([] { spin_for(50ms); });
    all.go([] { spin_for(50ms); });
    all.wait();
  });
  trace::stop();
  EXPECT_TRUE(is_accepted_by_go(file.path())) << file.path();
}

}  // namespace
}  // namespace gofer::test
