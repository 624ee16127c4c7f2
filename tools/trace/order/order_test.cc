// The order in which events are delivered, and what they change.
#include "trace/order/order.h"

#include <gtest/gtest.h>

#include "trace/testing/trace_writer.h"

namespace gofer::tool {
namespace {

using namespace testing;
using T = EventType;

// Statuses as the format numbers them.
enum { g_runnable = 1, g_running, g_syscall, g_waiting };
enum { p_running = 1, p_idle, p_syscall, p_abandoned };

std::vector<T> types(const std::vector<Event>& events) {
  std::vector<T> result;
  for (const Event& event : events) result.push_back(event.type);
  return result;
}

TEST(Order, AnEventWaitsForTheOneThatItNeeds) {
  TraceWriter trace;
  // M 1 creates goroutine 8; M 2 starts it, at an earlier time by its own clock.
  trace.batch(1, 1, 1000)
      .ev(T::proc_status, 0, 0, p_running)
      .ev(T::go_status, 0, 7, 1, g_running)
      .ev(T::go_create, 100, 8, 0, 0);
  trace.batch(1, 2, 1000).ev(T::proc_status, 0, 1, p_running).ev(T::go_start, 50, 8, 1);
  trace.end_generation(1);
  const auto events = read_all(trace.bytes());
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[3].type, T::go_create);
  EXPECT_EQ(events[4].type, T::go_start);
  EXPECT_EQ(events[3].time_ns, 1100);
  EXPECT_EQ(events[4].time_ns, 1100) << "not before its predecessor";
}

TEST(Order, EventsHaveTheContextOfTheirM) {
  TraceWriter trace;
  trace.batch(1, 1)
      .ev(T::proc_status, 0, 3, p_running)
      .ev(T::go_status, 0, 7, 1, g_running)
      .ev(T::go_block, 0, 0, 0)
      .ev(T::proc_stop, 0);
  trace.end_generation(1);
  const auto events = read_all(trace.bytes());
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].p, none);
  EXPECT_EQ(events[1].p, 3u);
  EXPECT_EQ(events[1].g, none);
  EXPECT_EQ(events[2].g, 7u);
  EXPECT_EQ(events[3].g, none);
  EXPECT_EQ(events[3].p, 3u);
  ASSERT_EQ(events[2].changes().size(), 1u);
  EXPECT_EQ(events[2].changes()[0].go_from(), GoState::running);
  EXPECT_EQ(events[2].changes()[0].go_to(), GoState::waiting);
  EXPECT_EQ(events[3].changes()[0].proc_to(), ProcState::idle);
}

TEST(Order, ASwitchIsThreeChanges) {
  TraceWriter trace;
  trace.batch(1, 1)
      .ev(T::proc_status, 0, 0, p_running)
      .ev(T::go_status, 0, 7, 1, g_running)
      .ev(T::go_create_blocked, 0, 8, 0, 0)
      .ev(T::go_switch, 0, 8, 1)
      .ev(T::go_switch_destroy, 0, 7, 1);
  trace.end_generation(1);
  const auto events = read_all(trace.bytes());
  ASSERT_EQ(events.size(), 5u);
  const auto changes = events[3].changes();
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_EQ(changes[0].id, 8u);
  EXPECT_EQ(changes[0].go_to(), GoState::runnable);
  EXPECT_EQ(changes[1].id, 7u);
  EXPECT_EQ(changes[1].go_to(), GoState::waiting);
  EXPECT_EQ(changes[2].id, 8u);
  EXPECT_EQ(changes[2].go_to(), GoState::running);
  EXPECT_EQ(events[4].changes()[1].go_to(), GoState::absent);
}

TEST(Order, ACallThatLosesItsPEndsAfterTheLoss) {
  TraceWriter trace;
  trace.batch(1, 1, 1000)
      .ev(T::proc_status, 0, 0, p_running)
      .ev(T::go_status, 0, 7, 1, g_running)
      .ev(T::go_syscall_begin, 10, 1, 0)
      .ev(T::go_syscall_end_blocked, 10)  // by its clock before the theft
      .ev(T::proc_start, 100, 0, 4)
      .ev(T::go_start, 10, 7, 1);
  trace.batch(1, 2, 1050)
      .ev(T::proc_steal, 0, 0, 2, 1)
      .ev(T::proc_start, 0, 0, 3)
      .ev(T::proc_stop, 0);
  trace.end_generation(1);
  const auto events = read_all(trace.bytes());
  EXPECT_EQ(types(events), (std::vector<T>{T::proc_status, T::go_status, T::go_syscall_begin,
                                           T::proc_steal, T::go_syscall_end_blocked, T::proc_start,
                                           T::proc_stop, T::proc_start, T::go_start}));
  EXPECT_EQ(events[3].victim_m, 1u);
  EXPECT_EQ(events[2].changes()[1].proc_to(), ProcState::syscall);
}

TEST(Order, SequencesBeginAnewInEachGeneration) {
  TraceWriter trace;
  for (const uint64_t gen : {1, 2}) {
    trace.batch(gen, 1, gen * 1000)
        .ev(T::proc_status, 0, 0, p_running)
        .ev(T::go_status, 0, 7, 1, g_running)
        .ev(T::go_stop, 0, 0, 0)
        .ev(T::go_start, 0, 7, 1);
    trace.end_generation(gen);
  }
  const auto events = read_all(trace.bytes());
  ASSERT_EQ(events.size(), 8u);
  EXPECT_EQ(events[1].changes()[0].go_from(), GoState::undetermined);
  EXPECT_EQ(events[5].changes()[0].go_from(), GoState::running);
  EXPECT_EQ(events[5].g, 7u) << "goroutines stay on their Ms from generation to generation";
}

TEST(Order, AStatusInACallMayComeFromAnotherM) {
  TraceWriter trace;
  trace.batch(1, 1, 1000)
      .ev(T::proc_status, 0, 0, p_running)
      .ev(T::go_status, 0, 7, 2, g_syscall)
      .ev(T::go_status, 0, 8, none, g_waiting);
  trace.batch(1, 2, 2000).ev(T::go_syscall_end_blocked, 0);
  trace.end_generation(1);
  const auto events = read_all(trace.bytes());
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[1].m, 2u) << "of the M that it is about";
  EXPECT_EQ(events[3].g, 7u);
}

TEST(Order, AnAbandonedPIsStolenFromNobody) {
  TraceWriter trace;
  trace.batch(1, 1)
      .ev(T::proc_status, 0, 0, p_abandoned)
      .ev(T::proc_steal, 0, 0, 1, 77)
      .ev(T::proc_start, 0, 0, 2);
  trace.end_generation(1);
  const auto events = read_all(trace.bytes());
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[1].victim_m, none);
}

TEST(Order, AForeignThreadsGoroutineComesAndGoesInACall) {
  TraceWriter trace;
  trace.batch(1, 1)
      .ev(T::proc_status, 0, 0, p_idle)
      .ev(T::go_create_syscall, 0, 9)
      .ev(T::proc_start, 0, 0, 1)
      .ev(T::go_syscall_end_blocked, 0)
      .ev(T::go_start, 0, 9, 1)
      .ev(T::go_syscall_begin, 0, 2, 0)
      .ev(T::go_destroy_syscall, 0)
      .ev(T::proc_steal, 0, 0, 3, 1);
  trace.end_generation(1);
  EXPECT_EQ(error_in(trace.bytes()), "");
}

TEST(Order, GofersRecordsComeBetweenTheEvents) {
  TraceWriter trace;
  trace.batch(1, 1, 1000).ev(T::proc_status, 0, 0, p_running).ev(T::proc_stop, 100);
  // Version 1; a steal (kind 1, four arguments); kind 30 with one argument, which nobody knows yet.
  trace.batch(1, 1, 1000, 1).raw({1, 4 << 5 | 1, 50, 2, 0, 5, 6}).raw({1 << 5 | 30, 1, 9});
  trace.batch(1, 2, 1000, 1).raw({0x80, 0x80, 0x04});  // not Gofer's
  trace.end_generation(1);
  const auto events = read_all(trace.bytes());
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[1].type, T::gofer_record);
  EXPECT_EQ(events[1].record, 1);
  EXPECT_EQ(events[1].args[3], 6u);
  EXPECT_EQ(events[1].m, 1u);
  EXPECT_EQ(events[2].record, 30);
  EXPECT_EQ(events[2].time_ns, 1051);
}

TEST(Order, DamagedRecordsOfGoferAreRefused) {
  TraceWriter trace;
  trace.batch(1, 1, 1000, 1).raw({1, 3 << 5 | 1, 50, 2, 0, 5});
  trace.end_generation(1);
  EXPECT_NE(error_in(trace.bytes()).find("\"steal\" has 3 arguments, of 4"), std::string::npos);
  TraceWriter cut;
  cut.batch(1, 1, 1000, 1).raw({1, 4 << 5 | 1, 50, 2});
  cut.end_generation(1);
  EXPECT_NE(error_in(cut.bytes()).find("\"steal\" is cut off"), std::string::npos);
}

}  // namespace
}  // namespace gofer::tool
