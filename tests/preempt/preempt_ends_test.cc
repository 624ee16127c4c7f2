// Programs beside whose main goroutine others compute without end: they go on, they end, they
// report what is to be reported, and the user's own SIGURG arrives. Each in a child process.
#include <gofer/go.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>

#include "runtime/base/sanitizer.h"
#include "support/child.h"

namespace {

using namespace gofer::test;
using namespace std::chrono_literals;

class PreemptChild : public testing::Test {
 protected:
  void SetUp() override {
    if (gofer::internal::tsan_enabled) GTEST_SKIP() << "no thread is paused in this build";
  }
};

ChildResult run_preempt(const std::string& scenario, std::chrono::seconds limit = 60s) {
  return run_child("preempt_child", {scenario}, {with_option("ASAN_OPTIONS", "detect_leaks=0")},
                   limit);
}

TEST_F(PreemptChild, MainIsScheduledBesideASpinner) {
  for (const char* scenario : {"got_scheduled", "got_scheduled_by_yield"}) {
    const ChildResult r = run_child("preempt_child", {scenario}, {"GOMAXPROCS=1"});
    EXPECT_TRUE(r.exited_with(0)) << scenario << ": " << r;
    EXPECT_EQ(r.out, "i got scheduled\n") << scenario << ": " << r;
    EXPECT_EQ(r.err, "") << scenario << ": " << r;
  }
}

TEST_F(PreemptChild, MainIsNotScheduledWhenSignalsAreOff) {
  const ChildResult r = run_child("preempt_child", {"got_scheduled"},
                                  {"GOMAXPROCS=1", with_debug("asyncpreemptoff=1")}, 2s);
  EXPECT_TRUE(r.timed_out) << r;
  EXPECT_EQ(r.out, "") << r;
}

TEST_F(PreemptChild, MainReturnsWhateverPausedGoroutinesHold) {
  for (const char* scenario : {"return_spinning", "return_in_malloc", "return_with_mutex",
                               "return_with_mutex_late", "return_with_stdout"}) {
    const ChildResult r = run_preempt(scenario);
    EXPECT_TRUE(r.exited_with(4)) << scenario << ": " << r;
    EXPECT_TRUE(r.out_has("returns\n")) << scenario << ": " << r;
    EXPECT_EQ(r.err, "") << scenario << ": " << r;
  }
}

TEST_F(PreemptChild, ExitInAGoroutineEndsWhateverPausedGoroutinesHold) {
  for (const char* scenario :
       {"exit_spinning", "exit_in_malloc", "exit_with_mutex", "exit_with_stdout"}) {
    const ChildResult r = run_preempt(scenario);
    EXPECT_TRUE(r.exited_with(5)) << scenario << ": " << r;
    EXPECT_EQ(r.err, "") << scenario << ": " << r;
  }
}

// Goroutines that wait for a P inside a call of the runtime must not go on in it without one.
TEST_F(PreemptChild, MainReturnsWhileGoroutinesWaitForAProcessorOnTheirThreads) {
  for (int i = 0; i < 5; ++i) {
    const ChildResult r = run_preempt("return_with_tied");
    ASSERT_TRUE(r.exited_with(4)) << r;
    ASSERT_EQ(r.err, "") << r;
  }
}

TEST_F(PreemptChild, ForkWorksBesideGoroutinesInMalloc) {
  const ChildResult r = run_preempt("fork_in_malloc");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "forked\n") << r;
}

TEST_F(PreemptChild, ReportsComeOutBesideGoroutinesInMalloc) {
  const struct {
    const char* scenario;
    const char* text;
    bool throws = false;
  } reports[] = {
      {"report_exception", "panic: std::runtime_error: thrown beside spinners\n\ngoroutine ", true},
      {"report_closed_channel", "panic: gofer::channel_error: send on closed channel\n\ngoroutine ",
       true},
      {"report_unlock", "fatal error: sync: unlock of unlocked mutex\n\ngoroutine "},
      {"report_wait_group", "panic: sync: negative WaitGroup counter\n\ngoroutine "}};
  for (const auto& report : reports) {
    const ChildResult r = run_preempt(report.scenario);
    EXPECT_TRUE(report.throws ? r.killed_by(SIGABRT) : r.exited_with(2))
        << report.scenario << ": " << r;
    EXPECT_EQ(r.err.find(report.text), 0u) << report.scenario << ": " << r;
    EXPECT_TRUE(r.err_has("preempt_child.cc:")) << report.scenario << ": " << r;
  }
}

TEST_F(PreemptChild, StackOverflowIsReportedBesideGoroutinesInMalloc) {
  const ChildResult r = run_preempt("report_overflow");
  EXPECT_FALSE(r.timed_out) << r;
  EXPECT_TRUE(r.err_has("fatal error: stack overflow\n")) << r;
}

// Paused goroutines have threads; the others need one, and there is none any more.
TEST_F(PreemptChild, ThreadLimitIsReportedBesideGoroutinesThatCompute) {
  const ChildResult r = run_preempt("report_threads", 20s);
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_TRUE(r.err_has("fatal error: thread exhaustion\n")) << r;
}

TEST_F(PreemptChild, DeadlockIsReportedOnceTheOthersHaveEnded) {
  const ChildResult r = run_preempt("deadlock_beside", 20s);
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find("fatal error: all goroutines are asleep - deadlock!\n"), 0u) << r;
  EXPECT_EQ(count_of(r.out, "computed\n"), gofer::gomaxprocs(0) + 2) << r;
  EXPECT_EQ(count_of(r.out, "slept\n"), 1) << r;
}

TEST_F(PreemptChild, SignalsOfTheUserReachHisHandler) {
  for (const char* scenario : {"user_handler", "user_siginfo_handler"}) {
    const ChildResult r = run_preempt(scenario);
    EXPECT_TRUE(r.exited_with(0)) << scenario << ": " << r;
    EXPECT_EQ(r.out, "chained\n") << scenario << ": " << r;
  }
  EXPECT_EQ(run_preempt("user_ignores").out, "ignored\n");
}

TEST_F(PreemptChild, SignalsOfTheRuntimeDoNotReachTheUsersHandler) {
  for (const char* scenario : {"own_signals", "own_signals_repeated"}) {
    const ChildResult r = run_preempt(scenario);
    EXPECT_TRUE(r.exited_with(0)) << scenario << ": " << r;
    EXPECT_EQ(r.out, "user's: 0\n") << scenario << ": " << r;
  }
}

TEST_F(PreemptChild, WorksWhenItsStarterHasAllSignalsBlocked) {
  EXPECT_EQ(run_preempt("blocked_in_starter").out, "paused\n");
}

TEST_F(PreemptChild, GoesOnAfterItWasStopped) {
  const ChildResult r = run_preempt("stopped_and_continued");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "went on\n") << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST_F(PreemptChild, TimersAreServedWhileThreadsAreOnlyBeingStarted) {
  for (int i = 0; i < 10; ++i) {
    const ChildResult r = run_child("preempt_child", {"timer_at_start"}, {"GOMAXPROCS=4"});
    ASSERT_TRUE(r.exited_with(0)) << r;
    ASSERT_EQ(r.out, "done\n") << r;
  }
}

}  // namespace
