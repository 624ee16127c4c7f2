// Reports that end the process: deadlock, uncaught exceptions, stack overflow, misuse. Each runs in
// a child process, whose output and end are looked at.
#include <gtest/gtest.h>
#include <signal.h>

#include <regex>
#include <string>

#include "support/child.h"
#include "support/report.h"

namespace {

using namespace gofer::test;

// ---- Deadlock

constexpr const char* asleep = "fatal error: all goroutines are asleep - deadlock!\n";

class Deadlock : public testing::Test {
 protected:
  void SetUp() override {
    // A thread of TSan's own is always there, and might do anything.
    if (under_tsan) GTEST_SKIP() << "silent under TSan";
  }
};

ChildResult deadlock(const std::string& scenario, std::vector<std::string> environment = {}) {
  return run_child("deadlock_child", {scenario}, environment);
}

int waiting_goroutines(const ChildResult& r) { return count_of(r.err, " [sync.WaitGroup.Wait"); }

TEST_F(Deadlock, OfTheMainGoroutineAloneIsReported) {
  const ChildResult r = deadlock("main_only");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find(std::string(asleep) + "\ngoroutine 1 [sync.WaitGroup.Wait]:\n"), 0u) << r;
  EXPECT_EQ(waiting_goroutines(r), 1) << r;
}

TEST_F(Deadlock, ShowsWhereEveryGoroutineWaits) {
  const ChildResult r = deadlock("all_waiting");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find(asleep), 0u) << r;
  EXPECT_EQ(waiting_goroutines(r), 4) << r;
  if (!has_symbols) return;
  EXPECT_EQ(count_of(r.err, "wait_quietly(...)\n\t"), 3) << r;
  EXPECT_EQ(count_of(r.err, "wait_for_ever(...)\n\t"), 1) << r;
  EXPECT_TRUE(r.err_has(announced_line(r, "deadlock_child.cc", "wait") + " +0x")) << r;
}

TEST_F(Deadlock, ShowsTheCreatorOfEachGoroutine) {
  if (!has_symbols) GTEST_SKIP() << "no symbols";
  const ChildResult r = deadlock("all_waiting");
  const std::regex created(
      "created by start_waiters in goroutine 1\n\t[^\n]*deadlock_child\\.cc:[0-9]+ \\+0x");
  const auto begin = std::sregex_iterator(r.err.begin(), r.err.end(), created);
  EXPECT_EQ(std::distance(begin, std::sregex_iterator()), 3) << r;
}

TEST_F(Deadlock, ShowsAThousandGoroutines) {
  const ChildResult r = run_child("deadlock_child", {"thousand"}, {}, std::chrono::seconds(120));
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(waiting_goroutines(r), 1001) << r;
  EXPECT_EQ(count_of(r.err, "\ngoroutine "), 1001) << r;
}

TEST_F(Deadlock, IsSeenWhenGoroutinesAreLockedToThreads) {
  const ChildResult r = deadlock("locked");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find(asleep), 0u) << r;
  EXPECT_EQ(count_of(r.err, " [sync.WaitGroup.Wait, locked to thread]:\n"), 3) << r;
  EXPECT_EQ(waiting_goroutines(r), 4) << r;
}

TEST_F(Deadlock, IsSeenWhenTheMainGoroutineIsLockedToItsThread) {
  const ChildResult r = deadlock("main_locked");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_TRUE(r.err_has("goroutine 1 [sync.WaitGroup.Wait, locked to thread]:\n")) << r;
  EXPECT_EQ(waiting_goroutines(r), 3) << r;
}

// The last thread that worked ends instead of going to sleep, after the others have slept long.
TEST_F(Deadlock, IsSeenWhenTheLastThreadAtWorkEnds) {
  const ChildResult r = deadlock("locked_ends_last", {with_debug("idlems=20")});
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find(asleep), 0u) << r;
}

TEST_F(Deadlock, ShowsNamesAndGoroutinesWithLargeStacks) {
  ChildResult r = deadlock("named");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_TRUE(r.err_has(" \"reader\" [sync.WaitGroup.Wait]:\n")) << r;
  r = deadlock("large_stack");
  EXPECT_TRUE(r.exited_with(2)) << r;
  if (has_symbols) {
    EXPECT_EQ(count_of(r.err, "wait_quietly(...)\n"), 1) << r;
  }
}

TEST_F(Deadlock, IsCertainWhenOrdinaryThreadsWaitToo) {
  for (const char* scenario : {"thread_waits_too", "thread_waits_later", "many_threads_wait"}) {
    const ChildResult r = deadlock(scenario);
    EXPECT_TRUE(r.exited_with(2)) << scenario << ": " << r;
    EXPECT_EQ(r.err.find(asleep), 0u) << scenario << ": " << r;
  }
}

TEST_F(Deadlock, IsSeenOnceTheLastThreadThatMightHelpHasEnded) {
  const ChildResult r = deadlock("thread_ends");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find(asleep), 0u) << r;
}

// Idle threads of the runtime end in the meantime; another thread has to go on looking.
TEST_F(Deadlock, IsSeenEvenIfIdleThreadsHaveEndedBefore) {
  const ChildResult r = deadlock("thread_ends_late", {with_debug("idlems=50")});
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find(asleep), 0u) << r;
}

TEST_F(Deadlock, IsSeenInTheSecondRunToo) {
  ChildResult r = deadlock("second_run");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(waiting_goroutines(r), 3) << r;
  r = deadlock("two_runs");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(waiting_goroutines(r), 2) << r;
  r = deadlock("run_in_goroutine");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(count_of(r.err, "\ngoroutine "), 2) << r;
}

TEST_F(Deadlock, EndsTheProcessEvenIfTheReportHasNoReader) {
  const ChildResult r = deadlock("stderr_closed");
  EXPECT_TRUE(r.exited_with(2)) << r;
}

TEST_F(Deadlock, AfterGoexitOfMainHasItsOwnTextIfNoGoroutineIsLeft) {
  const ChildResult r = deadlock("goexit_others_finish");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find("fatal error: no goroutines (main called runtime.Goexit) - deadlock!\n"), 0u)
      << r;
  EXPECT_EQ(count_of(r.err, "goroutine "), 0) << r;
  EXPECT_EQ(r.out, "") << r;
}

TEST_F(Deadlock, AfterGoexitOfMainShowsTheSleepingGoroutines) {
  const ChildResult r = deadlock("goexit_others_wait");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find(asleep), 0u) << r;
  EXPECT_EQ(waiting_goroutines(r), 2) << r;
}

// Silence: also under TSan.

TEST(NoDeadlock, WhileAThreadMayStillHelp) {
  const ChildResult r = deadlock("thread_releases");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.err, "") << r;
  EXPECT_TRUE(r.out_has("completed\n")) << r;
}

TEST(NoDeadlock, WhileThreadsComeAndGo) {
  const ChildResult r = deadlock("thread_relay");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.err, "") << r;
  EXPECT_TRUE(r.out_has("completed\n")) << r;
}

TEST(NoDeadlock, WhileAGoroutineIsInASystemCall) {
  const ChildResult r = deadlock("goroutine_in_system_call");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.err, "") << r;
  EXPECT_TRUE(r.out_has("completed\n")) << r;
}

TEST(NoDeadlock, WhileAThreadSleepsOutsideOfTheRuntime) {
  const ChildResult r = deadlock("thread_sleeps");
  EXPECT_TRUE(r.exited_with(7)) << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST(NoDeadlock, WithoutRun) {
  for (const char* scenario : {"not_running", "after_run"}) {
    const ChildResult r = deadlock(scenario);
    EXPECT_TRUE(r.exited_with(7)) << scenario << ": " << r;
    EXPECT_EQ(r.err, "") << scenario << ": " << r;
  }
}

// ---- Uncaught exceptions

ChildResult uncaught(const std::string& scenario) {
  return run_child("uncaught_child", {scenario});
}

TEST(UncaughtException, IsReportedWithItsTypeAndText) {
  const ChildResult r = uncaught("runtime_error");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.err.find("panic: std::runtime_error: boom\n\ngoroutine 1 [running]:\n"), 0u) << r;
}

TEST(UncaughtException, OfAnyTypeIsReported) {
  ChildResult r = uncaught("number");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.err.find("panic: int\n\n"), 0u) << r;
  r = uncaught("custom");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.err.find("panic: app::Custom\n\n"), 0u) << r;
  r = uncaught("derived");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.err.find("panic: app::Problem: two\nlines\n\n"), 0u) << r;
}

TEST(UncaughtException, WithALongTextIsReportedInFull) {
  const ChildResult r = uncaught("long_text");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_TRUE(r.err_has(std::string(5000, 'x') + "END\n\ngoroutine 1 [running]:\n")) << r;
}

// The report survives what() as it is: its type was written before, its trace comes after.
TEST(UncaughtException, IsReportedAlthoughItsTextCannotBeHad) {
  const struct {
    const char* scenario;
    const char* begin;
  } expected[] = {{"throwing_what", "panic: app::ThrowingWhat\n\n"},
                  {"waiting_what", "panic: app::WaitingWhat\n\n"},
                  {"waiting_what_locked", "panic: app::WaitingWhat\n\n"},
                  {"no_what", "panic: app::NoWhat\n\n"}};
  for (const auto& [scenario, begin] : expected) {
    const ChildResult r = uncaught(scenario);
    EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
    EXPECT_EQ(r.err.find(std::string(begin) + "goroutine 1 [running"), 0u) << r;
    EXPECT_EQ(count_of(r.err, "goroutine 1 [running"), 1) << r;
    if (!has_symbols) continue;
    EXPECT_TRUE(r.err_has(std::string(scenario) + "::{lambda")) << r;
    EXPECT_TRUE(r.err_has("created by in_goroutine")) << r;
  }
}

TEST(UncaughtException, ShowsTheStackFromTheThrowToTheStart) {
  if (!has_symbols) GTEST_SKIP() << "no symbols";
  const ChildResult r = uncaught("nested");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.err.find("panic: std::logic_error: deep\n\ngoroutine "), 0u) << r;
  const struct {
    const char* function;
    const char* line;
  } expected[] = {{"innermost(...)\n\t", "throw"},
                  {"middle(...)\n\t", "middle"},
                  {"outermost(...)\n\t", "outer"},
                  {"created by start_it in goroutine ", "go"}};
  std::size_t at = r.err.find(" [running]:\n");
  for (const auto& [function, line] : expected) {
    at = r.err.find(function, at);
    ASSERT_NE(at, std::string::npos) << function << r;
    at = r.err.find(announced_line(r, "uncaught_child.cc", line) + " +0x", at);
    ASSERT_NE(at, std::string::npos) << line << r;
  }
  EXPECT_TRUE(r.err_has("created by start_it in goroutine " + value_of(r, "parent") + "\n")) << r;
}

TEST(UncaughtException, NamesItsGoroutine) {
  const ChildResult r = uncaught("named");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_TRUE(r.err_has("goroutine " + value_of(r, "id") + " \"the reader\" [running]:\n")) << r;
}

TEST(UncaughtException, InTheMainGoroutineIsReported) {
  const ChildResult r = uncaught("in_main_goroutine");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.err.find("panic: std::runtime_error: from main\n\ngoroutine 1 [running]:\n"), 0u)
      << r;
}

TEST(UncaughtException, InALockedGoroutineIsReported) {
  const ChildResult r = uncaught("locked");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_TRUE(r.err_has("goroutine 1 [running, locked to thread]:\n")) << r;
}

TEST(UncaughtException, IsTheRightOneAfterManySwitchesInACatchBlock) {
  const ChildResult r = uncaught("rethrown_after_switches");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.err.find("panic: std::runtime_error: kept\n\n"), 0u) << r;
}

TEST(UncaughtException, IsReportedOnceIfManyThrowAtTheSameTime) {
  const ChildResult r = uncaught("all_at_once");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(count_of(r.err, "panic: "), 1) << r;
  EXPECT_EQ(count_of(r.err, " [running]:"), 1) << r;
}

TEST(UncaughtException, IsReportedWithoutDescriptorsToReadSymbols) {
  if (under_asan) GTEST_SKIP() << "UBSan needs descriptors to look at memory";
  const ChildResult r = uncaught("no_descriptors");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.err.find("panic: std::runtime_error: boom\n\ngoroutine 1 [running]:\n"), 0u) << r;
  EXPECT_GE(count_of(r.err, "\n\t"), 1) << r;
}

TEST(UncaughtException, ThatMeetsNoexceptIsReported) {
  const ChildResult r = uncaught("through_noexcept");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.err.find("panic: std::logic_error: deep\n\n"), 0u) << r;
  if (has_symbols) {
    EXPECT_TRUE(r.err_has("refuses(...)\n")) << r;
  }
}

TEST(Terminate, WithoutAnExceptionIsReported) {
  const ChildResult r = uncaught("terminate");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.err.find("fatal error: std::terminate was called\n\ngoroutine 1 [running]:\n"), 0u)
      << r;
}

TEST(Terminate, InAnOrdinaryThreadIsTheProgramsOwnAffair) {
  ChildResult r = uncaught("handler_before_thread_throws");
  EXPECT_TRUE(r.exited_with(5)) << r;
  EXPECT_EQ(r.out, "own handler: in a thread\n") << r;
  r = uncaught("handler_before_main_throws");
  EXPECT_TRUE(r.exited_with(5)) << r;
  EXPECT_EQ(r.out, "own handler: in main\n") << r;
  r = uncaught("handler_after_thread_throws");
  EXPECT_TRUE(r.exited_with(5)) << r;
  EXPECT_EQ(r.out, "own handler: in a thread\n") << r;
}

TEST(Terminate, InAnOrdinaryThreadWithoutAHandlerAborts) {
  const ChildResult r = uncaught("no_handler_thread_throws");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_TRUE(r.err_has("terminate called after throwing an instance of 'std::runtime_error'"))
      << r;
  EXPECT_FALSE(r.err_has("panic:")) << r;
  if (under_asan || under_tsan) return;
  EXPECT_TRUE(r.err_has("fatal error: unexpected signal\n[signal SIGABRT: abort pc=0x")) << r;
  EXPECT_FALSE(r.err_has("goroutine")) << r;
}

// The handler sees the exception that was reported.
TEST(Terminate, InAGoroutineIsReportedBeforeTheProgramsHandlerIsCalled) {
  const ChildResult r = uncaught("handler_before_goroutine_throws");
  EXPECT_TRUE(r.exited_with(5)) << r;
  EXPECT_EQ(r.err.find("panic: std::runtime_error: in a goroutine\n\ngoroutine 1 [running]:\n"), 0u)
      << r;
  EXPECT_EQ(r.out, "own handler: in a goroutine\n") << r;
}

// ---- Misuse

TEST(Goexit, SwallowedByCatchAllIsFatal) {
  const ChildResult r = uncaught("goexit_swallowed");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find("fatal error: goexit() was swallowed by a catch (...)"), 0u) << r;
  EXPECT_EQ(r.out, "caught\n") << r;
  EXPECT_TRUE(r.err_has("goroutine 1 [running]:\n")) << r;
}

TEST(Goexit, MayPassACatchAllThatRethrows) {
  const ChildResult r = uncaught("goexit_rethrown");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "caught\n") << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST(Goexit, InACatchBlockEndsTheGoroutine) {
  const ChildResult r = uncaught("goexit_in_catch_block");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "completed\n") << r;
}

TEST(Goexit, ThatMeetsNoexceptIsFatal) {
  const ChildResult r = uncaught("goexit_through_noexcept");
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find("fatal error: "), 0u) << r;
  EXPECT_LT(r.err.find("goexit"), r.err.find('\n')) << r;
  EXPECT_TRUE(r.err_has("goroutine 1 [running]:\n")) << r;
}

TEST(Goexit, OutsideOfAGoroutineIsFatal) {
  for (const char* scenario : {"goexit_in_main_thread", "goexit_in_thread"}) {
    const ChildResult r = uncaught(scenario);
    EXPECT_TRUE(r.exited_with(2)) << scenario << ": " << r;
    EXPECT_EQ(r.err.find("fatal error: goexit() was called outside of a goroutine\n"), 0u)
        << scenario << ": " << r;
  }
}

TEST(WaitGroup, NegativeCounterIsFatalWithGosText) {
  for (const char* scenario :
       {"negative_in_goroutine", "negative_in_thread", "negative_with_waiter"}) {
    const ChildResult r = uncaught(scenario);
    EXPECT_TRUE(r.exited_with(2)) << scenario << ": " << r;
    EXPECT_EQ(r.err.find("panic: sync: negative WaitGroup counter\n\n"), 0u)
        << scenario << ": " << r;
  }
}

TEST(WaitGroup, NegativeCounterShowsTheCaller) {
  if (!has_symbols) GTEST_SKIP() << "no symbols";
  const ChildResult r = uncaught("negative_in_goroutine");
  EXPECT_TRUE(r.err_has("goroutine 1 [running]:\n")) << r;
  EXPECT_TRUE(r.err_has(announced_line(r, "uncaught_child.cc", "done"))) << r;
}

// ---- Stack overflow

ChildResult overflow(const std::string& scenario, const std::vector<std::string>& environment = {},
                     const std::string& argument = "") {
  return run_child("overflow_child", {scenario, argument}, environment);
}

constexpr const char* guards[] = {"guard=madvise", "guard=mprotect"};

void expect_overflow(const ChildResult& r, const std::string& limit) {
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.err.find("runtime: goroutine stack exceeds " + limit +
                       "-byte limit\nfatal error: stack overflow\n\ngoroutine "),
            0u)
      << r;
}

TEST(StackOverflow, IsReportedWithBothKindsOfGuard) {
  for (const char* guard : guards) {
    const ChildResult r = overflow("recursion", {with_debug(guard)});
    expect_overflow(r, "983040");
    EXPECT_TRUE(r.err_has("goroutine " + value_of(r, "id") + " [running]:\n")) << r;
  }
}

TEST(StackOverflow, ShowsTheRecursion) {
  if (!has_symbols || under_tsan) GTEST_SKIP() << "no symbols (TSan: none in a signal handler)";
  const ChildResult r = overflow("recursion");
  EXPECT_TRUE(r.err_has("go_down(...)\n\t")) << r;
  EXPECT_TRUE(r.err_has("overflow_child.cc:")) << r;
  EXPECT_TRUE(r.err_has("use_stack(...)\n\t")) << "who began it: " << r;
  EXPECT_TRUE(r.err_has("created by recursion\n\t")) << r;
}

TEST(StackOverflow, OfAStackOfItsOwnSizeIsReported) {
  for (const char* guard : guards) {
    const ChildResult r = overflow("sized", {with_debug(guard)});
    expect_overflow(r, "458752");
    EXPECT_TRUE(r.err_has("goroutine " + value_of(r, "id") + " \"small\" [running]:\n")) << r;
  }
}

TEST(StackOverflow, OfADefaultFromTheEnvironmentIsReported) {
  expect_overflow(overflow("recursion", {"GOFER_STACK_SIZE=64K"}), "65536");
  expect_overflow(overflow("recursion", {"GOFER_STACK_SIZE=3M"}), "4128768");
}

TEST(StackOverflow, OfTheMainGoroutineIsReported) {
  expect_overflow(overflow("main_goroutine"), "983040");
}

TEST(StackOverflow, OfALockedGoroutineIsReported) {
  const ChildResult r = overflow("locked");
  expect_overflow(r, "983040");
  EXPECT_TRUE(r.err_has("goroutine 1 [running, locked to thread]:\n")) << r;
}

TEST(StackOverflow, ByFramesLargerThanTheGuardIsReported) {
  for (const char* guard : guards)
    expect_overflow(overflow("large", {with_debug(guard)}), "983040");
}

// A frame of a library that was built without -fstack-clash-protection.
TEST(StackOverflow, ByOneStepOfManyMegabytesIsReported) {
  for (const char* guard : guards) {
    for (const char* bytes : {"983040", "1048576", "1100000", "2000000", "8388608", "15000000"}) {
      SCOPED_TRACE(std::string(guard) + " " + bytes);
      const ChildResult r = overflow("unprobed", {with_debug(guard)}, bytes);
      expect_overflow(r, "983040");
      EXPECT_FALSE(r.out_has("went on")) << r;
    }
  }
}

// TSan would report, and rightly, that the goroutine writes to its neighbours' stacks.
ChildResult overflow_without_guards(const std::string& scenario) {
  return overflow(scenario,
                  {with_debug("guard=none"), with_option("TSAN_OPTIONS", "report_bugs=0")});
}

TEST(StackOverflow, OfAStackWithoutGuardIsFoundWhenItIsLeft) {
  for (const char* scenario :
       {"below_and_back", "left_from_below", "below_at_the_end", "below_before_another"}) {
    SCOPED_TRACE(scenario);
    const ChildResult r = overflow_without_guards(scenario);
    expect_overflow(r, "983040");
    EXPECT_TRUE(r.err_has("goroutine " + value_of(r, "id") + " [running]:\n")) << r;
  }
}

TEST(StackOverflow, ThroughNeighboursEndsAtTheGuardThatTheyShare) {
  const ChildResult r = overflow_without_guards("recursion_through_neighbours");
  expect_overflow(r, "983040");
  EXPECT_TRUE(r.err_has("goroutine " + value_of(r, "id") + " [running]:\n")) << r;
}

TEST(StackOverflow, NamesTheGoroutineThatHasTheStackNow) {
  const ChildResult r = overflow("after_others");
  expect_overflow(r, "983040");
  EXPECT_TRUE(r.err_has("goroutine " + value_of(r, "id") + " [running]:\n")) << r;
}

TEST(StackOverflow, IsReportedOnceIfManyOverflowAtTheSameTime) {
  const ChildResult r = overflow("all_at_once");
  expect_overflow(r, "983040");
  EXPECT_EQ(count_of(r.err, "fatal error: "), 1) << r;
  EXPECT_EQ(count_of(r.err, " [running]:"), 1) << r;
}

TEST(StackOverflow, InsideOfMallocOrTheRuntimeOrTheUnwinderIsReported) {
  for (const char* scenario : {"in_malloc", "in_runtime", "in_throw"}) {
    SCOPED_TRACE(scenario);
    expect_overflow(overflow(scenario), "983040");
  }
}

TEST(StackOverflow, EndsByAbortEvenIfTheProgramHandlesThat) {
  expect_overflow(overflow("handler_of_abort"), "983040");
}

TEST(StackOverflow, IsReportedAlthoughTheProgramHandlesFaults) {
  const ChildResult r = overflow("own_handler_overflow");
  expect_overflow(r, "983040");
  EXPECT_FALSE(r.out_has("own handler")) << r;
}

TEST(StackOverflow, DoesNotHappenWithinTheSizeThatWasAskedFor) {
  for (const char* guard : guards) {
    for (const char* size : {"16384", "65536", "65537", "200000", "983040", "983041", "8000000"}) {
      const ChildResult r = overflow("nearly", {with_debug(guard)}, size);
      EXPECT_TRUE(r.exited_with(0)) << size << ": " << r;
      EXPECT_EQ(r.err, "") << size << ": " << r;
    }
  }
  const ChildResult r = overflow("nearly_default", {}, "983040");
  EXPECT_TRUE(r.exited_with(0)) << r;
}

}  // namespace
