// Waiting until goroutines have ended, or at least sleep; and tests that leave none behind.
#pragma once

#include <gofer/debug.h>
#include <gofer/go.h>
#include <gofer/wait_group.h>
#include <gtest/gtest.h>

#include "support/wait_until.h"

namespace gofer::test {

/// started.go(f) is for goroutines for which the test does not wait itself.
inline wait_group started;

/// All goroutines have ended. What those of `started` did can be seen then; the plain writes of
/// others cannot: tests that look at more than atomics wait for a wait_group.
[[nodiscard]] inline bool quiescent() {
  started.wait();
  return wait_until([] { return num_goroutine() == 0; });
}

/// To be asked by a thread: no goroutine runs or can run.
[[nodiscard]] inline bool all_asleep() {
  return wait_until([] {
    const scheduler_stats s = stats();
    return s.idle_procs == s.gomaxprocs && s.global_queue == 0;
  });
}

/// Tests that begin and end without goroutines.
class QuiescentTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(quiescent()) << num_goroutine(); }
  void TearDown() override { EXPECT_TRUE(quiescent()) << num_goroutine(); }
};

}  // namespace gofer::test
