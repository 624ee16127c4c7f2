// What the process around the runtime does to it: a broken libdw, a sanitizer that the runtime does
// not know, what is left on stacks. Each in a child process.
#include <gtest/gtest.h>
#include <signal.h>

#include "support/child.h"
#include "support/report.h"

namespace {

using namespace gofer::test;

class BrokenSymbols : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_symbols) GTEST_SKIP() << "no symbols";
    if (under_asan || under_tsan) GTEST_SKIP() << "the fault is the sanitizer's";
  }
};

// Every frame has its module and offset instead of a name and line.
void expect_plain(const ChildResult& r, int goroutines) {
  EXPECT_TRUE(r.err_has("broken_symbols_child+0x")) << r;
  EXPECT_FALSE(r.err_has("broken_symbols_child.cc:")) << r;
  EXPECT_EQ(count_of(r.err, "\ngoroutine "), goroutines) << r;
}

TEST_F(BrokenSymbols, LeaveAReportWithAddresses) {
  const ChildResult r = run_child("broken_symbols_child", {"fatal"});
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find("panic: sync: negative WaitGroup counter\n\ngoroutine 2 [running]:\n"), 0u)
      << r;
  EXPECT_TRUE(r.err_has("created by ")) << r;
  expect_plain(r, 1);
}

TEST_F(BrokenSymbols, LeaveAReportOfEveryGoroutine) {
  const ChildResult r = run_child("broken_symbols_child", {"deadlock"});
  EXPECT_TRUE(r.exited_with(2)) << r;
  expect_plain(r, 2);
}

TEST_F(BrokenSymbols, LeaveTheReportOfAStackOverflow) {
  const ChildResult r = run_child("broken_symbols_child", {"overflow"});
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_TRUE(r.err_has("fatal error: stack overflow\n")) << r;
  EXPECT_TRUE(r.err_has("frames elided")) << r;
  expect_plain(r, 1);
}

TEST(Sanitizer, ThatTheRuntimeIsNotBuiltForIsNamedOnceWithTheOption) {
  if (under_asan || under_tsan) GTEST_SKIP() << "built for it";
  const ChildResult r = run_child("sanitizer_mismatch_child");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "completed\n") << r;
  EXPECT_EQ(count_of(r.err, "-DGOFER_SANITIZE=address\n"), 1) << r;
  EXPECT_EQ(count_of(r.err, "-DGOFER_SANITIZE=thread\n"), 1) << r;
  EXPECT_EQ(count_of(r.err, "\n"), 2) << r;
}

TEST(Stack, HasNothingOfEarlierGoroutinesWithZerostacks) {
  if (under_asan || under_tsan) GTEST_SKIP() << "sanitizers do not start goroutines on used stacks";
  const ChildResult r = run_child("stale_stack_child", {}, {with_debug("zerostacks=1")});
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "found=none\n") << r;
  EXPECT_EQ(r.err, "") << r;
  // Else the test above would show nothing.
  const ChildResult usual = run_child("stale_stack_child", {}, {"GOMAXPROCS=1"});
  EXPECT_EQ(usual.out, "found=some\n") << usual;
}

}  // namespace
