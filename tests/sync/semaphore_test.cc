// semaphore, once, latch and barrier: which goroutine goes on, when, and how often.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
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
using test::all_asleep;
using test::ChildResult;
using test::in_all;
using test::in_goroutine_and_thread;
using test::quiescent;
using test::run_child;
using test::scaled;
using test::started;
using test::wait_until;

using Semaphore = test::QuiescentTest;
using Once = test::QuiescentTest;
using Latch = test::QuiescentTest;
using Barrier = test::QuiescentTest;

// ---------------------------------------------------------------- semaphore

static_assert(!std::is_copy_constructible_v<semaphore> && !std::is_move_constructible_v<semaphore>);
static_assert(!std::is_convertible_v<int, semaphore>);
[[maybe_unused]] constinit semaphore global(1);

// A goroutine that takes n permits and notes its number; the caller knows that it waits.
struct Line {
  semaphore s;
  std::atomic<int> began{0};
  mutex m;
  std::vector<int> order;

  explicit Line(std::int64_t permits) : s(permits) {}
  void note(int number) {
    std::lock_guard guard(m);
    order.push_back(number);
  }
  bool join(int number, std::int64_t n) {
    const int before = began;
    started.go([this, number, n] {
      ++began;
      s.acquire(n);
      note(number);
    });
    return wait_until([&] { return began == before + 1; }) && all_asleep();
  }
  std::vector<int> served() {
    EXPECT_TRUE(all_asleep());
    std::lock_guard guard(m);
    return order;
  }
};

TEST_F(Semaphore, CountsItsPermits) {
  in_goroutine_and_thread([] {
    semaphore s(5);
    EXPECT_EQ(s.available(), 5);
    s.acquire(2);
    EXPECT_EQ(s.available(), 3);
    EXPECT_FALSE(s.try_acquire(4));
    EXPECT_TRUE(s.try_acquire(3));
    EXPECT_FALSE(s.try_acquire());
    EXPECT_TRUE(s.try_acquire(0));
    s.acquire(0);
    s.release(0);
    EXPECT_EQ(s.available(), 0);
    s.release(4);
    s.release();
    EXPECT_EQ(s.available(), 5);
    s.release(3);
    EXPECT_TRUE(s.try_acquire(8)) << "permits may be added";
  });
}

TEST_F(Semaphore, NegativeAmountsAreRefused) {
  in_goroutine_and_thread([] {
    EXPECT_THROW(semaphore(-1), std::invalid_argument);
    semaphore s(3);
    const auto [ctx, cancel] = with_cancel(background());
    EXPECT_THROW(s.acquire(-1), std::invalid_argument);
    EXPECT_THROW(static_cast<void>(s.try_acquire(-1)), std::invalid_argument);
    EXPECT_THROW(static_cast<void>(s.try_acquire_for(1s, -1)), std::invalid_argument);
    EXPECT_THROW(static_cast<void>(s.try_acquire_until(steady_clock::now(), -2)),
                 std::invalid_argument);
    EXPECT_THROW(static_cast<void>(s.acquire(ctx, -1)), std::invalid_argument);
    EXPECT_THROW(s.release(-1), std::invalid_argument);
    EXPECT_THROW(s.release(std::numeric_limits<std::int64_t>::min()), std::invalid_argument);
    EXPECT_EQ(s.available(), 3);
  });
}

TEST_F(Semaphore, NeverGivesMoreThanItHas) {
  const int rounds = scaled(3000);
  semaphore s(4);
  std::atomic<std::int64_t> out{0};
  std::atomic<int> wrong{0};
  in_all(8, 3, [&](int who) {
    const std::int64_t n = 1 + who % 4;
    for (int i = 0; i < rounds; ++i) {
      s.acquire(n);
      wrong += out.fetch_add(n) + n > 4;
      if (i % 8 == 0) yield();
      out -= n;
      s.release(n);
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(s.available(), 4);
}

TEST_F(Semaphore, ServesItsWaitersInTheirOrder) {
  Line line(0);
  const std::vector<std::int64_t> amounts{1, 3, 1, 2, 1};
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(line.join(i, amounts[static_cast<std::size_t>(i)]));
  line.s.release(1);
  EXPECT_EQ(line.served(), (std::vector<int>{0}));
  line.s.release(2);
  EXPECT_EQ(line.served(), (std::vector<int>{0})) << "two do not do for three";
  EXPECT_EQ(line.s.available(), 2);
  EXPECT_FALSE(line.s.try_acquire(1)) << "others wait in front";
  EXPECT_FALSE(line.s.try_acquire(0)) << "others wait in front";
  EXPECT_FALSE(line.s.try_acquire_for(100us, 2));
  line.s.release(1);
  EXPECT_EQ(line.served(), (std::vector<int>{0, 1}));
  line.s.release(10);
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(line.order.size(), 5u);
  EXPECT_EQ(line.s.available(), 6);
}

// Small requests come all the time, and there is always a permit for them.
TEST_F(Semaphore, LargeRequestIsNotStarvedBySmallOnes) {
  const std::int64_t all = 4;
  semaphore s(all);
  std::atomic<bool> stop{false};
  for (int i = 0; i < 6; ++i) {
    started.go([&] {
      while (!stop) {
        s.acquire();
        yield();
        s.release();
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    s.acquire(all);
    s.release(all);
    run([&] {
      s.acquire(all);
      s.release(all);
    });
  }
  stop = true;
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(s.available(), all);
}

TEST_F(Semaphore, TimeLimitsOfThePastDoNotWaitAndOthersAreNotOverTooEarly) {
  in_goroutine_and_thread([] {
    semaphore s(1);
    EXPECT_TRUE(s.try_acquire_for(-1h));
    for (const auto d : {0us, -1us, 1us, 200us, 3000us}) {
      const auto begin = steady_clock::now();
      EXPECT_FALSE(s.try_acquire_for(d));
      EXPECT_FALSE(s.try_acquire_until(begin + 2 * d, 5));
      EXPECT_GE(steady_clock::now() - begin, 2 * d);
    }
    EXPECT_FALSE(s.try_acquire_for(std::chrono::nanoseconds::min()));
    EXPECT_FALSE(s.try_acquire_until(steady_clock::time_point::min()));
    EXPECT_FALSE(s.try_acquire_until(std::chrono::system_clock::now() - 1h));
    EXPECT_EQ(s.available(), 0);
    started.go([&] { s.release(); });
    EXPECT_TRUE(s.try_acquire_for(std::chrono::hours::max()));
    started.go([&] { s.release(); });
    EXPECT_TRUE(s.try_acquire_until(steady_clock::time_point::max()));
    EXPECT_EQ(s.available(), 0);
  });
}

// The first in the line wants more than there is and gives up; those behind it can be served.
TEST_F(Semaphore, WaiterThatGivesUpLetsTheNextOnesIn) {
  for (const bool with_context : {false, true}) {
    Line line(3);
    line.s.acquire();
    const auto [ctx, cancel] = with_cancel(background());
    std::atomic<bool> got{false};
    started.go([&, ctx = ctx] {
      ++line.began;
      got = with_context ? line.s.acquire(ctx, 3) : line.s.try_acquire_for(20ms, 3);
    });
    ASSERT_TRUE(wait_until([&] { return line.began == 1; }));
    if (with_context) {
      ASSERT_TRUE(all_asleep());
      ASSERT_TRUE(line.join(0, 1) && line.join(1, 1));
      EXPECT_TRUE(line.served().empty());
      EXPECT_EQ(line.s.available(), 2);
    } else {
      in_all(1, 1, [&](int i) {
        line.s.acquire();
        line.note(i);
      });
    }
    cancel();
    ASSERT_TRUE(quiescent());
    EXPECT_FALSE(got);
    EXPECT_EQ(line.order.size(), 2u);
    EXPECT_EQ(line.s.available(), 0);
  }
}

// There may never be as many permits, so waiters that come later do not wait for that.
TEST_F(Semaphore, WaiterForMoreThanThereAreDoesNotBlockOthers) {
  for (const bool with_context : {false, true}) {
    Line line(2);
    const auto [ctx, cancel] = with_cancel(background());
    const auto acquire = [&, ctx = ctx](std::int64_t n) {
      return with_context ? line.s.acquire(ctx, n) : line.s.try_acquire_for(1h, n);
    };
    std::atomic<int> got{0};
    for (const std::int64_t n : {3, 9, 4}) {
      started.go([&, acquire, n] { got += acquire(n); });
      ASSERT_TRUE(all_asleep());
    }
    EXPECT_TRUE(line.s.try_acquire(2));
    ASSERT_TRUE(line.join(0, 1) && line.join(1, 2));
    line.s.release(1);
    line.s.release(1);
    EXPECT_EQ(line.served(), (std::vector<int>{0}));
    line.s.release(1);
    EXPECT_EQ(line.served(), (std::vector<int>{0, 1}));
    line.s.release(2);
    EXPECT_EQ(got, 0) << "all are back, and they are two";
    EXPECT_EQ(line.s.available(), 2);
    line.s.release(1);
    ASSERT_TRUE(all_asleep());
    EXPECT_EQ(got, 1) << "now there are three";
    line.s.release(4);
    ASSERT_TRUE(all_asleep());
    EXPECT_EQ(got, 2) << "now there are four";
    EXPECT_EQ(line.s.available(), 0);
    line.s.release(5);
    if (with_context) {
      cancel();
    } else {
      line.s.release(4);
    }
    ASSERT_TRUE(quiescent());
    EXPECT_EQ(got, with_context ? 2 : 3);
    EXPECT_EQ(line.s.available(), with_context ? 5 : 0);
  }
}

TEST_F(Semaphore, TimeoutsThatRaceWithReleasesLoseNothing) {
  const int rounds = scaled(1500);
  semaphore s(3);
  std::atomic<std::int64_t> out{0};
  std::atomic<int> wrong{0};
  in_all(6, 2, [&](int who) {
    const std::int64_t n = 1 + who % 3;
    for (int i = 0; i < rounds; ++i) {
      if (!s.try_acquire_for(std::chrono::microseconds((i * 7 + who * 13) % 60), n)) continue;
      wrong += out.fetch_add(n) + n > 3;
      if (i % 3 == 0) yield();
      if (i % 16 == 0) sleep_for(20us);
      out -= n;
      s.release(n);
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(s.available(), 3);
  EXPECT_TRUE(s.try_acquire(3)) << "nobody is left in the line";
}

TEST_F(Semaphore, ContextEndsTheWait) {
  in_goroutine_and_thread([] {
    semaphore s(2);
    const auto [ctx, cancel] = with_cancel(background());
    EXPECT_TRUE(s.acquire(ctx));
    EXPECT_TRUE(s.acquire(background()));
    started.go([&] { s.release(2); });
    EXPECT_TRUE(s.acquire(ctx, 2));
    EXPECT_FALSE(s.acquire(with_timeout(background(), 1ms).ctx));
    started.go([cancel = cancel] { cancel(); });
    EXPECT_FALSE(s.acquire(ctx));
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(s.acquire(ctx, i % 3 + 1));
    EXPECT_EQ(s.available(), 0);
    s.release(2);
    EXPECT_TRUE(s.try_acquire(2)) << "nobody is left in the line";
  });
}

TEST_F(Semaphore, CancellationsThatRaceWithReleasesLoseNothing) {
  const int rounds = scaled(1000);
  semaphore s(2);
  std::atomic<std::int64_t> out{0};
  std::atomic<int> wrong{0};
  in_all(4, 1, [&](int who) {
    const std::int64_t n = 1 + who % 2;
    for (int i = 0; i < rounds; ++i) {
      const auto [ctx, cancel] = with_cancel(background());
      wait_group canceller;
      canceller.go([&, cancel = cancel] {
        if (who % 2 == 0) yield();
        cancel();
      });
      if (s.acquire(ctx, n)) {
        wrong += out.fetch_add(n) + n > 2;
        if (i % 4 == 0) yield();
        out -= n;
        s.release(n);
      }
      canceller.wait();
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(s.available(), 2);
  EXPECT_TRUE(s.try_acquire(2)) << "nobody is left in the line";
}

TEST_F(Semaphore, DeadlockReportNamesIt) {
  if (test::under_tsan) GTEST_SKIP() << "silent under TSan";
  const std::string asleep = "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 ";
  ChildResult r = run_child("sync_misuse_child", {"waits_for_permit"});
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find(asleep + "[semacquire]:\n"), 0u) << r;
  r = run_child("sync_misuse_child", {"waits_with_context"});
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find(asleep + "[semacquire]:\n"), 0u) << r;
  for (const char* reason :
       {"[sync.Mutex.Lock]", "[sync.RWMutex.RLock]", "[sync.RWMutex.Lock]", "[sync.Cond.Wait]"}) {
    EXPECT_EQ(test::count_of(r.err, reason), 1) << reason << r;
  }
}

// ---------------------------------------------------------------- once

TEST_F(Once, RunsOnceAndTheOthersWaitForTheEnd) {
  for (int round = 0; round < scaled(1000) / 10; ++round) {
    once o;
    int value = 0;  // not atomic: a goroutine that returns from call() sees it
    std::atomic<int> wrong{0};
    in_all(10, 2, [&](int) {
      o.call([&] {
        for (int i = 0; i < 10; ++i) yield();
        ++value;
      });
      wrong += value != 1;
    });
    EXPECT_EQ(wrong, 0);
  }
}

TEST_F(Once, OthersReturnOnlyWhenItIsOver) {
  once o;
  std::atomic<bool> inside{false};
  std::atomic<bool> let_go{false};
  std::atomic<int> returned{0};
  started.go([&] {
    o.call([&] {
      inside = true;
      EXPECT_TRUE(wait_until([&] { return let_go.load(); }));
    });
  });
  ASSERT_TRUE(wait_until([&] { return inside.load(); }));
  for (int i = 0; i < 5; ++i) {
    started.go([&] {
      o.call([] { FAIL() << "a second time"; });
      ++returned;
    });
  }
  std::thread t([&] {
    o.call([] { FAIL() << "a second time"; });
    ++returned;
  });
  for (int i = 0; i < 100; ++i) yield();
  EXPECT_EQ(returned, 0);
  let_go = true;
  t.join();
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(returned, 6);
}

TEST_F(Once, ThatThrowsHasNotHappened) {
  in_goroutine_and_thread([] {
    once o;
    int calls = 0;
    const auto fail = [&] {
      ++calls;
      throw std::runtime_error("not yet");
    };
    EXPECT_THROW(o.call(fail), std::runtime_error);
    EXPECT_THROW(o.call(fail), std::runtime_error);
    o.call([&] { ++calls; });
    o.call(fail);
    EXPECT_EQ(calls, 3);
  });
}

TEST_F(Once, ThatThrowsIsTriedAgainByAWaiter) {
  once o;
  std::atomic<int> tries{0};
  std::atomic<int> thrown{0};
  in_all(10, 2, [&](int) {
    try {
      o.call([&] {
        yield();
        if (++tries < 5) throw std::runtime_error("not yet");
      });
    } catch (const std::runtime_error&) {
      ++thrown;
    }
  });
  EXPECT_EQ(tries, 5);
  EXPECT_EQ(thrown, 4);
}

TEST_F(Once, PassesArgumentsOnAndMayEndByGoexit) {
  once o;
  started.go([&] { o.call([] { goexit(); }); });
  ASSERT_TRUE(quiescent());
  int sum = 0;
  o.call([&](std::unique_ptr<int> p, int& total) { total += *p; }, std::make_unique<int>(7), sum);
  EXPECT_EQ(sum, 7);
}

// ---------------------------------------------------------------- latch

TEST_F(Latch, OpensAtZero) {
  latch open(0);
  open.wait();
  latch l(3);
  std::atomic<int> passed{0};
  started.go([&] {
    l.wait();
    ++passed;
  });
  l.count_down(2);
  ASSERT_TRUE(all_asleep());
  EXPECT_EQ(passed, 0);
  run([&] { l.count_down(); });
  l.wait();
  l.wait();
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(passed, 1);
}

TEST_F(Latch, NoWaiterPassesBeforeTheLastArrival) {
  latch l(12);
  std::atomic<int> arrived{0};
  std::atomic<int> wrong{0};
  in_all(8, 2, [&](int who) {
    arrived += who == 0 ? 3 : 1;
    l.arrive_and_wait(who == 0 ? 3 : 1);
    wrong += arrived != 12;
    l.wait();
  });
  EXPECT_EQ(wrong, 0);
}

// ---------------------------------------------------------------- barrier

// Two meetings a phase: one to look at what all have done, one before it changes again.
TEST_F(Barrier, KeepsAllInTheSamePhase) {
  const int phases = scaled(800);
  const int all = 8;
  int completed = 0;  // not atomic: changes only while all wait
  std::atomic<int> arrived{0};
  std::atomic<int> wrong{0};
  barrier b(all, [&] { ++completed; });
  in_all(all - 2, 2, [&](int who) {
    for (int phase = 0; phase < phases; ++phase) {
      if ((phase + who) % 5 == 0) yield();
      wrong += completed != 2 * phase;
      ++arrived;
      b.arrive_and_wait();
      wrong += arrived != all * (phase + 1);
      wrong += completed != 2 * phase + 1;
      b.arrive_and_wait();
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(completed, 2 * phases);
}

TEST_F(Barrier, OfOneNeverWaits) {
  in_goroutine_and_thread([] {
    int completed = 0;
    barrier b(1, [&] { ++completed; });
    for (int i = 0; i < 100; ++i) b.arrive_and_wait();
    EXPECT_EQ(completed, 100);
    barrier plain(1);
    plain.arrive_and_wait();
    plain.arrive_and_drop();
  });
}

// Each takes part in one phase more than the one before it, and then drops out.
TEST_F(Barrier, DoesNotWaitForAGoroutineThatDroppedOut) {
  const int count = 10;
  std::vector<int> seen(count + 1);
  std::atomic<int> in_phase{0};
  std::size_t phase = 0;
  barrier b(count, [&] {
    seen[phase++] = in_phase;
    in_phase = 0;
  });
  in_all(count - 2, 2, [&](int who) {
    for (int i = 0; i < who; ++i) {
      ++in_phase;
      b.arrive_and_wait();
    }
    ++in_phase;
    b.arrive_and_drop();
  });
  EXPECT_EQ(phase, static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) EXPECT_EQ(seen[static_cast<std::size_t>(i)], count - i) << i;
}

TEST_F(Barrier, EndsThePhaseWhenTheCompletionThrows) {
  bool throws = true;
  barrier b(3, [&] {
    if (throws) throw std::runtime_error("completion");
  });
  std::atomic<int> released{0};
  for (int i = 0; i < 2; ++i) {
    started.go([&] {
      b.arrive_and_wait();
      ++released;
      b.arrive_and_wait();
      ++released;
    });
  }
  ASSERT_TRUE(all_asleep());
  EXPECT_THROW(b.arrive_and_wait(), std::runtime_error);
  ASSERT_TRUE(wait_until([&] { return released == 2; }));
  throws = false;
  b.arrive_and_wait();
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(released, 4);
}

TEST_F(Barrier, EndsThePhaseWhenTheCompletionOfOneThatDropsOutThrows) {
  barrier b(2, [] { throw std::runtime_error("completion"); });
  const auto token = b.arrive();
  EXPECT_THROW(b.arrive_and_drop(), std::runtime_error);
  b.wait(token);
  EXPECT_THROW(b.arrive_and_wait(), std::runtime_error) << "one participant is left";
}

TEST_F(Barrier, DropOfTheLastReleasesTheOthers) {
  barrier b(4);
  std::atomic<int> released{0};
  for (int i = 0; i < 3; ++i) {
    started.go([&] {
      b.arrive_and_wait();
      ++released;
      b.arrive_and_wait();
      ++released;
    });
  }
  ASSERT_TRUE(all_asleep());
  EXPECT_EQ(released, 0);
  b.arrive_and_drop();
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(released, 6);
}

}  // namespace
}  // namespace gofer
