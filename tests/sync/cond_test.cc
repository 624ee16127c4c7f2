// cond: which waiter is woken by what, in which order; limits of waiting; any lock.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/child.h"
#include "support/goroutines_and_threads.h"
#include "support/quiescent.h"
#include "support/report.h"
#include "support/scaled.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::ChildResult;
using test::in_goroutine_and_thread;
using test::quiescent;
using test::run_child;
using test::scaled;
using test::started;
using test::wait_until;

using Cond = test::QuiescentTest;

// A condition, its lock, and the number of waiters. A waiter counts itself under the lock, which it
// gives up by waiting. So a thread that sees the count under the lock knows that it waits.
struct Meeting {
  mutex m;
  cond c;
  int waiting = 0;
  std::vector<int> woken;  // in this order

  void wait(int number) {
    std::unique_lock lock(m);
    ++waiting;
    c.wait(lock);
    woken.push_back(number);
  }
  bool expect_waiting(int count) {
    return wait_until([&] {
      std::lock_guard guard(m);
      return waiting == count;
    });
  }
  std::size_t count_woken() {
    std::lock_guard guard(m);
    return woken.size();
  }
  bool expect_woken(std::size_t count) {
    return wait_until([&] { return count_woken() == count; });
  }
};

static_assert(!std::is_copy_constructible_v<cond> && !std::is_move_constructible_v<cond>);
static_assert(std::is_nothrow_default_constructible_v<cond>);
[[maybe_unused]] constinit cond global;

TEST_F(Cond, SignalsWithoutAWaiterAreNotKept) {
  in_goroutine_and_thread([] {
    mutex m;
    cond c;
    c.signal();
    c.broadcast();
    std::unique_lock lock(m);
    EXPECT_FALSE(c.wait_for(lock, 200us));
    EXPECT_TRUE(lock.owns_lock());
    EXPECT_FALSE(m.try_lock());
  });
}

TEST_F(Cond, SignalsGoToTheWaitersInTheirOrder) {
  Meeting meeting;
  const int count = 20;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    if (i % 5 == 4) {
      threads.emplace_back([&, i] { meeting.wait(i); });
    } else {
      started.go([&, i] { meeting.wait(i); });
    }
    ASSERT_TRUE(meeting.expect_waiting(i + 1));
  }
  EXPECT_EQ(meeting.count_woken(), 0u);
  for (std::size_t i = 0; i < count; ++i) {
    meeting.c.signal();
    ASSERT_TRUE(meeting.expect_woken(i + 1));
  }
  for (std::thread& t : threads) t.join();
  ASSERT_TRUE(quiescent());
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(meeting.woken[i], static_cast<int>(i));
}

TEST_F(Cond, SignalWakesExactlyOne) {
  Meeting meeting;
  for (int i = 0; i < 10; ++i) started.go([&, i] { meeting.wait(i); });
  ASSERT_TRUE(meeting.expect_waiting(10));
  for (std::size_t i = 1; i <= 10; ++i) {
    meeting.c.signal();
    ASSERT_TRUE(meeting.expect_woken(i));
    for (int k = 0; k < 50; ++k) yield();
    ASSERT_EQ(meeting.count_woken(), i);
  }
}

TEST_F(Cond, BroadcastWakesExactlyTheWaiters) {
  Meeting meeting;
  for (int round = 0; round < 20; ++round) {
    const int before = meeting.waiting;
    for (int i = 0; i < 10; ++i) started.go([&] { meeting.wait(round); });
    std::thread t([&] { meeting.wait(round); });
    ASSERT_TRUE(meeting.expect_waiting(before + 11));
    // One that comes while the others are woken waits for the next round.
    std::unique_lock lock(meeting.m);
    meeting.c.broadcast();
    std::atomic<bool> early{true};
    started.go([&] {
      std::unique_lock late(meeting.m);
      meeting.c.wait(late);
      EXPECT_FALSE(early);
    });
    lock.unlock();
    ASSERT_TRUE(meeting.expect_woken(static_cast<std::size_t>(11 * (round + 1))));
    t.join();
    ASSERT_TRUE(wait_until([] { return num_goroutine() == 1; }));
    early = false;
    ASSERT_TRUE(wait_until([&] {  // until it waits, a signal is lost
      meeting.c.broadcast();
      return num_goroutine() == 0;
    }));
  }
}

// The waiter that was signalled is slow to come; one that begins to wait meanwhile must not have
// its signal.
TEST_F(Cond, NoSignalIsStolenByALaterWaiter) {
  const int rounds = scaled(2000);
  for (int round = 0; round < rounds; ++round) {
    mutex m;
    cond c;
    bool first_waits = false;
    std::atomic<bool> first{false};
    std::atomic<bool> second{false};
    started.go([&] {
      std::unique_lock lock(m);
      first_waits = true;
      c.wait(lock);
      first = true;
    });
    ASSERT_TRUE(wait_until([&] {
      std::lock_guard guard(m);
      return first_waits;
    }));
    started.go([&] {
      std::unique_lock lock(m);
      c.signal();
      c.wait(lock);  // with the lock since the signal: surely the later one
      second = true;
    });
    ASSERT_TRUE(wait_until([&] { return first.load(); }));
    ASSERT_FALSE(second);
    ASSERT_TRUE(wait_until([] { return num_goroutine() == 1; }));
    {
      std::lock_guard guard(m);
      c.signal();
    }
    ASSERT_TRUE(wait_until([&] { return second.load(); }) && quiescent());
  }
}

TEST_F(Cond, PredicateIsCalledUntilItIsTrue) {
  in_goroutine_and_thread([] {
    mutex m;
    cond c;
    int value = 0;
    int asked = 0;
    wait_group group;
    std::unique_lock lock(m);
    group.go([&] {
      for (int i = 0; i < 5; ++i) {
        std::lock_guard guard(m);
        ++value;
        c.signal();
      }
    });
    c.wait(lock, [&] { return ++asked, value == 5; });
    EXPECT_EQ(value, 5);
    EXPECT_GE(asked, 2);
    c.wait(lock, [] { return true; });
    EXPECT_TRUE(c.wait_for(lock, 0s, [] { return true; }));
    EXPECT_FALSE(c.wait_for(lock, 1ms, [] { return false; }));
    EXPECT_TRUE(c.wait_for(lock, 10h, [&] { return value == 5; }));
    lock.unlock();
    group.wait();
  });
}

// A bounded queue with two conditions, built in the usual way.
template <class Lockable>
void pass_through_queue(int producers, int consumers, bool threads, int each) {
  Lockable m;
  cond not_full, not_empty;
  std::deque<int> queue;
  long sum = 0;
  const auto produce = [&] {
    for (int i = 1; i <= each; ++i) {
      std::unique_lock lock(m);
      not_full.wait(lock, [&] { return queue.size() < 3; });
      queue.push_back(i);
      not_empty.signal();
    }
  };
  const auto consume = [&] {
    for (int i = 0; i < each * producers / consumers; ++i) {
      std::unique_lock lock(m);
      not_empty.wait(lock, [&] { return !queue.empty(); });
      sum += queue.front();
      queue.pop_front();
      not_full.signal();
    }
  };
  wait_group group;
  std::vector<std::thread> plain;
  for (int i = 0; i < producers; ++i) {
    if (threads) {
      plain.emplace_back(produce);
    } else {
      group.go(produce);
    }
  }
  for (int i = 0; i < consumers; ++i) {
    if (threads && i % 2 == 0) {
      plain.emplace_back(consume);
    } else {
      group.go(consume);
    }
  }
  for (std::thread& t : plain) t.join();
  group.wait();
  EXPECT_EQ(sum, static_cast<long>(producers) * each * (each + 1) / 2);
  EXPECT_TRUE(queue.empty());
}

TEST_F(Cond, QueueOfTwoConditionsLosesNothing) {
  pass_through_queue<mutex>(4, 4, false, scaled(4000));
  pass_through_queue<mutex>(4, 2, true, scaled(1000));
  pass_through_queue<mutex>(1, 1, true, scaled(1000));
}

TEST_F(Cond, WorksWithTheStandardsMutexInThreads) {
  std::mutex m;
  cond c;
  int turn = 0;
  const int rounds = scaled(2000);
  std::vector<std::thread> threads;
  for (int who = 0; who < 3; ++who) {
    threads.emplace_back([&, who] {
      for (int i = 0; i < rounds; ++i) {
        std::unique_lock lock(m);
        c.wait(lock, [&] { return turn % 3 == who; });
        ++turn;
        c.broadcast();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(turn, 3 * rounds);
  std::unique_lock lock(m);
  EXPECT_FALSE(c.wait_for(lock, 100us));
  EXPECT_TRUE(lock.owns_lock());
}

TEST_F(Cond, WorksWithAnyLock) {
  in_goroutine_and_thread([] {
    cond c;
    rw_mutex rw;
    wait_group group;
    bool done = false;
    rw.lock();
    group.go([&] {
      std::lock_guard guard(rw);
      done = true;
      c.broadcast();
    });
    std::unique_lock writer(rw, std::adopt_lock);
    c.wait(writer, [&] { return done; });
    writer.unlock();
    group.wait();
    std::shared_lock reader(rw);
    EXPECT_FALSE(c.wait_for(reader, 100us));
    EXPECT_TRUE(rw.try_lock_shared());
    rw.unlock_shared();
    mutex bare;
    bare.lock();
    EXPECT_FALSE(c.wait_for(bare, 100us));
    EXPECT_FALSE(bare.try_lock()) << "it was locked again";
    bare.unlock();
  });
}

// The signal that comes from the waiter's own unlock() is one that comes after the call began.
TEST_F(Cond, SignalBeforeTheWaiterSleepsIsNotLost) {
  struct SignalsOnUnlock {
    cond& c;
    int locked = 1;
    void lock() { ++locked; }
    void unlock() {
      --locked;
      c.signal();
    }
  };
  in_goroutine_and_thread([] {
    cond c;
    SignalsOnUnlock lock{c};
    for (int i = 0; i < 1000; ++i) {
      c.wait(lock);
      EXPECT_TRUE(c.wait_for(lock, 1h));
      EXPECT_TRUE(c.wait_until(lock, steady_clock::time_point::max()));
    }
    EXPECT_EQ(lock.locked, 1);
  });
}

// ---------------------------------------------------------------- limits

TEST_F(Cond, TimeLimitsOfThePastDoNotWaitAndOthersAreNotOverTooEarly) {
  in_goroutine_and_thread([] {
    mutex m;
    cond c;
    std::unique_lock lock(m);
    EXPECT_FALSE(c.wait_for(lock, 0s));
    EXPECT_FALSE(c.wait_for(lock, -1ns));
    EXPECT_FALSE(c.wait_for(lock, -1h));
    EXPECT_FALSE(c.wait_for(lock, std::chrono::nanoseconds::min()));
    EXPECT_FALSE(c.wait_until(lock, steady_clock::time_point::min()));
    EXPECT_FALSE(c.wait_until(lock, steady_clock::time_point{}));
    EXPECT_FALSE(c.wait_until(lock, steady_clock::now() - 1s));
    EXPECT_FALSE(c.wait_until(lock, std::chrono::system_clock::now() - 1h));
    for (const auto d : {1us, 200us, 3000us}) {
      const auto begin = steady_clock::now();
      EXPECT_FALSE(c.wait_for(lock, d));
      EXPECT_FALSE(c.wait_until(lock, begin + 2 * d));
      EXPECT_GE(steady_clock::now() - begin, 2 * d);
    }
    EXPECT_TRUE(lock.owns_lock());
    EXPECT_FALSE(m.try_lock());
  });
}

TEST_F(Cond, HugeTimeLimitsLastUntilTheSignal) {
  in_goroutine_and_thread([] {
    mutex m;
    cond c;
    wait_group group;
    const auto signal_soon = [&] {
      group.go([&] {
        std::lock_guard guard(m);  // free once the other waits
        c.signal();
      });
    };
    std::unique_lock lock(m);
    signal_soon();
    EXPECT_TRUE(c.wait_for(lock, std::chrono::hours::max()));
    signal_soon();
    EXPECT_TRUE(c.wait_for(lock, std::chrono::duration<double>(1e300)));
    signal_soon();
    EXPECT_TRUE(c.wait_until(lock, steady_clock::time_point::max()));
    lock.unlock();
    group.wait();
  });
}

// Every signal is sent while a goroutine waits, so it must reach a waiter, unless all of them have
// given up. A waiter that gave up has no signal, and the next one gets it.
TEST_F(Cond, TimeoutThatMeetsTheSignalPassesItOn) {
  const int rounds = scaled(2000);
  int lost = 0;
  for (int round = 0; round < rounds; ++round) {
    mutex m;
    cond c;
    int waiting = 0;
    std::atomic<int> signalled{0};
    const auto limit = std::chrono::microseconds(20 + round % 100);
    const auto waiter = [&](auto d) {
      std::unique_lock lock(m);
      ++waiting;
      signalled += c.wait_for(lock, d);
    };
    const auto until = steady_clock::now() + limit;
    std::thread plain;
    if (round % 8 == 0) {
      plain = std::thread([&] { waiter(limit); });
    } else {
      started.go([&] { waiter(limit); });
    }
    started.go([&] { waiter(10h); });
    lost += !wait_until([&] {
      std::lock_guard guard(m);
      return waiting == 2;
    });
    while (steady_clock::now() < until) yield();
    c.signal();
    lost += !wait_until([&] { return signalled >= 1; });
    c.signal();  // for the second, if the first was the timed one
    if (plain.joinable()) plain.join();
    lost += !quiescent();
  }
  EXPECT_EQ(lost, 0);
}

TEST_F(Cond, TimeoutsThatRaceWithSignalsLoseNothing) {
  const int items = scaled(4000);
  mutex m;
  cond c;
  std::deque<int> queue;
  long sum = 0;
  bool closed = false;
  wait_group group;
  std::vector<std::thread> threads;
  const auto consume = [&](int who) {
    std::unique_lock lock(m);
    for (int i = 0; !closed || !queue.empty(); ++i) {
      if (queue.empty()) {
        c.wait_for(lock, std::chrono::microseconds((i * 7 + who * 13) % 60));
        continue;
      }
      sum += queue.front();
      queue.pop_front();
    }
  };
  for (int i = 0; i < 4; ++i) group.go([&, i] { consume(i); });
  threads.emplace_back([&] { consume(4); });
  for (int i = 1; i <= items; ++i) {
    {
      std::lock_guard guard(m);
      queue.push_back(i);
    }
    c.signal();
    if (i % 16 == 0) sleep_for(20us);
  }
  {
    std::lock_guard guard(m);
    closed = true;
  }
  c.broadcast();
  for (std::thread& t : threads) t.join();
  group.wait();
  EXPECT_EQ(sum, static_cast<long>(items) * (items + 1) / 2);
}

// ---------------------------------------------------------------- contexts

TEST_F(Cond, ContextThatIsDoneEndsTheWaitAtOnce) {
  in_goroutine_and_thread([] {
    mutex m;
    cond c;
    const auto [ctx, cancel] = with_cancel(background());
    cancel();
    std::unique_lock lock(m);
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(c.wait(ctx, lock));
    EXPECT_FALSE(c.wait(with_timeout(background(), -1s).ctx, lock));
    EXPECT_TRUE(lock.owns_lock());
    EXPECT_FALSE(m.try_lock());
  });
}

TEST_F(Cond, SignalEndsAWaitWithAContext) {
  in_goroutine_and_thread([] {
    mutex m;
    cond c;
    const auto [ctx, cancel] = with_cancel(background());
    wait_group group;
    for (const context& each : {ctx, background(), with_timeout(background(), 1h).ctx}) {
      std::unique_lock lock(m);
      group.go([&] {
        std::lock_guard guard(m);
        c.signal();
      });
      EXPECT_TRUE(c.wait(each, lock));
      EXPECT_TRUE(lock.owns_lock());
    }
    group.wait();
  });
}

TEST_F(Cond, CancelledContextEndsAllWaitsWithIt) {
  mutex m;
  cond c;
  const auto [ctx, cancel] = with_cancel(background());
  int waiting = 0;
  std::atomic<int> ended{0};
  std::atomic<int> signalled{0};
  const auto wait = [&, ctx = ctx] {
    std::unique_lock lock(m);
    ++waiting;
    signalled += c.wait(ctx, lock);
    ++ended;
  };
  for (int i = 0; i < 10; ++i) started.go([&] { wait(); });
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(wait);
  ASSERT_TRUE(wait_until([&] {
    std::lock_guard guard(m);
    return waiting == 13;
  }));
  EXPECT_EQ(ended, 0);
  cancel();
  for (std::thread& t : threads) t.join();
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(ended, 13);
  EXPECT_EQ(signalled, 0);
}

TEST_F(Cond, CancellationThatMeetsTheSignalPassesItOn) {
  const int rounds = scaled(2000);
  int lost = 0;
  for (int round = 0; round < rounds; ++round) {
    mutex m;
    cond c;
    int waiting = 0;
    std::atomic<int> signalled{0};
    const auto [ctx, cancel] = with_cancel(background());
    const auto waiter = [&](const context& limit) {
      std::unique_lock lock(m);
      ++waiting;
      signalled += c.wait(limit, lock);
    };
    started.go([&, ctx = ctx] { waiter(ctx); });
    started.go([&] { waiter(background()); });
    lost += !wait_until([&] {
      std::lock_guard guard(m);
      return waiting == 2;
    });
    started.go([cancel = cancel] { cancel(); });
    if (round % 2 == 0) yield();
    c.signal();
    lost += !wait_until([&] { return signalled >= 1; });
    c.signal();
    lost += !quiescent();
  }
  EXPECT_EQ(lost, 0);
}

// ---------------------------------------------------------------- reports

TEST_F(Cond, DeadlockReportNamesIt) {
  if (test::under_tsan) GTEST_SKIP() << "silent under TSan";
  const std::string asleep = "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 ";
  const ChildResult r = run_child("sync_misuse_child", {"waits_for_condition"});
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find(asleep + "[sync.Cond.Wait]:\n"), 0u) << r;
}

// A thread that waited before is not taken for one that still does.
void expect_help_after(const char* scenario) {
  const ChildResult r = run_child("sync_misuse_child", {scenario});
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "completed\n") << r;
}

TEST_F(Cond, WaitThatIsOverLeavesNoFalseDeadlock) {
  expect_help_after("helped_after_early_signal");
}

TEST_F(Cond, WaitWithAContextThatIsOverLeavesNoFalseDeadlock) {
  expect_help_after("helped_after_early_signal_with_context");
}

}  // namespace
}  // namespace gofer
