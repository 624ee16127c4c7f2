// Each rule of the format, broken once: the message names the place and what was expected.
#include <gtest/gtest.h>

#include "trace/testing/trace_writer.h"

namespace gofer::tool {
namespace {

using namespace testing;
using T = EventType;

enum { g_runnable = 1, g_running, g_syscall, g_waiting };
enum { p_running = 1, p_idle, p_syscall, p_abandoned };

/// P 0 and goroutine 7 run on M 1.
TraceWriter running() {
  TraceWriter trace;
  trace.batch(1, 1).ev(T::proc_status, 0, 0, p_running).ev(T::go_status, 0, 7, 1, g_running);
  return trace;
}

void expect_error(TraceWriter trace, std::string_view text, uint64_t last_generation = 1) {
  const std::string error = error_in(trace.end_generation(last_generation).bytes());
  EXPECT_NE(error.find(text), std::string::npos) << "got: " << error << "\nwanted: " << text;
}

template <class... Args>
TraceWriter then(TraceWriter trace, T type, Args... args) {
  trace.batch(1, 1).ev(type, 0, args...);
  return trace;
}

TEST(Violation, HasItsPlace) {
  TraceWriter trace = running();
  trace.batch(1, 2).ev(T::go_block, 0, 0, 0);
  expect_error(trace, "generation 1, M 2, byte 37: GoBlock: needs a P, and its M holds none");
}

TEST(Violation, SequenceOfAGoroutine) {
  expect_error(then(then(running(), T::go_stop, 0, 0), T::go_start, 7, 2),
               "GoStart g=7 g_seq=2: g_seq must be 1 for goroutine 7");
  TraceWriter twice = then(then(running(), T::go_stop, 0, 0), T::go_start, 7, 1);
  expect_error(then(then(twice, T::go_stop, 0, 0), T::go_start, 7, 1), "g_seq must be 2");
  expect_error(then(then(running(), T::go_block, 0, 0), T::go_unblock, 7, 5, 0),
               "GoUnblock g=7 g_seq=5: g_seq must be 1 for goroutine 7");
}

TEST(Violation, StateOfAGoroutine) {
  expect_error(then(then(running(), T::go_block, 0, 0), T::go_start, 7, 1),
               "goroutine 7 must be runnable, and is waiting");
  expect_error(then(then(running(), T::go_stop, 0, 0), T::go_unblock, 7, 1, 0),
               "goroutine 7 must be waiting, and is runnable");
  expect_error(then(running(), T::go_unblock, 99, 1, 0), "goroutine 99 does not exist");
  expect_error(then(then(running(), T::go_syscall_begin, 1, 0), T::go_block, 0, 0),
               "goroutine 7 must be running, and is in a system call");
  expect_error(then(running(), T::go_syscall_end), "goroutine 7 must be in a system call");
  expect_error(then(running(), T::go_syscall_end_blocked), "must be in a system call");
  expect_error(then(running(), T::go_destroy_syscall), "must be in a system call");
  expect_error(then(running(), T::go_create, 7, 0, 0), "goroutine 7 exists already");
  expect_error(then(running(), T::go_create_syscall, 9), "its M must have no goroutine");
}

TEST(Violation, AnMRunsOneGoroutine) {
  TraceWriter trace = then(running(), T::go_create, 8, 0, 0);
  expect_error(then(trace, T::go_start, 8, 1), "its M must have no goroutine, and has goroutine 7");
  expect_error(then(running(), T::go_status, 8, 1, g_running), "M 1 has goroutine 7");
  TraceWriter two = running();
  two.batch(1, 2).ev(T::proc_status, 0, 1, p_running).ev(T::go_status, 0, 7, 2, g_running);
  expect_error(two, "goroutine 7 is on M 1, so it cannot be on M 2");
}

TEST(Violation, AnMHoldsOneP) {
  expect_error(then(running(), T::proc_status, 1, p_running), "M 1 holds P 0");
  TraceWriter trace = running();
  trace.batch(1, 2).ev(T::proc_status, 0, 0, p_running);
  expect_error(trace, "P 0 is held by M 1, so it cannot be held by M 2");
  expect_error(then(then(running(), T::proc_status, 1, p_idle), T::proc_start, 1, 1),
               "its M holds P 0 already");
}

TEST(Violation, SequenceOfAP) {
  TraceWriter trace = then(then(running(), T::go_block, 0, 0), T::proc_stop);
  expect_error(then(trace, T::proc_start, 0, 2), "ProcStart p=0 p_seq=2: p_seq must be 1 for P 0");
  expect_error(then(running(), T::go_syscall_begin, 2, 0), "p_seq must be 1 for P 0");
  expect_error(then(then(running(), T::go_syscall_begin, 1, 0), T::proc_steal, 0, 3, 1),
               "ProcSteal p=0 p_seq=3 m=1: p_seq must be 2 for P 0");
  expect_error(then(running(), T::proc_start, 5, 1), "P 5 has no status yet");
}

TEST(Violation, AThiefNamesTheHolder) {
  TraceWriter trace = then(running(), T::go_syscall_begin, 1, 0);
  trace.batch(1, 2, 2000).ev(T::proc_steal, 0, 0, 2, 3);
  expect_error(trace, "P 0 is held by M 1, not by M 3");
}

TEST(Violation, OnlyAPInACallIsStolen) {
  TraceWriter trace = running();
  trace.batch(1, 2).ev(T::proc_steal, 0, 0, 1, 1);
  expect_error(trace, "P 0 must be in a system call, and is running");
}

TEST(Violation, ACallThatEndsBlockedLosesItsP) {
  expect_error(then(then(running(), T::go_syscall_begin, 1, 0), T::go_syscall_end_blocked),
               "its M holds P 0 in the system call, so a ProcStop or ProcSteal must come first");
}

TEST(Violation, ACallThatLostItsPEndsBlocked) {
  TraceWriter trace = then(then(running(), T::go_syscall_begin, 1, 0), T::proc_steal, 0, 2, 1);
  expect_error(then(trace, T::go_syscall_end), "needs a P, and its M holds none");
}

TEST(Violation, StatusesAgreeWithTheEventsBefore) {
  expect_error(then(running(), T::go_status, 7, 1, g_waiting), "goroutine 7 is running after");
  expect_error(then(running(), T::proc_status, 0, p_idle), "P 0 is running after");
  expect_error(then(running(), T::go_status, 9, none, 5), "there is no goroutine status 5");
  expect_error(then(running(), T::go_status, 9, none, 0), "there is no goroutine status 0");
  expect_error(then(running(), T::proc_status, 9, 5), "there is no P status 5");
  expect_error(then(running(), T::go_status, 9, none, g_syscall), "system call without an M");
  expect_error(then(running(), T::go_status, none, none, g_waiting), "an id of 2^64-1");
}

TEST(Violation, EachGenerationBeginsWithStatuses) {
  TraceWriter trace = running();
  trace.end_generation(1);
  trace.batch(2, 1, 2000).ev(T::proc_status, 0, 0, p_running).ev(T::go_stop, 0, 0, 0);
  trace.batch(2, 1, 2000).ev(T::go_start, 0, 7, 1);
  expect_error(trace, "goroutine 7 has neither a status nor a creation in this generation", 2);
  TraceWriter call = running();
  call.end_generation(1);
  call.batch(2, 1, 2000).ev(T::go_syscall_begin, 0, 1, 0);
  expect_error(call, "P 0, which has no status in this generation", 2);
}

TEST(Violation, NewGoroutinesAreCreated) {
  TraceWriter trace = running();
  trace.end_generation(1);
  trace.batch(2, 1, 2000).ev(T::go_status, 0, 9, none, g_waiting);
  expect_error(trace, "goroutine 9 is new: after the first generation only a creation", 2);
}

TEST(Violation, AThreadInACallHasItsGoroutine) {
  TraceWriter trace = running();
  trace.batch(1, 2, 2000).ev(T::go_status, 0, 9, 1, g_syscall);
  expect_error(trace, "M 1 must have goroutine 9, and has goroutine 7");
}

TEST(Violation, EventsNeedAnM) {
  TraceWriter trace = running();
  trace.batch(1, none).ev(T::go_block, 0, 0, 0);
  expect_error(trace, "needs an M, and its batch has none");
  TraceWriter status = running();
  status.batch(1, none).ev(T::go_status, 0, 9, none, g_running);
  expect_error(status, "needs an M, and its batch has none");
}

TEST(Violation, RangesNestProperly) {
  expect_error(then(running(), T::stw_end), "ends what has not begun");
  expect_error(then(then(running(), T::stw_begin, 0, 0), T::stw_begin, 0, 0), "begun already");
  expect_error(then(then(running(), T::stw_begin, 0, 0), T::go_destroy), "in a stopped world");
  expect_error(then(running(), T::gc_sweep_end, 0, 0), "ends what has not begun");
  expect_error(then(running(), T::gc_mark_assist_active, 9), "goroutine 9 does not exist");
}

TEST(Violation, RegionsAndTasks) {
  TraceWriter trace = running();
  trace.strings(1, {{1, "a"}, {2, "b"}});
  expect_error(then(then(trace, T::user_region_begin, 0, 1, 0), T::user_region_end, 0, 2, 0),
               "not the innermost one");
  expect_error(then(then(trace, T::user_task_begin, 4, 0, 1, 0), T::user_task_begin, 4, 0, 1, 0),
               "task 4 has begun");
}

TEST(Violation, TheCollectorsCyclesAreCounted) {
  expect_error(then(then(running(), T::gc_begin, 1, 0), T::gc_begin, 2, 0), "runs already");
  expect_error(then(then(running(), T::gc_begin, 1, 0), T::gc_end, 3), "gc_seq must be 2");
}

TEST(Violation, IfAllMsWaitAllAreListed) {
  TraceWriter trace = running();
  trace.batch(1, 2, 3000).ev(T::proc_start, 0, 9, 1);
  trace.batch(1, 3, 2000).ev(T::go_start, 0, 55, 1);
  expect_error(trace,
               "M 3, byte 47: GoStart g=55 g_seq=1: goroutine 55 does not exist\n"
               "The next events of other Ms wait, too:\n"
               "  M 2, byte 37: ProcStart p=9 p_seq=1: P 9 has no status yet");
}

}  // namespace
}  // namespace gofer::tool
