// How a program with goroutines ends: main returns, exit() and its relatives, threads that end,
// fork(). Each in a child process.
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "support/child.h"
#include "support/report.h"

namespace {

using namespace gofer::test;

ChildResult ends(const std::string& scenario) { return run_child("ends_child", {scenario}); }

// Static objects, in the reverse order of their construction, each once.
constexpr const char* destroyed = "late destroyed\nearly destroyed\n";

// ---- main returns

TEST(MainReturns, WithGoroutinesInAnyStateEndsTheProcessWithItsCode) {
  for (const char* scenario :
       {"return_idle", "return_parked", "return_yielding", "return_spawning", "return_spinning"}) {
    const ChildResult r = ends(scenario);
    EXPECT_TRUE(r.exited_with(4)) << scenario << ": " << r;
    EXPECT_EQ(r.out, destroyed) << scenario << ": " << r;
    EXPECT_EQ(r.err, "") << scenario << ": " << r;
  }
}

TEST(MainReturns, WithGoroutinesLockedToThreads) {
  const ChildResult r = ends("return_with_locked");
  EXPECT_TRUE(r.exited_with(4)) << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST(MainReturns, WhatRunReturned) {
  const ChildResult r = ends("return_from_run");
  EXPECT_TRUE(r.exited_with(4)) << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST(MainReturns, AndStaticObjectsMayStillCallTheRuntime) {
  const ChildResult r = ends("statics_use_runtime");
  EXPECT_TRUE(r.exited_with(4)) << r;
  EXPECT_EQ(count_of(r.out, "goroutines: counted\n"), 2) << r;
  EXPECT_TRUE(r.out_has("late used the runtime\n")) << r;
  EXPECT_TRUE(r.out_has("early used the runtime\n")) << r;
  EXPECT_EQ(r.err, "") << r;
}

// While goroutines start goroutines, threads end, Ps come and go: whatever they are at.
TEST(MainReturns, AtAnyMoment) {
  for (int i = 0; i < 6; ++i) {
    for (const char* scenario :
         {"return_spawning", "return_with_ending_threads", "return_resizing"}) {
      const ChildResult r = ends(scenario);
      ASSERT_TRUE(r.exited_with(4)) << scenario << ": " << r;
      ASSERT_EQ(r.err, "") << scenario << ": " << r;
    }
  }
}

TEST(MainThreadEnds, AndTheGoroutinesGoOn) {
  const ChildResult r = ends("main_thread_ends");
  EXPECT_TRUE(r.exited_with(6)) << r;
  EXPECT_TRUE(r.out_has("went on\n")) << r;
  EXPECT_EQ(r.err, "") << r;
}

// ---- exit() and its relatives

TEST(Exit, InAGoroutineEndsTheProcessWithItsCode) {
  const ChildResult r = ends("exit_in_goroutine");
  EXPECT_TRUE(r.exited_with(7)) << r;
  EXPECT_EQ(r.out, "late destroyed\natexit\nearly destroyed\n") << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST(Exit, InTheMainGoroutineOrALockedOne) {
  for (const char* scenario :
       {"exit_in_main_goroutine", "exit_in_locked_goroutine", "exit_after_goexit_of_main"}) {
    const ChildResult r = ends(scenario);
    EXPECT_TRUE(r.exited_with(7)) << scenario << ": " << r;
    EXPECT_EQ(r.out, destroyed) << scenario << ": " << r;
    EXPECT_EQ(r.err, "") << scenario << ": " << r;
  }
}

TEST(Exit, InAnOrdinaryThread) {
  const ChildResult r = ends("exit_in_thread");
  EXPECT_TRUE(r.exited_with(7)) << r;
  EXPECT_EQ(r.out, "early destroyed\n") << r;
  EXPECT_EQ(r.err, "") << r;
}

// The goroutine that called exit() is the one that goes on.
TEST(Exit, InAGoroutineAndStaticObjectsMayStillCallTheRuntime) {
  const ChildResult r = ends("exit_in_goroutine_statics_use_runtime");
  EXPECT_TRUE(r.exited_with(7)) << r;
  EXPECT_TRUE(r.out_has("late used the runtime\n")) << r;
  EXPECT_TRUE(r.out_has("early used the runtime\n")) << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST(QuickExit, InAGoroutineRunsItsHandlers) {
  const ChildResult r = ends("quick_exit_in_goroutine");
  EXPECT_TRUE(r.exited_with(3)) << r;
  EXPECT_EQ(r.out, "at_quick_exit\n") << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST(QuickExit, AtOnceInAGoroutine) {
  const ChildResult r = ends("exit_at_once_in_goroutine");
  EXPECT_TRUE(r.exited_with(3)) << r;
  EXPECT_EQ(r.out, "") << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST(Abort, InAGoroutineEndsTheProcessBySignal) {
  const ChildResult r = ends("abort_in_goroutine");
  EXPECT_TRUE(r.killed_by(SIGABRT)) << r;
  EXPECT_EQ(r.out, "") << r;
}

// ---- threads that end

TEST(ThreadLocalDestructor, OfAnOrdinaryThreadMayUseTheRuntime) {
  const ChildResult r = ends("thread_locals");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_TRUE(r.out_has("ended: 20\n")) << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST(ThreadLocalDestructor, OfAThreadOfTheRuntimeMayUseTheRuntime) {
  const ChildResult r = ends("thread_locals_of_ended_m");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_TRUE(r.out_has("ended: 20\n")) << r;
  EXPECT_EQ(r.err, "") << r;
}

// ---- fork

// LSan takes what belonged to the threads that are not in the child of a fork for leaks.
ChildResult fork_and(const std::string& scenario) {
  return run_child("fork_child", {scenario}, {with_option("ASAN_OPTIONS", "detect_leaks=0")});
}

// The parent must go on, and be the only one that destroys static objects.
void expect_parent_unharmed(const ChildResult& r, const std::string& scenario) {
  EXPECT_TRUE(r.exited_with(0)) << scenario << ": " << r;
  EXPECT_EQ(count_of(r.out, "parent unharmed\n"), 1) << scenario << ": " << r;
  EXPECT_EQ(count_of(r.out, "static destroyed\n"), 1) << scenario << ": " << r;
}

TEST(Fork, ChildMayExec) {
  for (const char* scenario : {"goroutine_exec", "thread_exec"}) {
    const ChildResult r = fork_and(scenario);
    expect_parent_unharmed(r, scenario);
    EXPECT_TRUE(r.out_has("from exec\nfork exited 11\n")) << scenario << ": " << r;
    EXPECT_EQ(r.err, "") << scenario << ": " << r;
  }
}

TEST(Fork, ChildThatUsesTheRuntimeIsAborted) {
  for (const char* scenario :
       {"goroutine_go", "goroutine_yield", "goroutine_wait", "goroutine_run",
        "goroutine_gomaxprocs", "thread_go", "thread_wait", "thread_run", "thread_gomaxprocs"}) {
    const ChildResult r = fork_and(scenario);
    expect_parent_unharmed(r, scenario);
    EXPECT_TRUE(r.out_has("fork killed 6\n")) << scenario << ": " << r;
    EXPECT_EQ(r.err.find("gofer: the runtime was used in the child of a fork()"), 0u)
        << scenario << ": " << r;
    EXPECT_TRUE(r.err_has("\n[signal SIGABRT: abort pc=0x")) << scenario << ": " << r;
  }
}

TEST(Fork, ChildThatLeavesTheGoroutineEndsQuietly) {
  for (const char* scenario : {"goroutine_returns", "goroutine_goexit", "wait_group_go_returns"}) {
    const ChildResult r = fork_and(scenario);
    expect_parent_unharmed(r, scenario);
    EXPECT_TRUE(r.out_has("fork exited 0\n")) << scenario << ": " << r;
    EXPECT_EQ(r.err, "") << scenario << ": " << r;
  }
}

TEST(Fork, ChildMayExit) {
  for (const char* scenario : {"goroutine_exit", "thread_exit"}) {
    const ChildResult r = fork_and(scenario);
    EXPECT_TRUE(r.exited_with(0)) << scenario << ": " << r;
    EXPECT_TRUE(r.out_has("fork exited 12\n")) << scenario << ": " << r;
    EXPECT_TRUE(r.out_has("parent unharmed\n")) << scenario << ": " << r;
    EXPECT_EQ(r.err, "") << scenario << ": " << r;
  }
  const ChildResult r = fork_and("goroutine_exit_at_once");
  expect_parent_unharmed(r, "goroutine_exit_at_once");
  EXPECT_TRUE(r.out_has("fork exited 13\n")) << r;
}

TEST(Fork, ChildThatThrowsIsReported) {
  const ChildResult r = fork_and("goroutine_throws");
  expect_parent_unharmed(r, "goroutine_throws");
  EXPECT_TRUE(r.out_has("fork killed 6\n")) << r;
  EXPECT_EQ(r.err.find("panic: std::runtime_error: in the child of a fork\n\ngoroutine "), 0u) << r;
}

TEST(Fork, ChildMayForkAgain) {
  const ChildResult r = fork_and("fork_twice");
  expect_parent_unharmed(r, "fork_twice");
  EXPECT_TRUE(r.out_has("fork exited 11\nfork exited 15\n")) << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST(Fork, BeforeTheRuntimeStartedBothSidesMayUseIt) {
  const ChildResult r = fork_and("before_start");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_TRUE(r.out_has("fork exited 14\n")) << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST(Fork, BesideBusyGoroutinesManyTimes) {
  const ChildResult r = fork_and("many");
  expect_parent_unharmed(r, "many");
  EXPECT_TRUE(r.out_has("good: 20\n")) << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST(Fork, InsideOfSystemAndSpawnWorks) {
  const ChildResult r = fork_and("spawn_and_system");
  expect_parent_unharmed(r, "spawn_and_system");
  EXPECT_TRUE(r.out_has("from system\nsystem: 17\nfrom spawn\nfork exited 18\n")) << r;
  EXPECT_EQ(r.err, "") << r;
}

}  // namespace
