// The end of a program by an uncaught exception: the panic handler, the report, the program's
// terminate handler, and what these may do. Each in a child process.
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "support/child.h"
#include "support/report.h"

namespace {

using namespace gofer::test;

ChildResult panic(const std::string& scenario, const std::vector<std::string>& environment = {}) {
  return run_child("panic_child", {scenario}, environment);
}

constexpr const char* report =
    "panic: std::runtime_error: boom\n\ngoroutine 1 \"the culprit\" [running]:\n";

void expect_one_report(const ChildResult& r) {
  EXPECT_EQ(count_of(r.err, "panic: "), 1) << r;
  EXPECT_EQ(count_of(r.err, " [running]:"), 1) << r;
  EXPECT_EQ(count_of(r.err, "created by "), 1) << r;
}

// ---- the end

TEST(Panic, EndsByAbortWithOneReport) {
  for (const auto& environment : {std::vector<std::string>(), {with_debug("panic=abort")}}) {
    const ChildResult r = panic("throws", environment);
    EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
    EXPECT_EQ(r.err.find(report), 0u) << r;
    EXPECT_FALSE(r.err_has("[signal ")) << r;
    expect_one_report(r);
  }
}

TEST(Panic, EndsWithStatus2IfTheEnvironmentSaysSo) {
  for (const char* scenario : {"throws", "terminate_returns"}) {
    const ChildResult r = panic(scenario, {with_debug("panic=exit")});
    EXPECT_TRUE(r.exited_with(2)) << r;
    EXPECT_EQ(r.err.find(report), 0u) << r;
    expect_one_report(r);
  }
}

TEST(Panic, EndsTheSameWithoutCrashReports) {
  const ChildResult r = panic("throws", {with_debug("crash=0")});
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.err.find(report), 0u) << r;
  expect_one_report(r);
}

TEST(Panic, ReachesAHandlerOfSIGABRTAfterTheReport) {
  const ChildResult r = panic("abort_handler");
  EXPECT_TRUE(r.exited_with(8)) << r;
  EXPECT_EQ(r.out, "own handler of SIGABRT\n") << r;
  EXPECT_EQ(r.err.find(report), 0u) << r;
  expect_one_report(r);
}

TEST(Panic, IsReportedAlthoughItsTextCrashes) {
  if (under_asan || under_tsan) GTEST_SKIP() << "a sanitizer has a report of its own";
  const struct {
    const char* scenario;
    const char* begin;
  } expected[] = {
      {"crashing_what",
       "panic: CrashingWhat\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 "},
      {"aborting_what", "panic: AbortingWhat\n[signal SIGABRT: abort "}};
  for (const auto& [scenario, begin] : expected) {
    const ChildResult r = panic(scenario);
    EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
    EXPECT_EQ(r.err.find(begin), 0u) << r;
    EXPECT_TRUE(r.err_has("]\n\ngoroutine 1 \"the culprit\" [running]:\n")) << r;
    expect_one_report(r);
  }
}

// ---- the program's terminate handler

TEST(TerminateHandler, IsCalledAfterTheReportAndMayReturn) {
  const ChildResult r = panic("terminate_returns");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.out, "terminate handler\n") << r;
  EXPECT_EQ(r.err.find(report), 0u) << r;
  EXPECT_FALSE(r.err_has("[signal ")) << r;
  expect_one_report(r);
}

TEST(TerminateHandler, DecidesHowTheProcessEnds) {
  ChildResult r = panic("terminate_exits");
  EXPECT_TRUE(r.exited_with(7)) << r;
  EXPECT_EQ(r.out, "terminate handler\n") << r;
  expect_one_report(r);
  r = panic("terminate_aborts", {with_debug("panic=exit")});
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.out, "terminate handler\n") << r;
  EXPECT_FALSE(r.err_has("[signal ")) << r;
  expect_one_report(r);
}

TEST(TerminateHandler, ThatFailsIsTheEnd) {
  for (const char* scenario : {"terminate_throws", "terminate_waits"}) {
    SCOPED_TRACE(scenario);
    const ChildResult r = panic(scenario);
    EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
    EXPECT_EQ(r.err.find(report), 0u) << r;
    expect_one_report(r);
  }
}

TEST(TerminateHandler, ThatCrashesIsTheEnd) {
  if (under_asan || under_tsan) GTEST_SKIP() << "a sanitizer has a report of its own";
  const ChildResult r = panic("terminate_crashes");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.err.find(report), 0u) << r;
  EXPECT_TRUE(r.err_has("\n[signal SIGSEGV: ")) << r;
  expect_one_report(r);
}

// ---- the panic handler

TEST(PanicHandler, SeesTheExceptionAndTheGoroutineBeforeTheReport) {
  ChildResult r = panic("handler_shows");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.out, "handler: boom in 1 \"the culprit\", itself in 1\n") << r;
  EXPECT_EQ(r.err.find(report), 0u) << r;
  expect_one_report(r);
  r = panic("handler_of_number");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.out, "handler: something else in 1 \"the culprit\", itself in 1\n") << r;
  EXPECT_EQ(r.err.find("panic: int\n\ngoroutine 1 "), 0u) << r;
  r = panic("handler_of_terminate");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.out, "handler: no exception in 1 \"the culprit\", itself in 1\n") << r;
  EXPECT_EQ(r.err.find("fatal error: std::terminate was called\n\ngoroutine 1 "), 0u) << r;
}

TEST(PanicHandler, IsNotCalledOnceItIsRemoved) {
  const ChildResult r = panic("handler_is_removed");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.out, "") << r;
  EXPECT_EQ(r.err.find(report), 0u) << r;
}

TEST(PanicHandler, ThatFailsIsNamedAndTheReportFollows) {
  const struct {
    const char* scenario;
    const char* how;
  } expected[] = {{"handler_throws", "std::logic_error"},
                  {"handler_meets_noexcept", "std::logic_error"},
                  {"handler_goexits", "goexit() or std::terminate"},
                  {"handler_terminates", "goexit() or std::terminate"}};
  for (const auto& [scenario, how] : expected) {
    SCOPED_TRACE(scenario);
    const ChildResult r = panic(scenario);
    EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
    EXPECT_EQ(r.err.find("gofer: the panic handler ended with " + std::string(how) +
                         ": the report goes on\n" + report),
              0u)
        << r;
    expect_one_report(r);
  }
}

TEST(PanicHandler, MayEndTheProcessWithoutAReport) {
  for (const char* scenario : {"handler_exits", "handler_exits_at_once"}) {
    const ChildResult r = panic(scenario);
    EXPECT_TRUE(r.exited_with(7)) << scenario << ": " << r;
    EXPECT_EQ(r.err, "") << scenario << ": " << r;
  }
}

TEST(PanicHandler, ThatCrashesIsReportedWithTheException) {
  if (under_asan || under_tsan) GTEST_SKIP() << "a sanitizer has a report of its own";
  ChildResult r = panic("handler_crashes");
  EXPECT_TRUE(r.killed_by(SIGSEGV)) << r;
  EXPECT_EQ(
      r.err.find("panic: std::runtime_error\nfatal error: unexpected signal\n[signal SIGSEGV"), 0u)
      << r;
  expect_one_report(r);
  r = panic("handler_aborts");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(
      r.err.find("panic: std::runtime_error\nfatal error: unexpected signal\n[signal SIGABRT"), 0u)
      << r;
}

TEST(PanicHandler, MayWaitForOtherGoroutines) {
  const ChildResult r = panic("handler_logs_by_a_channel");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.out, "logged: boom\n") << r;
  EXPECT_EQ(r.err.find("panic: std::runtime_error: boom\n\ngoroutine 2 \"the culprit\" "), 0u) << r;
}

TEST(PanicHandler, IsWaitedForByAnExit) {
  for (const char* scenario :
       {"handler_is_slow_and_main_returns", "handler_is_slow_and_a_thread_exits"}) {
    const ChildResult r = panic(scenario);
    EXPECT_TRUE(r.killed_by(SIGABRT)) << scenario << ": " << r;
    EXPECT_EQ(r.out, "handler: boom in 1 \"\", itself in 1\n") << scenario << ": " << r;
    expect_one_report(r);
  }
}

TEST(PanicHandler, IsNotCalledInTheChildOfAFork) {
  const ChildResult r = panic("handler_and_fork");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "child=6\n") << r;
  EXPECT_EQ(r.err.find("panic: std::runtime_error: in the child\n\ngoroutine "), 0u) << r;
}

TEST(PanicHandler, IsCalledOnceIfManyThrow) {
  const ChildResult r = panic("many_throw");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(count_of(r.out, "handler: one of fifty in "), 1) << r;
  expect_one_report(r);
}

TEST(PanicHandler, ThatNeverReturnsIsPartOfADeadlock) {
  if (under_tsan) GTEST_SKIP() << "silent under TSan";
  const ChildResult r = panic("handler_never_returns");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find("fatal error: all goroutines are asleep - deadlock!\n"), 0u) << r;
  if (has_symbols) {
    EXPECT_TRUE(r.err_has("panic_child.cc:")) << r;
  }
}

}  // namespace
