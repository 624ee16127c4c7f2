// Threads stay few, whatever goroutines do, and everything goes on.
// gofer-test: stress
//
// A goroutine keeps its thread while it is paused, and while it sleeps in a call or a lock. Each
// case is a program of its own (programs/crowd_child.cc, programs/storm_child.cc), which counts its
// threads: a process that has had many keeps some of them for a while. A case that makes no
// progress ends at its limit of time, which is ten times what it should need.
//
// With GOFER_TEST_PRELOAD=LIBRARY, the storms run with the malloc of that library.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#include "runtime/base/sanitizer.h"
#include "support/beside.h"
#include "support/child.h"
#include "support/model_gm.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using test::ChildResult;
using test::count_of;
using test::run_child;

// Everything takes that much longer under a sanitizer.
constexpr int slowdown = internal::sanitizers_enabled ? 5 : 1;

// A figure that the child printed, as "name=value".
long figure(const ChildResult& r, const std::string& name) {
  const std::string key = "\n" + name + "=";
  const std::string text = "\n" + r.out;
  const std::size_t at = text.find(key);
  if (at == std::string::npos) {
    ADD_FAILURE() << name << " is not there: " << r;
    return -1;
  }
  return std::atol(text.c_str() + at + key.size());
}

void expect_completed(const ChildResult& r) {
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_TRUE(r.out_has("completed\n")) << r;
}

void expect_at_most(int threads, const ChildResult& r) {
  if (!r.out_has("completed\n")) return;  // reported already
  const long had = figure(r, "threads");
  testing::Test::RecordProperty("threads", static_cast<int>(had));
  EXPECT_LE(had, threads);
}

ChildResult crowd(const std::string& scenario, std::chrono::seconds limit = 60s, int burners = 0) {
  return run_child("crowd_child", {scenario, std::to_string(burners)}, {}, limit * slowdown);
}

// The case ends as it should, with at most that many threads.
void expect_crowd(const std::string& scenario, int threads, std::chrono::seconds limit = 60s) {
  const ChildResult r = crowd(scenario, limit);
  expect_completed(r);
  expect_at_most(threads, r);
}

class PausedThreads : public testing::Test {
 protected:
  void SetUp() override {
    if (internal::tsan_enabled) GTEST_SKIP() << "no thread is paused in this build";
  }
  // All threads of a process whose goroutines compute.
  static int few() { return 150 + 4 * gomaxprocs(0); }
};

// ---------------------------------------------------------------- goroutines that compute

TEST_F(PausedThreads, AreFewIfHundredsOfGoroutinesCompute) { expect_crowd("compute", few()); }

TEST_F(PausedThreads, AreNoMoreAfterTheFourthWaveThanAfterTheFirst) {
  expect_crowd("compute_in_waves", few());
}

TEST_F(PausedThreads, AreFewBesideATicker) {
  const ChildResult r = crowd("compute_beside_ticker");
  expect_completed(r);
  expect_at_most(few(), r);
  EXPECT_LE(figure(r, "late_p50_us"), 50'000);
}

TEST_F(PausedThreads, AreFewIfTimersWakeGoroutinesThatCompute) {
  const ChildResult r = crowd("compute_after_timers");
  expect_completed(r);
  expect_at_most(few(), r);
  EXPECT_LE(figure(r, "late_p50_us"), 50'000);
  // 100 ms on a quiet machine; the kernel adds to that whatever else runs.
  if (!test::model_gm()) {
    EXPECT_LE(figure(r, "late_max_us"), 3'000'000);
  }
}

// Every spinner needs a turn before the setter, so the thread of each is paused.
TEST_F(PausedThreads, DoNotKeepALateSetterFromRunning) {
  expect_completed(crowd("late_setter", 20s));
}

// The runtime knows these for spinners, and lets few of them be paused at first.
TEST_F(PausedThreads, DoNotKeepALateSetterFromRunningIfOthersSpin) {
  expect_completed(crowd("late_setter_for_spinners", 20s));
}

TEST_F(PausedThreads, DoNotKeepALateSetterFromRunningBesideATicker) {
  expect_completed(crowd("late_setter_beside_ticker", 50s));
}

void expect_short_wait(const std::string& scenario) {
  const ChildResult r = crowd(scenario);
  expect_completed(r);
  EXPECT_LE(figure(r, "waited_p50_us"), 3'000'000);
}

TEST_F(PausedThreads, DoNotKeepShortGoroutinesWaiting) {
  expect_short_wait("short_beside_computing");
}

TEST_F(PausedThreads, DoNotKeepShortGoroutinesWaitingIfTheySpin) {
  expect_short_wait("short_beside_spinners");
}

// ---------------------------------------------------------------- goroutines that want one lock

constexpr int not_thousands = 2500;

TEST(CrowdAtALock, OfAMutexThatIsHeldForLong) { expect_crowd("mutex_crowd", not_thousands); }

// The room of the crowd grows all the time, up to the limit of threads.
TEST(CrowdAtALock, OfAMutexThatIsHeldForVeryLongReachesTheLimitOfThreadsAndGoesOn) {
  if (test::stress_time() == 0s) GTEST_SKIP() << "takes as long as a stress run";
  if (internal::sanitizers_enabled) GTEST_SKIP() << "too few goroutines for that";
  expect_completed(crowd("mutex_crowd_for_a_minute", 150s));
}

TEST(CrowdAtALock, OfACallOnceThatTakesLong) { expect_crowd("once_crowd", not_thousands); }

TEST(CrowdAtALock, OfAFileThatIsAFullPipe) { expect_crowd("printf_crowd", not_thousands); }

TEST(CrowdAtALock, OfTheKernelForAFullPipe) { expect_crowd("write_crowd", not_thousands); }

// These need a thread each, and get it.
TEST(CrowdAtALock, OfAConditionVariableUntilTheLastArrives) {
  expect_completed(crowd("condition_variable_crowd", 100s));
}

TEST(CrowdAtALock, OfASemaphoreUntilTheLastArrives) {
  expect_completed(crowd("semaphore_crowd", 100s));
}

TEST(CrowdInACall, UntilTheLastArrivesDoesNotWaitForOthersThatGoFromCallToCall) {
  expect_completed(crowd("reader_crowd_beside_calls", 25s));
}

TEST(CrowdAtALock, EndsIfTheOwnerWaitsForAGoroutineBehindTheCrowd) {
  expect_completed(crowd("holder_behind_lockers", 10s));
}

// One after the other, the sleeps would take 100 s; with a thread for each goroutine 0.2 s.
TEST(Sleepers, ThatSayNothingSleepAtTheSameTime) {
  expect_completed(crowd("unannounced_sleeps", 10s));
}

// ---------------------------------------------------------------- a machine that is busy

enum class Takes { little, long_enough_for_stress_only };
constexpr int any_number = 100'000;

struct BusyCase {
  const char* scenario;
  int threads;
  Takes takes = Takes::long_enough_for_stress_only;
};

void PrintTo(const BusyCase& c, std::ostream* out) { *out << c.scenario; }

// Two processes burn the cores, so that a thread loses its core anywhere and for long.
class BesideBurners : public PausedThreads, public testing::WithParamInterface<BusyCase> {};

TEST_P(BesideBurners, TheSameHolds) {
  const auto [scenario, threads, takes] = GetParam();
  if (takes != Takes::little && test::stress_time() == 0s) GTEST_SKIP() << "in stress runs only";
  const ChildResult r = crowd(scenario, 120s, 2);
  expect_completed(r);
  expect_at_most(threads, r);
}

INSTANTIATE_TEST_SUITE_P(
    Crowd, BesideBurners,
    testing::Values(BusyCase{"compute", 182},
                    BusyCase{"holder_behind_lockers", any_number, Takes::little},
                    BusyCase{"unannounced_sleeps", any_number, Takes::little},
                    BusyCase{"compute_beside_ticker", 182}, BusyCase{"compute_after_timers", 182},
                    BusyCase{"late_setter", any_number},
                    BusyCase{"late_setter_for_spinners", any_number},
                    BusyCase{"late_setter_beside_ticker", any_number},
                    BusyCase{"late_setter_beside_sleepers_that_compute", any_number},
                    BusyCase{"mutex_crowd", not_thousands}, BusyCase{"once_crowd", not_thousands},
                    BusyCase{"printf_crowd", not_thousands}, BusyCase{"write_crowd", not_thousands},
                    BusyCase{"condition_variable_crowd", any_number},
                    BusyCase{"reader_crowd_beside_calls", any_number}),
    [](const auto& info) { return std::string(info.param.scenario); });

// ---------------------------------------------------------------- the limit of threads

// What the runtime does by its own decision never ends the program. It may say once that it does
// less of it.
void expect_harmless_at_limit(const std::string& scenario) {
  const ChildResult r = crowd(scenario);
  expect_completed(r);
  expect_at_most(50 + 8, r);  // those of the runtime itself, and main, do not count
  EXPECT_LE(count_of(r.err, "\n"), 1) << r;
}

TEST_F(PausedThreads, StopGrowingAtTheLimit) { expect_harmless_at_limit("limit_compute"); }

TEST(ThreadLimit, IsNoMatterToGoroutinesThatComputeIfItIsGomaxprocs) {
  expect_harmless_at_limit("limit_of_procs");
}

TEST(ThreadLimit, IsNoMatterToACrowdAtALock) { expect_harmless_at_limit("limit_lock"); }

TEST(ThreadLimit, IsNoMatterToUnannouncedCalls) { expect_harmless_at_limit("limit_sleep"); }

TEST(ThreadLimit, IsNoMatterToAllOfThemAtOnce) {
  if (internal::tsan_enabled) GTEST_SKIP() << "no thread is paused in this build";
  expect_harmless_at_limit("limit_mixed");
}

TEST_F(PausedThreads, OfBoundGoroutinesGoOnWhileAllOthersSleepAtTheirLock) {
  expect_completed(crowd("limit_bound_owner"));
}

TEST_F(PausedThreads, GetTheProcessorsThatAreAdded) { expect_completed(crowd("limit_more_procs")); }

// What the user asked for is another matter.
void expect_fatal_at_limit(const std::string& scenario) {
  const ChildResult r = crowd(scenario);
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_TRUE(
      r.err_has("runtime: program exceeds 50-thread limit\nfatal error: thread exhaustion\n"))
      << r;
  EXPECT_EQ(count_of(r.err, "runtime: program exceeds"), 1) << r;
}

TEST(ThreadLimit, IsFatalToAnnouncedCalls) { expect_fatal_at_limit("limit_blocking"); }

TEST(ThreadLimit, IsFatalToCallsThatHandOff) { expect_fatal_at_limit("limit_handoff"); }

TEST(ThreadLimit, IsFatalToGoroutinesThatLockTheirThreads) { expect_fatal_at_limit("limit_bound"); }

// ---------------------------------------------------------------- locks without an owner

// The library whose malloc the children use, or "".
std::string preloaded() {
  const char* library = std::getenv("GOFER_TEST_PRELOAD");
  return library != nullptr ? library : "";
}

class Storm : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (preloaded().empty()) return;
    const ChildResult r = run_child("storm_child", {"allocator"}, environment());
    if (!r.out_has(preloaded())) GTEST_SKIP() << "not installed: " << preloaded();
  }
  static std::vector<std::string> environment() {
    if (preloaded().empty()) return {};
    return {"LD_PRELOAD=" + preloaded()};
  }
};

// A goroutine that is paused with such a lock must not send all others to sleep on a thread of
// its own, nor let all others spin until it gets its turn behind them.
TEST_P(Storm, TakesFewThreads) {
  const ChildResult r = run_child("storm_child", {GetParam()}, environment(), 60s * slowdown);
  expect_completed(r);
  // A core for each P would take no more; others may have to wait for one with a lock.
  expect_at_most(gomaxprocs(0) <= 2 ? 100 : 150 + 4 * gomaxprocs(0), r);
}

INSTANTIATE_TEST_SUITE_P(Of, Storm,
                         testing::Values("allocate", "throw", "printf", "regex", "iostream",
                                         "static", "spin_lock", "atomic_wait",
                                         "skynet_beside_burners"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace gofer
