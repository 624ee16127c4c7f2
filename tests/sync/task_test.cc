// async and task_group: results, errors, limits, and that no goroutine is left behind. Then the
// smaller helpers: local, pool, singleflight, rate_limiter.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/wait/waiter.h"
#include "support/chan_waiters.h"
#include "support/quiescent.h"
#include "support/scaled.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using test::scaled;
using test::wait_until;

TEST(Future, HasTheResultOfItsFunction) {
  EXPECT_EQ(async([](int a, int b) { return a + b; }, 2, 3).get(), 5);
  EXPECT_EQ(*async([p = std::make_unique<int>(4)] { return std::make_unique<int>(*p); }).get(), 4);
  int x = 1;
  EXPECT_EQ(&async([&]() -> int& { return x; }).get(), &x);
  async([&] { x = 2; }).get();
  EXPECT_EQ(x, 2);
}

TEST(Future, ThrowsWhatItsFunctionThrew) {
  auto f = async([]() -> int { throw std::out_of_range("far"); });
  f.wait();
  EXPECT_TRUE(f.ready());
  EXPECT_THROW(f.get(), std::out_of_range);
  EXPECT_FALSE(f.valid());
  EXPECT_THROW(f.get(), std::future_error);
  auto g = async([] { throw 7; });
  EXPECT_THROW(g.get(), int);
}

TEST(Future, IsBrokenByGoexit) {
  EXPECT_THROW(async([] { goexit(); }).get(), std::future_error);
}

TEST(Future, CanBeWaitedForWithALimit) {
  chan<int> gate(0);
  auto f = async([=] { return *gate.recv(); });
  EXPECT_FALSE(f.wait_for(1ms));
  EXPECT_FALSE(f.wait_until(std::chrono::steady_clock::now()));
  auto [ctx, cancel] = with_timeout(background(), 1ms);
  EXPECT_FALSE(f.wait(ctx));
  EXPECT_FALSE(f.ready());
  gate.send(9);
  EXPECT_TRUE(f.wait(background()));
  EXPECT_TRUE(f.wait_for(60s));
  EXPECT_EQ(f.get(), 9);
}

TEST(Future, CanBeSelected) {
  auto f = async([] { return 1; });
  EXPECT_EQ(select(on_recv(f.done()), on_timeout(60s)), 0u);
}

TEST(Future, MayBeDropped) {
  std::atomic<bool> ran{false};
  static_cast<void>(async([&] { ran = true; }));
  EXPECT_TRUE(wait_until([&] { return ran.load(); }));
  EXPECT_TRUE(wait_until([] { return num_goroutine() == 0; }));
}

TEST(Future, ServesGoroutinesAndThreads) {
  std::vector<future<int>> squares;
  for (int i = 0; i < scaled(2000); ++i) squares.push_back(async([i] { return i * i; }));
  long sum = 0;
  for (auto& f : squares) sum += f.get();
  long expected = 0;
  for (long i = 0; i < scaled(2000); ++i) expected += i * i;
  EXPECT_EQ(sum, expected);
}

TEST(TaskGroup, WaitsForAllAndRethrowsTheFirstError) {
  task_group group;
  std::atomic<int> cancelled{0};
  for (int i = 0; i < 20; ++i) {
    group.go([&, i] {
      if (i == 7) throw std::runtime_error("seven");
      group.ctx().done().recv();
      ++cancelled;
    });
  }
  try {
    group.wait();
    ADD_FAILURE();
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "seven");
  }
  EXPECT_EQ(cancelled, 19);
  EXPECT_THROW(std::rethrow_exception(group.ctx().cause()), std::runtime_error);
  EXPECT_NO_THROW(group.wait()) << "an error is thrown once";
}

TEST(TaskGroup, MayBeUsedAgainAndThrowsWhatFailsLater) {
  task_group group;
  const auto error_of_wait = [&] {
    try {
      group.wait();
    } catch (const std::runtime_error& e) {
      return std::string(e.what());
    }
    return std::string("none");
  };
  group.go([] { throw std::runtime_error("first"); });
  EXPECT_EQ(error_of_wait(), "first");
  EXPECT_EQ(error_of_wait(), "none");
  group.go([] {});
  EXPECT_EQ(error_of_wait(), "none");
  group.go([] { throw std::runtime_error("second"); });
  EXPECT_EQ(error_of_wait(), "second");
  group.go([] { throw std::runtime_error("third"); });
  EXPECT_EQ(error_of_wait(), "third");
  EXPECT_EQ(error_of_wait(), "none");
}

TEST(TaskGroup, ThrowsToAllConcurrentWaiters) {
  for (int round = 0; round < scaled(200); ++round) {
    task_group group;
    chan<int> gate(0);
    group.go([=] {
      gate.recv();
      throw std::runtime_error("failed");
    });
    wait_group wg;
    for (int i = 0; i < 3; ++i) {
      wg.go([&] { EXPECT_THROW(group.wait(), std::runtime_error); });
    }
    auto [ctx, cancel] = with_cancel(background());
    wg.go([&, ctx = ctx] { EXPECT_FALSE(group.wait(ctx)); });
    ASSERT_TRUE(test::all_asleep());  // they wait
    cancel();
    ASSERT_TRUE(test::all_asleep());
    gate.close();
    wg.wait();
    EXPECT_NO_THROW(group.wait()) << "an error is thrown once";
  }
}

TEST(TaskGroup, WithoutErrorsEndsQuietly) {
  task_group group;
  std::atomic<int> n{0};
  for (int i = 0; i < scaled(2000); ++i) group.go([&] { ++n; });
  group.wait();
  EXPECT_EQ(n, scaled(2000));
  EXPECT_EQ(group.ctx().err(), std::errc::operation_canceled);
}

TEST(TaskGroup, LimitsHowManyRunAtOnce) {
  task_group group(background(), 3);
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  for (int i = 0; i < 100; ++i) {
    group.go([&] {
      const int running = ++now;
      int seen = most;
      while (running > seen && !most.compare_exchange_weak(seen, running)) {
      }
      yield();
      --now;
    });
  }
  group.wait();
  EXPECT_LE(most, 3);
  EXPECT_GE(most, 1);
}

TEST(TaskGroup, NegativeLimitIsNone) {
  task_group group(background(), static_cast<std::size_t>(-1));
  chan<int> gate(0);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(group.try_go([=] { gate.recv(); }));
  gate.close();
  group.wait();
}

TEST(TaskGroup, TryGoDoesNotWaitForAPlace) {
  task_group group(background(), 1);
  chan<int> gate(0);
  EXPECT_TRUE(group.try_go({.name = "member"}, [=] {
    EXPECT_EQ(this_goroutine::name(), "member");
    gate.recv();
  }));
  EXPECT_FALSE(group.try_go([] {}));
  EXPECT_FALSE(group.try_go({.name = "another"}, [] {}));
  gate.send(1);
  group.go([] {});
  group.wait();
  EXPECT_TRUE(group.try_go([] {}));
}

TEST(TaskGroup, TakesAContextAndOptionsTogether) {
  auto [ctx, cancel] = with_cancel(background());
  task_group group(background(), 1);
  std::string name;
  chan<int> gate(0);
  EXPECT_TRUE(group.go(
      ctx, {.name = "reader"},
      [&](const chan<int>& c) {
        name = this_goroutine::name();
        c.recv();
      },
      gate));
  auto [soon, cancel_soon] = with_timeout(background(), 1ms);
  EXPECT_FALSE(group.go(soon, {.name = "waits"}, [] { ADD_FAILURE(); })) << "no free place";
  gate.send(1);
  group.wait();
  EXPECT_EQ(name, "reader");
  cancel();
  EXPECT_FALSE(group.go(ctx, {.name = "late"}, [] { ADD_FAILURE(); })) << "the context is done";
}

TEST(TaskGroup, LeavingItsScopeWaits) {
  std::atomic<int> ended{0};
  {
    task_group group;
    for (int i = 0; i < 10; ++i) {
      group.go([&] {
        sleep_for(2ms);
        ++ended;
      });
    }
  }
  EXPECT_EQ(ended, 10);
}

TEST(TaskGroup, LeavingItsScopeByAnExceptionCancelsAndWaits) {
  std::atomic<int> ended{0};
  try {
    task_group group;
    group.go([&] {
      group.ctx().done().recv();
      ++ended;
    });
    throw std::logic_error("out");
  } catch (const std::logic_error&) {
    EXPECT_EQ(ended, 1);
  }
}

TEST(TaskGroup, EndsWithItsParent) {
  auto [ctx, cancel] = with_cancel(background());
  task_group group(ctx);
  group.go([&] { group.ctx().done().recv(); });
  cancel();
  group.wait();
}

TEST(TaskGroup, MembersMayStartMembersAndExit) {
  task_group group(background(), 8);
  std::atomic<int> n{0};
  group.go([&] {
    for (int i = 0; i < 4; ++i) group.go([&] { ++n; });
    goexit();
  });
  group.wait();
  EXPECT_EQ(n, 4);
  EXPECT_TRUE(group.try_go([] {})) << "goexit gave its place back";
}

TEST(Local, IsEachGoroutinesOwn) {
  static local<int> value;
  static local<std::string> text([] { return std::string("start"); });
  *value = -1;
  wait_group wg;
  for (int i = 0; i < scaled(2000); ++i) {
    wg.go([i] {
      EXPECT_EQ(value.peek(), nullptr);
      EXPECT_EQ(*value, 0);
      *value = i;
      EXPECT_EQ(*text, "start");
      *text += std::to_string(i);
      for (int k = 0; k < 3; ++k) {
        yield();
        ASSERT_EQ(*value, i);
        ASSERT_EQ(*text, "start" + std::to_string(i));
      }
    });
  }
  wg.wait();
  EXPECT_EQ(*value, -1);
  std::thread([] { EXPECT_EQ(*value, 0); }).join();
}

TEST(Local, IsDestroyedWithItsGoroutineTheNewestFirst) {
  struct Note {
    chan<int> log;
    int id = 0;
    ~Note() {
      if (log) log.send(id);
    }
  };
  static local<Note> a, b, c;
  chan<int> log(10);
  const auto fill = [&] {
    a->id = 1;
    a->log = log;
    c->id = 3;
    c->log = log;
    b->id = 2;
    b->log = log;
  };
  const auto expect_newest_first = [&] {
    for (int id : {2, 3, 1}) EXPECT_EQ(log.recv(), id);
    EXPECT_EQ(log.len(), 0u);
  };
  go(fill);
  expect_newest_first();
  go([&] {
    fill();
    goexit();
  });
  expect_newest_first();
  std::thread(fill).join();
  expect_newest_first();
}

TEST(Pool, GivesBackWhatWasPutAndMakesTheRest) {
  std::atomic<int> made{0};
  pool<int> p([&] { return std::make_unique<int>(++made); });
  auto first = p.get();
  EXPECT_EQ(*first, 1);
  *first = 100;
  p.put(std::move(first));
  EXPECT_EQ(*p.get(), 100);
  p.put(nullptr);
  EXPECT_EQ(*p.get(), 2);
}

TEST(Pool, NeverGivesOneObjectToTwo) {
  struct Object {
    std::atomic<int> users{0};
  };
  pool<Object> p;
  wait_group wg;
  for (int i = 0; i < 8; ++i) {
    wg.go([&] {
      for (int k = 0; k < scaled(20'000); ++k) {
        auto o = p.get();
        ASSERT_EQ(o->users++, 0);
        if (k % 8 == 0) yield();
        --o->users;
        p.put(std::move(o));
      }
    });
  }
  wg.wait();
}

TEST(Singleflight, SharesOneExecution) {
  singleflight<std::string, int> flights;
  chan<int> gate(0);
  std::atomic<int> executions{0};
  std::atomic<int> sum{0};
  wait_group wg;
  std::atomic<int> under_way{0};
  for (int i = 0; i < 10; ++i) {
    wg.go([&] {
      ++under_way;
      sum += flights.run("key", [&] {
        ++executions;
        return *gate.recv();
      });
    });
  }
  ASSERT_TRUE(wait_until([&] { return under_way == 10 && executions == 1; }));
  gate.send(5);
  for (bool more = true; more;) more = gate.send_for(20ms, 5);  // those too late for the first
  wg.wait();
  EXPECT_EQ(sum, 50);
  EXPECT_EQ(flights.run("key", [] { return 1; }), 1);
}

TEST(Singleflight, ThrowsToAllWhatOneThrew) {
  singleflight<int, int> flights;
  EXPECT_THROW(flights.run(1, []() -> int { throw std::runtime_error("x"); }), std::runtime_error);
  EXPECT_EQ(flights.run(1, [] { return 2; }), 2);
  flights.forget(1);
}

TEST(Singleflight, ThatEndsByGoexitTellsTheOthersSo) {
  singleflight<int, int> flights;
  chan<int> gate(0);
  std::atomic<int> told{0};
  std::atomic<bool> returned{false};
  wait_group wg;
  wg.go([&] {
    flights.run(2, [&]() -> int {
      gate.recv();
      goexit();
    });
    returned = true;
  });
  const auto share = [&] {
    try {
      flights.run(2, []() -> int { throw std::logic_error("not shared"); });
    } catch (const std::runtime_error& e) {
      told += std::string(e.what()).find("goexit()") != std::string::npos;
    }
  };
  ASSERT_TRUE(wait_until([&] { return test::waiting_receivers(gate) == 1; }));
  for (int i = 0; i < 3; ++i) wg.go(share);
  std::thread thread(share);
  ASSERT_TRUE(wait_until(
      [&] { return stats().idle_procs == stats().gomaxprocs && internal::parked_threads == 1; }));
  gate.send(0);
  thread.join();
  wg.wait();
  EXPECT_EQ(told, 4);
  EXPECT_FALSE(returned);
  EXPECT_EQ(flights.run(2, [] { return 5; }), 5);
}

TEST(RateLimiter, AllowsABurstAndThenTheRate) {
  rate_limiter limiter(1000, 5);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limiter.allow());
  for (int i = 0; i < 10; ++i) limiter.wait();
  EXPECT_GE(std::chrono::steady_clock::now() - start, 9ms);
  EXPECT_THROW(limiter.wait(6), std::invalid_argument);
  EXPECT_THROW(rate_limiter(0, 1), std::invalid_argument);
  EXPECT_THROW(rate_limiter(1, 0), std::invalid_argument);
}

TEST(RateLimiter, GivesUpWithItsContextAndTakesNothing) {
  rate_limiter limiter(0.01, 1);
  EXPECT_TRUE(limiter.allow());
  auto [ctx, cancel] = with_timeout(background(), 1ms);
  EXPECT_FALSE(limiter.wait(ctx));
  auto [other, cancel_other] = with_cancel(background());
  go([cancel_other = cancel_other] { cancel_other(); });
  EXPECT_FALSE(limiter.wait(other));
  EXPECT_FALSE(limiter.wait(other));
}

}  // namespace
}  // namespace gofer
