// What goroutines do to their threads by calls of libc, and what threads and processes inherit.
// Each in a child process.
#include <gtest/gtest.h>
#include <signal.h>

#include "support/child.h"
#include "support/report.h"

namespace {

using namespace gofer::test;

ChildResult run(const std::string& scenario) { return run_child("thread_calls_child", {scenario}); }

// Sanitizers have functions of their own in place of these calls.
class ThreadCalls : public testing::Test {
 protected:
  void SetUp() override {
    if (under_asan || under_tsan) GTEST_SKIP() << "the calls are the sanitizer's";
  }
};

using SignalMask = ThreadCalls;
using SignalStack = ThreadCalls;

TEST_F(SignalMask, OfAGoroutineEndsWithIt) {
  const ChildResult r = run("mask_ends_with_goroutine");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "SIGTERM=0 SIGHUP=0 SIGUSR1=0 SIGURG=0\n") << r;
}

TEST_F(SignalMask, BelongsToTheGoroutineWhileItParks) {
  const ChildResult r = run("mask_belongs_to_goroutine");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "others=0\nown=1 moved=0\nlater=0\n") << r;
}

TEST_F(SignalMask, ThatIsRestoredDoesNotBindItsGoroutine) {
  const ChildResult r = run("mask_that_is_restored_binds_nobody");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "threads=few\n") << r;
}

TEST_F(SignalStack, OfTheRuntimeStaysWhenAGoroutineInstallsASmallOne) {
  const ChildResult r = run("small_signal_stack");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.out, "kept=1\n") << r;
  EXPECT_TRUE(r.err_has("fatal error: stack overflow\n")) << r;
  EXPECT_TRUE(r.err_has("frames elided")) << r;
}

TEST_F(SignalStack, IsRefusedToAGoroutineWithTheErrorsOfTheKernel) {
  const ChildResult r = run("answers_for_signal_stack");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_TRUE(r.out_has("same=1 kept=1\n")) << r;
}

TEST_F(SignalStack, OfAGoroutineThatIsBoundIsItsOwn) {
  const ChildResult r = run("bound_signal_stack");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "taken=1\n") << r;
}

TEST(EndOfThread, UnderAGoroutineIsAFatalErrorThatNamesTheGoroutine) {
  if (under_asan || under_tsan) GTEST_SKIP() << "sanitizers are not told that the stack is left";
  for (const char* scenario : {"pthread_exit_in_goroutine", "cancelled_goroutine"}) {
    const ChildResult r = run(scenario);
    EXPECT_TRUE(r.exited_with(2)) << scenario << ": " << r;
    EXPECT_EQ(r.err.find("fatal error: the thread of a goroutine was ended by pthread_exit"), 0u)
        << scenario << ": " << r;
    EXPECT_TRUE(r.err_has("goroutine 2 [running]:\n")) << scenario << ": " << r;
  }
}

TEST(CancelledThread, GetsTheValueThatItWaitsForAndEndsAtTheNextCancellationPoint) {
  const ChildResult r = run("cancelled_thread");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "got=7 cancelled=1 went_on=0\n") << r;
}

TEST(Children, OfGoroutinesInheritTheUsualTimerSlackAndTheProgramsName) {
  const ChildResult r = run("children");
  EXPECT_TRUE(r.exited_with(0)) << r;
  const std::string usual = value_of(r, "usual");
  for (const char* who : {"goroutine", "thread", "fork", "spawned"}) {
    EXPECT_EQ(value_of(r, who), usual) << who << ": " << r;
  }
  for (const char* who : {"goroutine_name", "thread_name", "fork_name"}) {
    EXPECT_EQ(value_of(r, who), "thread_calls_ch") << who << ": " << r;
  }
}

TEST(FirstCall, OnTheSmallestStackThatThereIsStartsTheRuntime) {
  if (under_asan || under_tsan) GTEST_SKIP() << "sanitizers need more stack themselves";
  const ChildResult r = run("first_call_on_small_stack");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "got=7\n") << r;
}

}  // namespace
