// What belongs to a thread and does not survive a park: errno, locks of the C library; and signal
// handlers that call Gofer.
#include <fcntl.h>
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>

#include "runtime/base/assert.h"
#include "runtime/base/sanitizer.h"
#include "support/child.h"
#include "support/scaled.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using test::ChildResult;
using test::run_child;
using test::scaled;

const std::string check_library = GOFER_TEST_PROGRAMS "/../../lib/libgofer_check.so";

ChildResult checked(const char* scenario, const char* mode = "GOFER_CHECK_PARKS") {
  return run_child("parking_child", {scenario},
                   {"LD_PRELOAD=" + check_library, "GOMAXPROCS=4", mode});
}

// One function, so that a compiler that keeps the address of errno keeps it here.
int wrong_errors() {
  int wrong = 0;
  for (int i = 0; i < scaled(500); ++i) {
    set_last_error(0);
    if (i % 2 == 0) {
      sleep_for(10us);
    } else {
      yield();
    }
    wrong += ::close(-1) == 0 || last_error() != EBADF;
    wrong += ::open("", O_RDONLY) >= 0 || last_error() != ENOENT;
  }
  return wrong;
}

TEST(Parking, LastErrorIsThatOfTheThreadOnWhichTheGoroutineIs) {
  std::atomic<int> wrong{0};
  wait_group wg;
  for (int i = 0; i < 32; ++i) wg.go([&] { wrong += wrong_errors(); });
  wg.wait();
  EXPECT_EQ(wrong, 0);
}

TEST(Parking, CheckReportsAMutexThatIsHeldAcrossAPark) {
  if (internal::sanitizers_enabled) GTEST_SKIP() << "a sanitizer has to be loaded first";
  const ChildResult r = checked("holds_mutex");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "moved\n");
  EXPECT_EQ(r.err.find("gofer check: the mutex at 0x"), 0u) << r;
  EXPECT_TRUE(r.err_has(" is unlocked by thread ")) << r;
  EXPECT_TRUE(r.err_has("parking_child(")) << r;
}

TEST(Parking, CheckReportsAReadWriteLock) {
  if (internal::sanitizers_enabled) GTEST_SKIP() << "a sanitizer has to be loaded first";
  const ChildResult r = checked("holds_shared_mutex");
  EXPECT_EQ(r.err.find("gofer check: the read-write lock at 0x"), 0u) << r;
}

TEST(Parking, CheckEndsTheProcessOnRequest) {
  if (internal::sanitizers_enabled) GTEST_SKIP() << "a sanitizer has to be loaded first";
  const ChildResult r = checked("holds_mutex", "GOFER_CHECK_PARKS=abort");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.out, "") << r;
}

TEST(Parking, CheckEndsTheProcessAlsoIfItCannotReport) {
  if (internal::sanitizers_enabled) GTEST_SKIP() << "a sanitizer has to be loaded first";
  const ChildResult r = checked("holds_mutex_with_full_stderr", "GOFER_CHECK_PARKS=abort");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.out, "") << r;
}

TEST(Parking, CheckSaysNothingInTheChildOfAFork) {
  if (internal::sanitizers_enabled) GTEST_SKIP() << "a sanitizer has to be loaded first";
  const ChildResult r = checked("unlocks_in_child_of_fork", "GOFER_CHECK_PARKS=abort");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "unlocked\n");
  EXPECT_EQ(r.err, "") << r;
}

TEST(Parking, CheckSaysNothingOfLocksThatAreUsedWell) {
  if (internal::sanitizers_enabled) GTEST_SKIP() << "a sanitizer has to be loaded first";
  for (const char* scenario : {"holds_gofer_mutex", "releases"}) {
    const ChildResult r = checked(scenario);
    EXPECT_TRUE(r.exited_with(0)) << r;
    EXPECT_EQ(r.err, "") << r;
  }
}

TEST(SignalHandler, ThatCallsGoferIsReportedInACheckedBuild) {
  if (!internal::checks_enabled) GTEST_SKIP() << "checked in builds with GOFER_CHECKS only";
  if (internal::sanitizers_enabled) GTEST_SKIP() << "TSan delays signals";
  for (const char* scenario : {"handler_on_signal_stack", "handler_inside"}) {
    const ChildResult r = run_child("parking_child", {scenario});
    EXPECT_TRUE(r.exited_with(2)) << r;
    EXPECT_EQ(r.err.find("fatal error: a signal handler called Gofer"), 0u) << r;
    EXPECT_EQ(r.out, "") << r;
  }
}

}  // namespace
}  // namespace gofer
