// Sleeping, timers, tickers and functions that are called later, as users see them.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime/procs/p_table.h"
#include "support/goroutines_and_threads.h"
#include "support/model_gm.h"
#include "support/procs.h"
#include "support/scaled.h"
#include "support/wait_until.h"
#include "sync/chan.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using test::in_goroutine_and_thread;
using test::scaled;
using test::wait_until;
using clock = std::chrono::steady_clock;

// Its time lies in the channel.
template <class T>
bool has_fired(const T& t) {
  return detail::chan_len(t.c().core()) == 1;
}

TEST(Sleep, LastsAtLeastAsLongAsAsked) {
  in_goroutine_and_thread([] {
    for (auto d : {1us, 50us, 1000us, 10000us}) {
      const auto start = clock::now();
      sleep_for(d);
      EXPECT_GE(clock::now() - start, d);
    }
    const auto then = clock::now() + 3ms;
    sleep_until(then);
    EXPECT_GE(clock::now(), then);
  });
}

TEST(Sleep, OfNoTimeOrLessReturnsAtOnce) {
  in_goroutine_and_thread([] {
    for (int i = 0; i < 1000; ++i) {
      sleep_for(0s);
      sleep_for(-1h);
      sleep_for(std::chrono::hours::min());
      sleep_until(clock::time_point::min());
    }
  });
}

TEST(Sleep, ForEverCanBeEndedByAContext) {
  in_goroutine_and_thread([] {
    auto [ctx, cancel] = with_cancel(background());
    go([cancel = cancel] { cancel(); });
    EXPECT_FALSE(sleep_for(ctx, std::chrono::hours::max()));
    EXPECT_FALSE(sleep_for(ctx, 0s));
    EXPECT_TRUE(sleep_for(background(), 1us));
  });
}

TEST(Sleep, EndsForEachAtItsOwnTime) {
  chan<int> woken(0);
  constexpr int n = 10;
  const auto start = clock::now() + 2ms;
  for (int i = n - 1; i >= 0; --i) {
    go([=] {
      sleep_until(start + i * 1ms);
      EXPECT_GE(clock::now(), start + i * 1ms);
      woken.send(i);
    });
  }
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += *woken.recv();
  EXPECT_EQ(sum, n * (n - 1) / 2);
}

TEST(Sleep, OfManyAtOnceEndsForAll) {
  wait_group wg;
  std::atomic<int> late{0};
  const int n = scaled(20'000);
  for (int i = 0; i < n; ++i) {
    wg.go([&, d = 1ms * (i % 20)] {
      const auto start = clock::now();
      sleep_for(d);
      if (clock::now() - start < d) ++late;
    });
  }
  wg.wait();
  EXPECT_EQ(late, 0);
}

// A thread that is bound to its goroutine does not watch timers while it waits, so another thread
// has to know of the timer. If none does, the wait lasts until an idle thread wakes for another
// reason.
TEST(Sleep, OfABoundGoroutineEndsInTimeInAnIdleProcess) {
  static constexpr auto much_too_late = 2s;
  const std::vector<void (*)()> waits = {
      [] { sleep_for(1ms); },
      [] { EXPECT_FALSE(chan<int>(0).recv_for(1ms)); },
      [] { select(on_recv(chan<int>(0), [](int) {}), on_timeout(1ms, [] {})); },
  };
  for (int round = 0; round < 5; ++round) {
    for (const auto wait : waits) {
      run([wait] {
        lock_os_thread();
        const auto start = clock::now();
        wait();
        EXPECT_LT(clock::now() - start, much_too_late);
      });
    }
  }
}

TEST(Sleep, OfThousandsIsNotInTheWayOfOneThatIsShort) {
  auto [ctx, cancel] = with_cancel(background());
  wait_group wg;
  for (int i = 0; i < scaled(2000); ++i)
    wg.go([&, ctx = ctx] { EXPECT_FALSE(sleep_for(ctx, 1h)); });
  for (int i = 0; i < 20; ++i) sleep_for(1ms);
  cancel();
  wg.wait();
}

// Its first sleep: the runtime does not know yet that its turns are short.
TEST(Sleep, ThatIsOverRunsBeforeGoroutinesThatHaveNotBegun) {
  if (test::model_gm()) GTEST_SKIP() << "all wait in one queue, first come, first served";
  const test::Procs one(1);
  run([] {
    constexpr int others = 200;
    std::atomic<bool> sleeps{false};
    int begun = 0;
    int before = -1;
    wait_group wg;
    wg.go([&] {
      sleeps = true;
      sleep_for(1us);
      before = begun;
    });
    while (!sleeps) yield();
    {
      const no_preempt guard;
      for (int i = 0; i < others; ++i) wg.go([&] { ++begun; });
      for (const auto end = clock::now() + 200us; clock::now() < end;) {
      }
    }
    wg.wait();
    EXPECT_LT(before, others / 2);
  });
}

TEST(Timer, GivesTheTimeAtWhichItFired) {
  in_goroutine_and_thread([] {
    const auto start = clock::now();
    timer t(2ms);
    const auto fired = t.c().recv();
    ASSERT_TRUE(fired);
    EXPECT_GE(*fired - start, 2ms);
    EXPECT_LE(*fired, clock::now());
    EXPECT_FALSE(t.stop());
    EXPECT_TRUE(after(1ms).recv());
  });
}

TEST(Timer, OfNoTimeOrLessFiresAtOnce) {
  for (auto d : {0ns, -1ns, std::chrono::nanoseconds::min()}) {
    EXPECT_TRUE(timer(d).c().recv());
    chan<int> called(0);
    timer t = after_func(d, [=] { called.send(1); });
    EXPECT_EQ(called.recv(), 1);
  }
}

TEST(Timer, InAMillionYearsNeverFires) {
  timer t(std::chrono::hours::max());
  timer u = after_func(std::chrono::years(1'000'000), [] { ADD_FAILURE(); });
  EXPECT_FALSE(t.c().recv_for(5ms));
  EXPECT_TRUE(t.stop());
  EXPECT_TRUE(u.stop());
}

TEST(Timer, ThatIsStoppedDoesNotFire) {
  std::atomic<int> calls{0};
  timer t = after_func(5ms, [&] { ++calls; });
  EXPECT_TRUE(t.stop());
  EXPECT_FALSE(t.stop());
  timer u(5ms);
  EXPECT_TRUE(u.stop());
  EXPECT_FALSE(u.c().recv_for(20ms));
  EXPECT_EQ(calls, 0);
}

TEST(Timer, CanBeResetBeforeAndAfterItFired) {
  chan<int> calls(10);
  timer t = after_func(1h, [=] { calls.send(1); });
  EXPECT_TRUE(t.reset(1ms));
  EXPECT_EQ(calls.recv(), 1);
  EXPECT_FALSE(t.reset(1ms));
  EXPECT_EQ(calls.recv(), 1);
  EXPECT_FALSE(t.stop());
  EXPECT_FALSE(t.reset(1h));
  EXPECT_TRUE(t.stop());
  EXPECT_EQ(calls.len(), 0u);
}

TEST(Timer, HasNothingStaleInItsChannelAfterStopOrReset) {
  for (int i = 0; i < scaled(400); ++i) {
    timer t(std::chrono::microseconds(i % 50));
    if (i % 3 == 0) sleep_for(std::chrono::microseconds(i % 70));
    const auto before = clock::now();
    if (i % 2 == 0) {
      t.reset(200us);
      const auto fired = t.c().recv();
      ASSERT_TRUE(fired);
      ASSERT_GE(*fired - before, 200us) << "round " << i;
    } else {
      t.stop();
      ASSERT_FALSE(t.c().try_recv()) << "round " << i;
    }
  }
}

TEST(Timer, ThatFiredUnreceivedIsWaitingAsFarAsStopIsConcerned) {
  timer t(0s);
  ASSERT_TRUE(wait_until([&] { return has_fired(t); }));
  EXPECT_TRUE(t.stop());
  EXPECT_FALSE(t.c().try_recv());
  EXPECT_FALSE(t.stop());
}

// A receiver that holds the channel's lock takes the time out while stop() or reset() waits for the
// lock. However late they come, they have not kept the timer from firing.
TEST(Timer, ThatIsReceivedFromDuringStopOrResetWasNotStopped) {
  for (const bool stops : {true, false}) {
    timer t(0s);
    ASSERT_TRUE(wait_until([&] { return has_fired(t); }));
    const time_chan c = t.c();
    std::atomic<bool> begun{false};
    bool was_waiting = false;
    c.core()->lock.lock();
    std::thread other([&] {
      begun = true;
      was_waiting = stops ? t.stop() : t.reset(1h);
    });
    while (!begun) std::this_thread::yield();
    std::this_thread::sleep_for(20ms);
    time_point received;
    internal::Waiter* partner = nullptr;
    EXPECT_EQ(detail::try_recv_locked(c.core(), &received, partner), detail::chan_result::ok);
    c.core()->lock.unlock();
    other.join();
    EXPECT_FALSE(was_waiting) << (stops ? "stop" : "reset");
    EXPECT_EQ(t.stop(), !stops);
  }
}

TEST(Timer, HasAChannelWithoutLengthAndCapacity) {
  timer t(0s);
  ticker tick(1ms);
  EXPECT_EQ(t.c().cap() + tick.c().cap() + after(1ms).cap(), 0u);
  ASSERT_TRUE(wait_until([&] { return has_fired(t) && has_fired(tick); }));
  EXPECT_EQ(t.c().len() + tick.c().len(), 0u);
  EXPECT_TRUE(t.c().try_recv());
  EXPECT_TRUE(tick.c().recv());
}

TEST(Timer, CallsItsFunctionExactlyOnceHoweverStopAndResetRace) {
  for (int round = 0; round < scaled(2000); ++round) {
    std::atomic<int> calls{0};
    int expected = 1;
    timer t = after_func(std::chrono::microseconds(round % 20), [&] { ++calls; });
    wait_group wg;
    std::atomic<int> stopped{0};
    for (int i = 0; i < 2; ++i) wg.go([&] { stopped += t.stop() ? 1 : 0; });
    wg.wait();
    ASSERT_LE(stopped, 1);
    expected -= stopped;
    if (!t.reset(0s))
      ++expected;
    else
      ADD_FAILURE() << "neither stopped nor fired";
    ASSERT_TRUE(wait_until([&] { return calls == expected; })) << calls << " of " << expected;
  }
}

TEST(Timer, IsResetByManyAtOnceAndFiresOnceAfterTheLast) {
  for (int round = 0; round < scaled(200); ++round) {
    chan<int> calls(100);
    timer t = after_func(1h, [=] { calls.send(1); });
    wait_group wg;
    for (int i = 0; i < 8; ++i) wg.go([&] { t.reset(1h); });
    wg.wait();
    EXPECT_TRUE(t.reset(0s));
    EXPECT_EQ(calls.recv(), 1);
    EXPECT_FALSE(t.stop());
    EXPECT_EQ(calls.len(), 0u);
  }
}

TEST(Timer, WithoutAHandleStillFiresAndFreesItsFunction) {
  auto token = std::make_shared<int>(0);
  chan<int> called(0);
  after_func(1ms, [token, called] { called.send(1); });
  EXPECT_EQ(called.recv(), 1);
  EXPECT_TRUE(wait_until([&] { return token.use_count() == 1; }));
  {
    timer t = after_func(1h, [token] {});
    EXPECT_EQ(token.use_count(), 2);
    t.stop();
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST(Timer, FreesItsFunctionHoweverTimeStopAndTheEndOfItsHandleRace) {
  auto token = std::make_shared<int>(0);
  for (int round = 0; round < 3000; ++round) {
    {
      timer t = after_func(std::chrono::microseconds(round % 30), [token] {});
      for (int i = 0; i < round % 7; ++i) yield();
      if (round % 3 != 0) t.stop();
    }
    // No timer is made meanwhile that could sweep up what this one left.
    ASSERT_TRUE(wait_until([&] { return token.use_count() == 1; })) << round;
  }
}

TEST(Timer, TakesAFunctionThatCanOnlyBeMoved) {
  chan<int> got(0);
  timer t = after_func(0s, [p = std::make_unique<int>(7), got] { got.send(*p); });
  EXPECT_EQ(got.recv(), 7);
}

TEST(Timer, FiresWhileAllOtherGoroutinesSleep) {
  wait_group wg;
  wg.go([] {
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(after(500us).recv());
  });
  wg.wait();
}

TEST(Timer, FiresWhileOthersYieldWithoutEnd) {
  std::atomic<bool> stop{false};
  wait_group wg;
  for (int i = 0; i < 16; ++i) {
    wg.go([&] {
      while (!stop) yield();
    });
  }
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(after(1ms).recv());
  sleep_for(1ms);
  stop = true;
  wg.wait();
}

TEST(Timer, FromAnOrdinaryThreadFiresInAnIdleRuntime) {
  for (int i = 0; i < 20; ++i) {
    std::atomic<bool> called{false};
    timer t = after_func(100us, [&] { called = true; });
    ASSERT_TRUE(wait_until([&] { return called.load(); }));
    while (num_goroutine() != 0) std::this_thread::yield();
  }
}

TEST(Timer, SurvivesThatGomaxprocsShrinks) {
  const int before = gomaxprocs(8);
  chan<int> called(1000);
  constexpr int n = 200;
  wait_group wg;
  std::vector<timer> timers;
  mutex m;
  for (int i = 0; i < n; ++i) {
    wg.go([&, i] {
      timer t = after_func(1ms * (i % 10), [=] { called.send(1); });
      std::lock_guard guard(m);
      timers.push_back(std::move(t));
    });
  }
  wg.wait();
  gomaxprocs(1);
  for (int i = 0; i < n; ++i) EXPECT_TRUE(called.recv());
  gomaxprocs(before);
}

TEST(Timer, AMillionCanWaitAndBeStopped) {
  const int n = scaled(1'000'000);
  std::vector<timer> timers;
  timers.reserve(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) {
    timers.push_back(after_func(1h + std::chrono::microseconds(i * 7919L % 1'000'003), [] {}));
  }
  sleep_for(1ms);
  int stopped = 0;
  for (auto& t : timers) stopped += t.stop() ? 1 : 0;
  EXPECT_EQ(stopped, n);
}

// Timers that wait in the heaps of all processors.
std::size_t pending_timers() {
  std::size_t n = 0;
  for (const auto& p : internal::p_table.all) {
    if (internal::P* here = p.load(); here != nullptr) n += here->timers.count();
  }
  return n;
}

TEST(Timer, WithoutAPossibleReceiverIsStopped) {
  in_goroutine_and_thread([] {
    const std::size_t before = pending_timers();
    for (int i = 0; i < 1000; ++i) {
      static_cast<void>(after(1h));
      timer t(1h);
      time_chan copy = t.c();
      time_chan other = copy;
      t = timer();
      EXPECT_EQ(pending_timers(), before + 1) << "there are channels";
      copy = time_chan();
    }
    EXPECT_EQ(pending_timers(), before);
  });
}

TEST(Timer, OfASelectThatChoseAnotherCaseIsStopped) {
  in_goroutine_and_thread([] {
    const std::size_t before = pending_timers();
    chan<int> c(1);
    for (int i = 0; i < 100; ++i) {
      c.send(i);
      EXPECT_EQ(select(on_recv(c), on_recv(after(1h))), 0u);
      c.send(i);
      std::vector<any_case> cases;
      cases.emplace_back(on_recv(c));
      {
        const time_chan late = after(1h);
        cases.emplace_back(on_recv(late));
      }
      EXPECT_EQ(pending_timers(), before + 1) << "the case keeps its channel";
      EXPECT_EQ(select(cases), 0u);
    }
    EXPECT_EQ(pending_timers(), before);
  });
}

TEST(Timer, LeavesNothingIfItsLastHandleGoesAsItFires) {
  const std::size_t before = pending_timers();
  const int rounds = scaled(20'000);
  wait_group wg;
  for (int g = 0; g < 4; ++g) {
    wg.go([=] {
      for (int i = 0; i < rounds; ++i) {
        const auto soon = std::chrono::nanoseconds(i * 37 % 4000);
        time_chan c = after(soon);
        if (i % 4 == 1) yield();
        if (i % 4 == 2) sleep_for(soon);
        if (i % 64 == 3) {
          EXPECT_TRUE(c.recv());
        }
        if (i % 4 == 0) {
          ticker tick(soon + 1ns);
          c = tick.c();
          if (i % 8 == 0) {
            EXPECT_TRUE(c.recv());
          }
        }
      }
    });
  }
  wg.wait();
  EXPECT_TRUE(wait_until([&] { return pending_timers() == before; }));
}

TEST(Timer, WithAFunctionFiresThoughItsHandleIsGone) {
  chan<int> called(0);
  after_func(5ms, [called] { called.send(1); });
  EXPECT_EQ(called.recv(), 1);
}

TEST(Timer, ThatIsEmptyOrWasMovedFromDoesNothing) {
  timer none;
  timer t(1h);
  EXPECT_TRUE(t);
  const timer moved = std::move(t);
  for (const timer* empty : {&none, &t}) {
    EXPECT_FALSE(*empty);
    EXPECT_FALSE(empty->stop());
    EXPECT_FALSE(empty->c());
    EXPECT_THROW(empty->reset(1s), std::logic_error);
  }
  EXPECT_TRUE(moved.c());
  EXPECT_TRUE(moved.reset(2h));
  EXPECT_TRUE(moved.stop());
}

TEST(Ticker, ThatIsEmptyOrWasMovedFromDoesNothing) {
  ticker none;
  ticker t(1ms);
  EXPECT_TRUE(t);
  const ticker moved = std::move(t);
  for (const ticker* empty : {&none, &t}) {
    EXPECT_FALSE(*empty);
    empty->stop();
    EXPECT_FALSE(empty->c());
    EXPECT_THROW(empty->reset(1s), std::logic_error);
  }
  EXPECT_TRUE(moved.c().recv());
  moved.stop();
  moved.reset(1ms);
  EXPECT_TRUE(moved.c().recv());
}

TEST(Ticker, ThatIsReplacedStops) {
  const std::size_t before = pending_timers();
  ticker t(1h);
  t = ticker(2h);  // none that is due soon: one that just ticks is not counted
  EXPECT_EQ(pending_timers(), before + 1);
  t.reset(1ms);
  EXPECT_TRUE(t.c().recv());
}

TEST(Ticker, TicksUntilItIsStopped) {
  ticker t(1ms);
  const auto c = t.c();
  auto last = clock::now() - 1h;
  for (int i = 0; i < 10; ++i) {
    const auto tick = c.recv();
    ASSERT_TRUE(tick);
    EXPECT_GT(*tick, last);
    last = *tick;
  }
  t.stop();
  EXPECT_FALSE(c.recv_for(10ms));
  t.reset(1ms);
  EXPECT_TRUE(c.recv());
}

TEST(Ticker, DropsTicksForASlowReceiver) {
  ticker t(100us);
  sleep_for(20ms);
  EXPECT_LE(detail::chan_len(t.c().core()), 1u);
  EXPECT_TRUE(t.c().recv());
}

TEST(Ticker, StopsWhenItIsDestroyed) {
  time_chan c;
  {
    ticker t(1ms);
    c = t.c();
    EXPECT_TRUE(c.recv());
  }
  EXPECT_FALSE(c.recv_for(10ms));
}

TEST(Ticker, NeedsAPositiveInterval) {
  EXPECT_THROW(ticker(0s), std::invalid_argument);
  EXPECT_THROW(ticker(-1s), std::invalid_argument);
  ticker t(1h);
  EXPECT_THROW(t.reset(0s), std::invalid_argument);
}

TEST(Deadline, IsCutToWhatTheClockCanSay) {
  using detail::deadline_after;
  using detail::no_deadline;
  EXPECT_EQ(deadline_after(std::chrono::hours::max()), no_deadline);
  EXPECT_EQ(deadline_after(std::chrono::duration<double>(1e300)), no_deadline);
  EXPECT_EQ(deadline_after(std::chrono::hours::min()), 0);
  EXPECT_EQ(deadline_after(0s), 0);
  EXPECT_EQ(deadline_after(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())),
            0);
  EXPECT_GT(deadline_after(std::chrono::duration<double, std::nano>(0.1)), 0);
  EXPECT_EQ(detail::deadline_at(std::chrono::system_clock::time_point::min()), 0);
  EXPECT_EQ(detail::deadline_at(clock::time_point::max()), no_deadline);
}

}  // namespace
}  // namespace gofer
