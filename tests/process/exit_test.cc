// While the process exits: goroutines go on, so that static objects and exit handlers can wait for
// them; a wait that can never end is left behind; a report that has begun comes out whole. Each in
// a child process.
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "support/child.h"
#include "support/report.h"

namespace {

using namespace gofer::test;

constexpr int status = 4;

ChildResult exits(const std::string& scenario, const std::string& argument = "") {
  return run_child("exit_child", {scenario, argument});
}

constexpr const char* statics_destroyed = "second destroyed\nfirst destroyed\n";
constexpr const char* late_destroyed = "late destroyed\nsecond destroyed\nfirst destroyed\n";

// ---- waits for goroutines

constexpr const char* log = "first line\nlast line\nlog ended\nlog closed\n";

void expect_log(const std::string& scenario, const std::string& after) {
  const ChildResult r = exits(scenario);
  EXPECT_TRUE(r.exited_with(status)) << scenario << ": " << r;
  EXPECT_EQ(r.out, log + after) << scenario << ": " << r;
  EXPECT_EQ(r.err, "") << scenario << ": " << r;
}

TEST(Destructor, OfAStaticObjectMayWaitForItsGoroutineHoweverTheProcessExits) {
  for (const char* scenario :
       {"log_main_returns", "log_exit_after_run", "log_exit_in_main_goroutine",
        "log_exit_in_goroutine", "log_exit_in_bound_goroutine", "log_exit_in_blocking_call",
        "log_exit_in_thread"}) {
    expect_log(scenario, statics_destroyed);
  }
}

TEST(Destructor, MayWaitWhetherItsObjectIsOlderOrYoungerThanTheRuntime) {
  expect_log("log_main_returns", statics_destroyed);
  expect_log("log_late", late_destroyed);
}

TEST(ExitHandler, MayWaitForAGoroutine) {
  expect_log("log_atexit", statics_destroyed);
  expect_log("log_at_quick_exit", "");
}

TEST(Destructor, MayWaitBesideGoroutinesInAnyState) {
  for (const char* scenario :
       {"log_beside_blocked", "log_beside_parked", "log_beside_bound", "log_beside_yielding"}) {
    expect_log(scenario, statics_destroyed);
  }
}

TEST(Destructor, MayWaitBesideGoroutinesThatComputeOnAllProcessors) {
  if (under_tsan) GTEST_SKIP() << "no thread is paused in this build";
  for (const char* scenario : {"log_beside_spinners", "log_exit_beside_spinners"}) {
    expect_log(scenario, statics_destroyed);
  }
}

TEST(Destructor, MayDoWithGoroutinesWhateverMainMay) {
  for (const char* scenario : {"everything_main_returns", "everything_exit_in_goroutine"}) {
    const ChildResult r = exits(scenario);
    EXPECT_TRUE(r.exited_with(status)) << scenario << ": " << r;
    EXPECT_EQ(r.out,
              "used everything\nlate destroyed\nused everything\nsecond destroyed\n"
              "first destroyed\n")
        << scenario << ": " << r;
    EXPECT_EQ(r.err, "") << scenario << ": " << r;
  }
}

TEST(Destructor, MayBeTheFirstToUseTheRuntime) {
  const ChildResult r = exits("started_at_exit");
  EXPECT_TRUE(r.exited_with(status)) << r;
  EXPECT_EQ(r.out, std::string("used everything\n") + statics_destroyed) << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST(Destructor, MayWaitForAGoroutineInItsOwnWay) {
  const ChildResult r = exits("joined_by_polling");
  EXPECT_TRUE(r.exited_with(status)) << r;
  EXPECT_EQ(r.out, std::string("ended\n") + statics_destroyed) << r;
  EXPECT_EQ(r.err, "") << r;
}

// ---- waits that can never end

class EndlessWait : public testing::Test {
 protected:
  void SetUp() override {
    if (under_tsan) GTEST_SKIP() << "a thread of TSan's own might help";
  }
};

constexpr const char* goes_on =
    "gofer: the process exits, and an exit handler or static destructor waits for what no "
    "goroutine "
    "can do any more: the exit goes on without it\n";

TEST_F(EndlessWait, IsLeftBehindAndTheExitGoesOnWithItsStatus) {
  for (const char* scenario : {"endless_early", "endless_beside_parked", "endless_in_thread"}) {
    const ChildResult r = exits(scenario);
    EXPECT_TRUE(r.exited_with(status)) << scenario << ": " << r;
    EXPECT_EQ(r.out, "first destroyed\n") << scenario << ": " << r;
    EXPECT_EQ(r.err.find(goes_on), 0u) << scenario << ": " << r;
  }
}

TEST_F(EndlessWait, OfAnObjectYoungerThanTheRuntimeIsLeftBehindToo) {
  for (const char* scenario :
       {"endless_late", "endless_in_goroutine", "endless_in_main_goroutine"}) {
    const ChildResult r = exits(scenario);
    EXPECT_TRUE(r.exited_with(status)) << scenario << ": " << r;
    EXPECT_EQ(r.out, statics_destroyed) << scenario << ": " << r;
    EXPECT_EQ(r.err.find(goes_on), 0u) << scenario << ": " << r;
  }
}

TEST_F(EndlessWait, ShowsTheTraceOfTheWaitingThread) {
  if (!has_symbols) GTEST_SKIP() << "no symbols";
  const ChildResult r = exits("endless_late");
  EXPECT_TRUE(r.err_has("wait_for_ever(...)\n\t")) << r;
  EXPECT_TRUE(r.err_has("Static::~Static(...)\n\t")) << r;
}

TEST_F(EndlessWait, MayEndAfterAllWithoutHarmAndTheNextIsLeftBehindInSilence) {
  for (const char* scenario : {"endless_twice", "endless_twice_in_goroutine"}) {
    const ChildResult r = exits(scenario);
    EXPECT_TRUE(r.exited_with(status)) << scenario << ": " << r;
    EXPECT_EQ(r.out, "used everything\nfirst destroyed\n") << scenario << ": " << r;
    EXPECT_EQ(r.err.find(goes_on), 0u) << scenario << ": " << r;
    EXPECT_EQ(count_of(r.err, "gofer: "), 1) << scenario << ": " << r;
  }
}

TEST(LongWait, IsNotTakenForAnEndlessOne) {
  const ChildResult r = exits("long_wait");
  EXPECT_TRUE(r.exited_with(status)) << r;
  EXPECT_EQ(r.out, std::string("waited\n") + statics_destroyed) << r;
  EXPECT_EQ(r.err, "") << r;
}

// ---- reports

// From the first line to the last, which says where the goroutine was started.
void expect_whole_report(const ChildResult& r, const std::string& what) {
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.err.find("panic: " + what + "\n\ngoroutine "), 0u) << r;
  EXPECT_EQ(count_of(r.err, "panic: "), 1) << r;
  EXPECT_EQ(count_of(r.err, " [running]:\n"), 1) << r;
  const std::size_t last = r.err.find("\ncreated by ");
  ASSERT_NE(last, std::string::npos) << r;
  EXPECT_EQ(count_of(r.err.substr(last + 1), "\n"), 2) << r;
  EXPECT_EQ(r.err.back(), '\n') << r;
}

TEST(Report, ThatHasBegunEndsTheProcessEvenIfAThreadExitsMeanwhile) {
  for (const char* scenario :
       {"report_then_main_returns", "report_then_exit_in_thread", "report_then_exit_in_goroutine",
        "report_then_quick_exit", "report_then_thread_throws"}) {
    SCOPED_TRACE(scenario);
    const ChildResult r = exits(scenario);
    expect_whole_report(r, "Slow: slow");
    EXPECT_EQ(r.out, "") << r;
  }
}

TEST(Report, ThatBeginsWhileExitHandlersRunEndsTheProcess) {
  for (const char* scenario : {"report_in_exit_handler", "report_in_exit_handler_of_goroutine"}) {
    SCOPED_TRACE(scenario);
    expect_whole_report(exits(scenario), "Slow: slow");
  }
}

TEST(Report, EndsAsItShouldEvenIfItCallsExit) {
  const ChildResult r = exits("exit_in_report");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.err.find("panic: "), 0u) << r;
}

// Whichever comes first.
TEST(Report, IsMadeWholeOrNotAtAllAsMainReturns) {
  int reports = 0;
  for (int i = 0; i < 40; ++i) {
    const ChildResult r = exits("report_races", std::to_string(i * 20'000));
    if (r.killed_by(SIGABRT)) {
      ++reports;
      expect_whole_report(r, "std::runtime_error: as main returns");
    } else {
      EXPECT_TRUE(r.exited_with(status)) << r;
      EXPECT_EQ(r.err, "") << r;
    }
    if (HasFailure()) break;
  }
  RecordProperty("reports", reports);
}

}  // namespace
