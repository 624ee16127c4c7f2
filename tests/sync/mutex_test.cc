// mutex: exclusion, limits of waiting, fairness and destruction, among goroutines and threads.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/sanitizer.h"
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

using Mutex = test::QuiescentTest;

// It has no holder and no waiter, and it works.
testing::AssertionResult is_free(mutex& m) {
  if (!m.try_lock()) return testing::AssertionFailure() << "it is not free";
  if (m.try_lock()) return testing::AssertionFailure() << "it was locked twice";
  m.unlock();
  bool locked_by_goroutine = false;
  run([&] {
    std::lock_guard guard(m);
    locked_by_goroutine = true;
  });
  return testing::AssertionResult(locked_by_goroutine);
}

static_assert(!std::is_copy_constructible_v<mutex> && !std::is_move_constructible_v<mutex>);
static_assert(std::is_nothrow_default_constructible_v<mutex>);
static_assert(std::is_trivially_destructible_v<mutex>);

[[maybe_unused]] constinit mutex global;

TEST_F(Mutex, ExcludesGoroutinesAndThreads) {
  const int rounds = scaled(20'000);
  const int before = gomaxprocs(0);
  struct Case {
    int goroutines, threads;
    bool yields;
  };
  for (const int procs : {before, 1, 2, 4}) {
    gomaxprocs(procs);
    for (const Case c : {Case{1, 0, true}, Case{10, 0, false}, Case{10, 0, true}, Case{0, 4, false},
                         Case{6, 2, true}, Case{200, 2, false}}) {
      mutex m;
      long count = 0;
      bool inside = false;
      int wrong = 0;
      const int each = rounds / 4 / (c.goroutines + c.threads);
      in_all(c.goroutines, c.threads, [&](int) {
        for (int i = 0; i < each; ++i) {
          if (i % 4 != 0 || !m.try_lock()) m.lock();
          wrong += inside;
          inside = true;
          ++count;
          if (c.yields && i % 8 == 0) yield();
          inside = false;
          m.unlock();
        }
      });
      EXPECT_EQ(count, static_cast<long>(each) * (c.goroutines + c.threads));
      EXPECT_EQ(wrong, 0) << procs << " processors";
      EXPECT_TRUE(is_free(m));
    }
  }
  gomaxprocs(before);
}

TEST_F(Mutex, IsTakenByTheLocksOfTheStandard) {
  in_goroutine_and_thread([] {
    mutex a, b;
    {
      std::lock_guard guard(a);
      EXPECT_FALSE(a.try_lock());
    }
    {
      std::unique_lock lock(a, std::try_to_lock);
      EXPECT_TRUE(lock);
      EXPECT_FALSE(std::unique_lock(a, std::try_to_lock));
      EXPECT_FALSE(std::unique_lock(a, 1us));
      EXPECT_FALSE(std::unique_lock(a, steady_clock::now()));
      lock.unlock();
      EXPECT_TRUE(std::unique_lock(a, 1us));
      EXPECT_TRUE(lock.try_lock_for(0s));
    }
    {
      std::scoped_lock both(a, b);
      EXPECT_EQ(std::try_lock(a, b), 0);
      EXPECT_FALSE(b.try_lock());
    }
    EXPECT_EQ(std::try_lock(a, b), -1);
    EXPECT_EQ(std::try_lock(b, a), 0);
    a.unlock();
    EXPECT_EQ(std::try_lock(a, b), 1);
    EXPECT_TRUE(a.try_lock()) << "try_lock let it go again";
    a.unlock();
    b.unlock();
  });
}

TEST_F(Mutex, TwoAtOnceInAnyOrderDoNotDeadlock) {
  const int rounds = scaled(3000);
  mutex a, b;
  long sum = 0;
  in_all(4, 2, [&](int who) {
    for (int i = 0; i < rounds; ++i) {
      if (who % 2 == 0) {
        std::scoped_lock both(a, b);
        ++sum;
      } else {
        std::scoped_lock both(b, a);
        ++sum;
      }
    }
  });
  EXPECT_EQ(sum, 6L * rounds);
  EXPECT_TRUE(is_free(a));
  EXPECT_TRUE(is_free(b));
}

TEST_F(Mutex, TryLockTakesItOnlyIfItIsFree) {
  mutex m;
  EXPECT_TRUE(m.try_lock());
  EXPECT_FALSE(m.try_lock());
  EXPECT_FALSE(run([&] { return m.try_lock(); }));
  std::thread([&] { EXPECT_FALSE(m.try_lock()); }).join();
  m.unlock();
  EXPECT_TRUE(run([&] { return m.try_lock(); }));
  EXPECT_FALSE(m.try_lock());
  m.unlock();
  EXPECT_TRUE(is_free(m));
}

// ---------------------------------------------------------------- another unlocks

TEST_F(Mutex, MayBeUnlockedByAnother) {
  mutex m;
  in_goroutine_and_thread([&] {
    for (int i = 0; i < 100; ++i) {
      m.lock();
      started.go([&] { m.unlock(); });
      m.lock();
      std::thread([&] { m.unlock(); }).join();
      m.lock();
      m.unlock();
    }
  });
  EXPECT_TRUE(is_free(m));
}

TEST_F(Mutex, GoesToTheWaitersInOrderIfNoNewcomerComes) {
  mutex m;
  std::vector<int> order;
  std::atomic<int> began{0};
  m.lock();
  const int count = 20;
  for (int i = 0; i < count; ++i) {
    started.go([&, i] {
      ++began;
      std::lock_guard guard(m);
      order.push_back(i);
    });
    ASSERT_TRUE(wait_until([&] { return began == i + 1; }) && all_asleep());
  }
  m.unlock();
  ASSERT_TRUE(quiescent());
  for (int i = 0; i < count; ++i) EXPECT_EQ(order.at(static_cast<std::size_t>(i)), i);
  EXPECT_TRUE(is_free(m));
}

TEST_F(Mutex, IsUnlockedWhenItsHolderEndsByGoexit) {
  mutex m;
  started.go([&] {
    std::lock_guard guard(m);
    goexit();
  });
  ASSERT_TRUE(quiescent());
  EXPECT_TRUE(is_free(m));
}

// ---------------------------------------------------------------- time limits

TEST_F(Mutex, AnyTimeLimitDoesForAFreeOne) {
  in_goroutine_and_thread([] {
    mutex m;
    const auto ok = [&](bool locked) {
      if (locked) m.unlock();
      return locked;
    };
    EXPECT_TRUE(ok(m.try_lock_for(0s)));
    EXPECT_TRUE(ok(m.try_lock_for(-1h)));
    EXPECT_TRUE(ok(m.try_lock_for(std::chrono::nanoseconds::min())));
    EXPECT_TRUE(ok(m.try_lock_for(std::chrono::hours::max())));
    EXPECT_TRUE(ok(m.try_lock_for(std::chrono::duration<double>(1e300))));
    EXPECT_TRUE(ok(m.try_lock_until(steady_clock::time_point::min())));
    EXPECT_TRUE(ok(m.try_lock_until(steady_clock::time_point::max())));
    EXPECT_TRUE(ok(m.try_lock_until(std::chrono::system_clock::now() - 1h)));
    EXPECT_TRUE(is_free(m));
  });
}

TEST_F(Mutex, TimeLimitsOfThePastDoNotWait) {
  mutex m;
  m.lock();
  in_goroutine_and_thread([&] {
    EXPECT_FALSE(m.try_lock_for(0s));
    EXPECT_FALSE(m.try_lock_for(-1ns));
    EXPECT_FALSE(m.try_lock_for(-1h));
    EXPECT_FALSE(m.try_lock_for(std::chrono::nanoseconds::min()));
    EXPECT_FALSE(m.try_lock_for(std::chrono::hours::min()));
    EXPECT_FALSE(m.try_lock_for(std::chrono::duration<double>(-1e300)));
    EXPECT_FALSE(
        m.try_lock_for(std::chrono::duration<float>(std::numeric_limits<float>::quiet_NaN())));
    EXPECT_FALSE(m.try_lock_until(steady_clock::time_point{}));
    EXPECT_FALSE(m.try_lock_until(steady_clock::time_point::min()));
    EXPECT_FALSE(m.try_lock_until(steady_clock::now() - 1s));
    EXPECT_FALSE(m.try_lock_until(std::chrono::system_clock::now() - 1h));
  });
  m.unlock();
  EXPECT_TRUE(is_free(m));
}

TEST_F(Mutex, TimeLimitsAreNotOverTooEarly) {
  mutex m;
  m.lock();
  in_goroutine_and_thread([&] {
    for (const auto d : {1us, 200us, 3000us}) {
      const auto begin = steady_clock::now();
      EXPECT_FALSE(m.try_lock_for(d));
      EXPECT_FALSE(m.try_lock_until(begin + 2 * d));
      EXPECT_FALSE(m.try_lock_until(std::chrono::system_clock::now() + d));
      EXPECT_GE(steady_clock::now() - begin, 2 * d);
    }
  });
  m.unlock();
  EXPECT_TRUE(is_free(m));
}

TEST_F(Mutex, HugeTimeLimitsLastUntilTheUnlock) {
  mutex m;
  m.lock();
  std::atomic<int> began{0};
  std::atomic<int> got{0};
  const auto wait = [&](int i) {
    ++began;
    const bool locked = i % 3 == 0   ? m.try_lock_for(std::chrono::hours::max())
                        : i % 3 == 1 ? m.try_lock_until(steady_clock::time_point::max())
                                     : m.try_lock_for(std::chrono::duration<double>(1e300));
    got += locked;
    if (locked) m.unlock();
  };
  std::thread all([&] { in_all(4, 4, wait); });
  EXPECT_TRUE(wait_until([&] { return began == 8; }) && all_asleep());
  EXPECT_EQ(got, 0);
  m.unlock();
  all.join();
  EXPECT_EQ(got, 8);
  EXPECT_TRUE(is_free(m));
}

TEST_F(Mutex, TimeoutsThatRaceWithUnlocksLoseNothing) {
  const int rounds = scaled(1000);
  for (const int patient : {0, 2}) {
    mutex m;
    int inside = 0;
    int wrong = 0;
    std::atomic<long> got{0};
    std::atomic<long> late{0};
    in_all(6, 2, [&](int who) {
      for (int i = 0; i < rounds; ++i) {
        const bool locked =
            who < patient ? (m.lock(), true)
                          : m.try_lock_for(std::chrono::microseconds((i * 7 + who * 13) % 60));
        if (!locked) {
          ++late;
          continue;
        }
        wrong += inside++ != 0;
        if (i % 3 == 0) yield();
        if (i % 16 == 0) sleep_for(20us);
        --inside;
        ++got;
        m.unlock();
      }
    });
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(got + late, 8L * rounds);
    EXPECT_GE(got, static_cast<long>(patient) * rounds);
    EXPECT_TRUE(is_free(m));
  }
}

// One unlock and one timeout at about the same moment, with another waiter behind.
TEST_F(Mutex, TimeoutThatMeetsTheUnlockPassesItOn) {
  const int rounds = scaled(2000);
  int lost = 0;
  for (int i = 0; i < rounds; ++i) {
    mutex m;
    m.lock();
    wait_group group;
    const auto limit = std::chrono::microseconds(i % 100);
    group.go([&] {
      if (m.try_lock_for(limit)) m.unlock();
    });
    group.go([&] {
      m.lock();
      m.unlock();
    });
    const auto until = steady_clock::now() + limit;
    while (steady_clock::now() < until) yield();
    m.unlock();
    group.wait();
    lost += !m.try_lock();
  }
  EXPECT_EQ(lost, 0);
}

// ---------------------------------------------------------------- contexts

TEST_F(Mutex, ContextThatIsDoneEndsTheWaitAtOnce) {
  in_goroutine_and_thread([] {
    mutex m;
    m.lock();
    const auto [ctx, cancel] = with_cancel(background());
    cancel();
    for (int i = 0; i < 100; ++i) EXPECT_FALSE(m.lock(ctx));
    EXPECT_FALSE(m.lock(with_timeout(background(), -1s).ctx));
    m.unlock();
    EXPECT_TRUE(is_free(m));
  });
}

TEST_F(Mutex, ContextThatDoesNotEndMakesNoDifference) {
  in_goroutine_and_thread([] {
    mutex m;
    const auto [ctx, cancel] = with_cancel(background());
    for (const context& c : {ctx, background(), with_timeout(background(), 1h).ctx}) {
      EXPECT_TRUE(m.lock(c));
      EXPECT_FALSE(m.try_lock());
      started.go([&] { m.unlock(); });
      EXPECT_TRUE(m.lock(c));
      m.unlock();
    }
    EXPECT_TRUE(is_free(m));
  });
}

TEST_F(Mutex, CancelledContextEndsAllWaitsWithIt) {
  mutex m;
  m.lock();
  const auto [ctx, cancel] = with_cancel(background());
  std::atomic<int> began{0};
  std::atomic<int> ended{0};
  std::atomic<int> got{0};
  std::thread all([&, ctx = ctx] {
    in_all(10, 3, [&](int who) {
      ++began;
      if (who == 0) {  // waits without it
        m.lock();
        m.unlock();
      } else if (m.lock(ctx)) {
        ++got;
        m.unlock();
      }
      ++ended;
    });
  });
  EXPECT_TRUE(wait_until([&] { return began == 13; }) && all_asleep());
  EXPECT_EQ(ended, 0);
  cancel();
  EXPECT_TRUE(wait_until([&] { return ended == 12; }));
  EXPECT_EQ(got, 0);
  m.unlock();
  all.join();
  EXPECT_TRUE(is_free(m));
}

TEST_F(Mutex, DeadlineOfAContextEndsTheWait) {
  mutex m;
  m.lock();
  in_goroutine_and_thread([&] {
    const auto begin = steady_clock::now();
    const auto [ctx, cancel] = with_timeout(background(), 2ms);
    EXPECT_FALSE(m.lock(ctx));
    EXPECT_GE(steady_clock::now() - begin, 2ms);
    EXPECT_EQ(ctx.err(), std::errc::timed_out);
  });
  m.unlock();
  EXPECT_TRUE(is_free(m));
}

TEST_F(Mutex, CancellationsThatRaceWithUnlocksLoseNothing) {
  const int rounds = scaled(1000);
  mutex m;
  int inside = 0;
  int wrong = 0;
  std::atomic<long> ended{0};
  in_all(3, 1, [&](int who) {
    for (int i = 0; i < rounds; ++i) {
      const auto [ctx, cancel] = with_cancel(background());
      wait_group canceller;
      canceller.go([&, cancel = cancel] {
        if (who % 2 == 0) yield();
        cancel();
      });
      if (m.lock(ctx)) {
        wrong += inside++ != 0;
        if (i % 4 == 0) yield();
        --inside;
        m.unlock();
      }
      canceller.wait();
      ++ended;
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(ended, 4L * rounds);
  EXPECT_TRUE(is_free(m));
}

// ---------------------------------------------------------------- fairness

// One holds the mutex nearly always; another wants it now and then.
template <class Hold>
bool gets_it_ten_times(bool greedy_thread, bool modest_thread, Hold hold) {
  mutex m;
  std::atomic<bool> stop{false};
  std::atomic<int> got{0};
  const auto greedy = [&] {
    while (!stop) {
      m.lock();
      hold();
      m.unlock();
    }
  };
  const auto modest = [&] {
    for (int i = 0; i < 10; ++i) {
      sleep_for(100us);
      m.lock();
      m.unlock();
      ++got;
    }
  };
  std::vector<std::thread> threads;
  const auto begin = [&](bool thread, auto& f) {
    if (thread) return void(threads.emplace_back(std::ref(f)));
    started.go(std::ref(f));
  };
  begin(greedy_thread, greedy);
  begin(modest_thread, modest);
  const bool enough = wait_until([&] { return got == 10; });
  stop = true;
  for (std::thread& t : threads) t.join();
  return quiescent() && enough && is_free(m);
}

TEST_F(Mutex, IsNotStarvedByARivalThatSleepsWithIt) {
  for (const bool greedy : {false, true}) {
    for (const bool modest : {false, true}) {
      EXPECT_TRUE(gets_it_ten_times(greedy, modest, [] { sleep_for(100us); }));
    }
  }
}

TEST_F(Mutex, IsNotStarvedByARivalThatComputesWithIt) {
  const auto compute = [] {
    const auto until = steady_clock::now() + 100us;
    while (steady_clock::now() < until) continue;
  };
  for (const bool greedy : {false, true}) {
    for (const bool modest : {false, true}) {
      if (!greedy && gomaxprocs(0) == 1) continue;  // no yield in it: no other goroutine runs
      EXPECT_TRUE(gets_it_ten_times(greedy, modest, compute));
    }
  }
}

// ---------------------------------------------------------------- destruction

// The goroutine that drops the last reference destroys the mutex, while others may still be on
// their way out of unlock(). They must not change that memory any more; ASan also finds reads.
TEST_F(Mutex, MayBeDestroyedByItsLastOwner) {
  struct Counted {
    mutex m;
    int owners = 0;
  };
  using Bytes = std::array<unsigned char, sizeof(Counted)>;
  const int rounds = scaled(5000);
  for (const int threads : {0, 1}) {
    const int own = threads == 0 ? 4 : 2;
    int wrong = 0;
    Bytes bytes;
    for (int round = 0; round < rounds / (1 + 4 * threads); ++round) {
      auto* counted =
          internal::asan_enabled ? new Counted : ::new (static_cast<void*>(&bytes)) Counted;
      counted->owners = own + threads;
      in_all(own, threads, [&](int who) {
        if ((round + who) % 5 == 0) yield();
        while (!counted->m.try_lock_for(who == 0 ? 5us : 1h)) continue;
        const bool last = --counted->owners == 0;
        counted->m.unlock();
        if (!last) return;
        if (internal::asan_enabled) delete counted;
        bytes.fill(0xa5);
      });
      for (const unsigned char b : bytes) wrong += b != 0xa5;
    }
    EXPECT_EQ(wrong, 0);
  }
}

// ---------------------------------------------------------------- reports

TEST_F(Mutex, UnlockOfAnUnlockedOneIsFatal) {
  for (const char* scenario : {"mutex_never_locked", "mutex_after_use", "mutex_after_a_mixture",
                               "mutex_unlocked_by_two"}) {
    for (const char* where : {"goroutine", "thread"}) {
      SCOPED_TRACE(std::string(scenario) + " in a " + where);
      const ChildResult r = run_child("sync_misuse_child", {scenario, where});
      EXPECT_TRUE(r.exited_with(2)) << r;
      EXPECT_EQ(r.err.find("fatal error: sync: unlock of unlocked mutex\n"), 0u) << r;
      EXPECT_EQ(r.out, std::string(scenario) == "mutex_never_locked" ? "" : "used\n") << r;
    }
  }
}

TEST_F(Mutex, DeadlockReportNamesIt) {
  if (test::under_tsan) GTEST_SKIP() << "silent under TSan";
  const ChildResult r = run_child("sync_misuse_child", {"waits_for_mutex"});
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_EQ(r.err.find("fatal error: all goroutines are asleep - deadlock!\n\n"
                       "goroutine 1 [sync.Mutex.Lock]:\n"),
            0u)
      << r;
}

}  // namespace
}  // namespace gofer
