// What works where the kernel gives less: no membarrier, no /proc, no signals.
// gofer-test: once
#include <gtest/gtest.h>

#include <string>

#include "runtime/base/sanitizer.h"
#include "support/child.h"

namespace gofer::test {
namespace {

void expect_others_run(const std::string& scenario, const std::string& debug) {
  const ChildResult r =
      run_child("fallback_child", {scenario}, {"GOMAXPROCS=1", "GOFER_DEBUG=" + debug});
  EXPECT_TRUE(r.exited_with(0)) << scenario << " with " << debug << ": " << r;
  EXPECT_EQ(r.out, "others ran\ncompleted\n") << scenario << " with " << debug << ": " << r;
}

TEST(Fallback, NoneNeeded) {
  for (const char* scenario : {"blocked", "announced"}) expect_others_run(scenario, "membarrier=1");
  if (!internal::tsan_enabled) expect_others_run("computing", "membarrier=1");
}

// A processor can be taken from a thread by a signal then, which the thread's call survives.
TEST(Fallback, WithoutMembarrier) {
  if (internal::tsan_enabled) GTEST_SKIP() << "no signals under TSan";
  for (const char* scenario : {"blocked", "announced", "computing"}) {
    expect_others_run(scenario, "membarrier=0");
  }
}

// Then a thread that uses no processor time is taken for one that sleeps.
TEST(Fallback, WithoutProc) {
  for (const char* scenario : {"blocked", "announced"}) expect_others_run(scenario, "procfs=0");
  if (!internal::tsan_enabled) expect_others_run("computing", "procfs=0");
}

TEST(Fallback, WithoutEither) {
  if (internal::tsan_enabled) GTEST_SKIP() << "no signals under TSan";
  for (const char* scenario : {"blocked", "announced", "computing"}) {
    expect_others_run(scenario, "membarrier=0,procfs=0");
  }
}

TEST(Fallback, WithoutSignalsBlockedThreadsStillLoseTheirProcessor) {
  for (const char* scenario : {"blocked", "announced"}) {
    expect_others_run(scenario, "asyncpreemptoff=1");
  }
}

}  // namespace
}  // namespace gofer::test
