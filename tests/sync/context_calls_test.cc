// Calls with a context that are more than one wait: barrier, once, singleflight, task_group, cond
// with a predicate, select; and the guards that cancel and give back.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "support/goroutines_and_threads.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using test::in_goroutine_and_thread;
using test::wait_until;

TEST(ContextCalls, BarrierTakesAnArrivalBackThatTheContextEnds) {
  in_goroutine_and_thread([] {
    std::atomic<int> completions{0};
    barrier b(2, [&] { ++completions; });
    auto [ctx, cancel] = with_cancel(background());
    go([cancel = cancel] { cancel(); });
    EXPECT_FALSE(b.arrive_and_wait(ctx));
    EXPECT_FALSE(b.arrive_and_wait(ctx)) << "a context that is done refuses";
    EXPECT_EQ(completions, 0);

    wait_group other;
    other.go([&] { EXPECT_TRUE(b.arrive_and_wait(background())); });
    EXPECT_TRUE(b.arrive_and_wait(background()));
    other.wait();
    EXPECT_EQ(completions, 1);
  });
}

TEST(ContextCalls, BarrierLosesNoPhaseWhenContextsEndBesideArrivals) {
  for (int round = 0; round < 500; ++round) {
    barrier b(2);
    auto [ctx, cancel] = with_cancel(background());
    wait_group others;
    std::atomic<int> met{0};
    others.go([&, ctx = ctx] {
      // Until they meet: a goroutine that is cancelled has not arrived.
      if (b.arrive_and_wait(ctx) || b.arrive_and_wait(background())) ++met;
    });
    others.go([&] {
      b.arrive_and_wait();
      ++met;
    });
    cancel();
    others.wait();
    ASSERT_EQ(met, 2);
  }
}

TEST(ContextCalls, BarrierArrivesAndWaitsLater) {
  std::atomic<int> completions{0};
  barrier b(3, [&] { ++completions; });
  auto first = b.arrive(2);
  auto [ctx, cancel] = with_timeout(background(), 1ms);
  EXPECT_FALSE(b.wait(ctx, first));
  EXPECT_EQ(completions, 0);
  b.arrive_and_wait();
  EXPECT_EQ(completions, 1);
  b.wait(first);
  EXPECT_TRUE(b.wait(background(), first));
}

TEST(ContextCalls, BarrierRefusesMoreArrivalsThanParticipants) {
  in_goroutine_and_thread([] {
    barrier b(2);
    EXPECT_THROW(static_cast<void>(b.arrive(3)), std::logic_error);
    wait_group other;
    other.go([&] { b.arrive_and_wait(); });  // the refused arrivals do not count
    b.arrive_and_wait();
    other.wait();
    b.arrive_and_drop();
    b.arrive_and_drop();
    EXPECT_THROW(b.arrive_and_drop(), std::logic_error);
    EXPECT_THROW(barrier(0).arrive_and_wait(), std::logic_error);
  });
}

TEST(ContextCalls, OnceDoesNotWaitLongerThanTheContext) {
  in_goroutine_and_thread([] {
    once o;
    chan<int> begun(0), gate(0);
    wait_group first;
    first.go([&] {
      o.call([&] {
        begun.send(1);
        gate.recv();
      });
    });
    begun.recv();
    auto [ctx, cancel] = with_timeout(background(), 1ms);
    EXPECT_FALSE(o.call(ctx, [] { ADD_FAILURE(); }));
    gate.send(1);
    first.wait();
    EXPECT_TRUE(o.call(background(), [] { ADD_FAILURE(); }));
    EXPECT_FALSE(o.call(ctx, [] { ADD_FAILURE(); })) << "a context that is done refuses";
    once fresh;
    int got = 0;
    EXPECT_TRUE(fresh.call(
        background(), [&](int v) { got = v; }, 5));
    EXPECT_EQ(got, 5);
  });
}

TEST(ContextCalls, SingleflightThrowsTheCauseToACallerThatGivesUp) {
  in_goroutine_and_thread([] {
    singleflight<std::string, int> flights;
    chan<int> begun(0), gate(0);
    wait_group first;
    first.go([&] {
      EXPECT_EQ(flights.run("key",
                            [&] {
                              begun.send(1);
                              return *gate.recv();
                            }),
                4);
    });
    begun.recv();
    auto [ctx, cancel] = with_cancel(background());
    go([cancel = cancel] { cancel(std::make_exception_ptr(std::domain_error("bored"))); });
    EXPECT_THROW(flights.run(ctx, "key", [] { return 0; }), std::domain_error);
    EXPECT_THROW(flights.run(ctx, "other", [] { return 0; }), std::domain_error);
    wait_group second;
    auto [open, close] = with_cancel(background());
    second.go([&, open = open] {
      const int v = flights.run(open, "key", [] { return 5; });
      EXPECT_TRUE(v == 4 || v == 5) << "shared, or its own if it came too late";
    });
    gate.send(4);
    first.wait();
    second.wait();
  });
}

TEST(ContextCalls, TaskGroupWaitsForAPlaceAndForItsMembersAtMostUntilTheEnd) {
  task_group group(background(), 1);
  chan<int> gate(0);
  group.go([=](int expected) { EXPECT_EQ(gate.recv(), expected); }, 3);
  auto [ctx, cancel] = with_timeout(background(), 1ms);
  EXPECT_FALSE(group.go(ctx, [] { ADD_FAILURE(); }));
  EXPECT_FALSE(group.wait(ctx));
  EXPECT_FALSE(group.ctx().err()) << "the members go on";
  gate.send(3);
  EXPECT_TRUE(group.wait(background()));
  EXPECT_TRUE(group.ctx().err());
  std::atomic<int> sum{0};
  EXPECT_TRUE(group.go(
      background(), [&](int a) { sum += a; }, 1));
  group.go(
      {.name = "member"},
      [&](int a, std::unique_ptr<int> b) {
        EXPECT_EQ(this_goroutine::name(), "member");
        sum += a + *b;
      },
      2, std::make_unique<int>(3));
  group.wait();
  EXPECT_EQ(sum, 6);
  group.go([] { throw std::runtime_error("failed"); });
  EXPECT_THROW(static_cast<void>(group.wait(background())), std::runtime_error);
}

TEST(ContextCalls, WaitGroupNamesItsGoroutines) {
  wait_group wg;
  std::string name;
  wg.go(
      {.name = "reader", .stack_size = 1 << 20}, [&](int) { name = this_goroutine::name(); }, 1);
  wg.wait();
  EXPECT_EQ(name, "reader");
}

TEST(ContextCalls, CondWaitsForAPredicateUntilTheContextOrTheTimeEnds) {
  in_goroutine_and_thread([] {
    mutex m;
    cond c;
    bool ready = false;
    std::unique_lock lock(m);
    auto [ctx, cancel] = with_timeout(background(), 1ms);
    EXPECT_FALSE(c.wait(ctx, lock, [&] { return ready; }));
    EXPECT_TRUE(lock.owns_lock());
    EXPECT_TRUE(c.wait(ctx, lock, [] { return true; })) << "there is nothing to wait for";
    const auto soon = std::chrono::steady_clock::now() + 1ms;
    EXPECT_FALSE(c.wait_until(lock, soon, [&] { return ready; }));
    EXPECT_GE(std::chrono::steady_clock::now(), soon);
    go([&] {
      std::lock_guard guard(m);
      ready = true;
      c.notify_all();
    });
    EXPECT_TRUE(c.wait(background(), lock, [&] { return ready; }));
    EXPECT_TRUE(c.wait_until(lock, soon, [&] { return ready; }));
  });
}

TEST(ContextCalls, NotifyOneWakesOneAndNotifyAllTheRest) {
  mutex m;
  cond c;
  int waiting = 0;
  std::atomic<int> woken{0};
  wait_group wg;
  for (int i = 0; i < 3; ++i) {
    wg.go([&] {
      std::unique_lock lock(m);
      ++waiting;
      c.wait(lock);
      ++woken;
    });
  }
  ASSERT_TRUE(wait_until([&] {
    std::lock_guard guard(m);
    return waiting == 3;
  }));
  c.notify_one();
  ASSERT_TRUE(wait_until([&] { return woken == 1; }));
  c.notify_all();
  wg.wait();
  EXPECT_EQ(woken, 3);
}

TEST(ContextCalls, SelectHasACaseForTheEnd) {
  in_goroutine_and_thread([] {
    chan<int> never(0);
    auto [ctx, cancel] = with_cancel(background());
    EXPECT_EQ(select(on_done(ctx), on_default()), 1u);
    EXPECT_EQ(select(on_done(background()), on_default()), 1u);
    go([cancel = cancel] { cancel(); });
    bool told = false;
    EXPECT_EQ(select(on_recv(never), on_done(ctx, [&] { told = true; })), 1u);
    EXPECT_TRUE(told);
  });
}

TEST(ContextCalls, GuardCancelsAtTheEndOfItsScope) {
  auto [ctx, cancel] = with_cancel(background());
  {
    cancel_guard released(cancel);
    released.release();
  }
  EXPECT_FALSE(ctx.err());
  try {
    cancel_guard at_end(cancel);
    EXPECT_FALSE(ctx.err());
    throw 1;
  } catch (int) {
  }
  EXPECT_TRUE(ctx.err());
  EXPECT_THROW(ctx.throw_if_done(), std::system_error);
}

TEST(ContextCalls, GuardGivesPermitsBack) {
  semaphore s(3);
  {
    permit_guard two(s, 2);
    EXPECT_EQ(s.available(), 1);
    permit_guard moved = std::move(two);
    EXPECT_FALSE(two);
    EXPECT_TRUE(moved);
    ASSERT_TRUE(s.try_acquire());
    permit_guard adopted(s, std::adopt_lock);
    EXPECT_EQ(s.available(), 0);
    moved = std::move(adopted);
    EXPECT_EQ(s.available(), 2) << "what it held before is given back";
    moved.release();
    EXPECT_EQ(s.available(), 3);
  }
  EXPECT_EQ(s.available(), 3);
}

TEST(ContextCalls, AfterFuncTakesAFunctionThatCanOnlyBeMoved) {
  auto [ctx, cancel] = with_cancel(background());
  chan<int> got(0);
  const auto stop = after_func(ctx, [p = std::make_unique<int>(6), got] { got.send(*p); });
  cancel();
  EXPECT_EQ(got.recv(), 6);
  EXPECT_FALSE(stop());
}

TEST(StdNames, LatchCanBeTriedAndWaitedForUntilATime) {
  in_goroutine_and_thread([] {
    latch l(3);
    EXPECT_FALSE(l.try_wait());
    EXPECT_FALSE(l.wait_until(std::chrono::steady_clock::now() + 1ms));
    auto [ctx, cancel] = with_timeout(background(), 1ms);
    EXPECT_FALSE(l.arrive_and_wait(ctx, 2)) << "it has arrived all the same";
    l.arrive_and_wait();
    const latch& open = l;
    EXPECT_TRUE(open.try_wait());
    EXPECT_TRUE(open.wait_for(0s));
    open.wait();
  });
}

TEST(StdNames, CallOnceCallsOnce) {
  once_flag flag;
  int calls = 0;
  for (int i = 0; i < 3; ++i)
    call_once(
        flag, [&](int n) { calls += n; }, 1);
  EXPECT_EQ(calls, 1);
}

static_assert(semaphore::max() >= 1'000'000 && latch::max() >= 1'000'000 &&
              barrier::max() >= 1'000'000);

}  // namespace
}  // namespace gofer
