// rw_mutex with limits of waiting: times and contexts, and which waiter goes on when one gives up.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "support/goroutines_and_threads.h"
#include "support/quiescent.h"
#include "support/rw_mutex_state.h"
#include "support/scaled.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::all_asleep;
using test::in_all;
using test::in_goroutine_and_thread;
using test::is_free;
using test::quiescent;
using test::scaled;
using test::started;
using test::wait_until;
using test::writer_waits;

using RWMutex = test::QuiescentTest;

// ---------------------------------------------------------------- limits

TEST_F(RWMutex, AnyTimeLimitDoesForAFreeOne) {
  in_goroutine_and_thread([] {
    rw_mutex m;
    const auto try_both = [&](auto d) {
      EXPECT_TRUE(m.try_lock_for(d));
      m.unlock();
      EXPECT_TRUE(m.try_lock_shared_for(d));
      m.unlock_shared();
    };
    try_both(0s);
    try_both(-1h);
    try_both(std::chrono::nanoseconds::min());
    try_both(std::chrono::hours::max());
    try_both(std::chrono::duration<double>(1e300));
    for (const auto t : {steady_clock::time_point::min(), steady_clock::time_point::max()}) {
      EXPECT_TRUE(m.try_lock_until(t));
      m.unlock();
      EXPECT_TRUE(m.try_lock_shared_until(t));
      m.unlock_shared();
    }
    EXPECT_TRUE(is_free(m));
  });
}

TEST_F(RWMutex, TimeLimitsOfThePastDoNotWaitAndOthersAreNotOverTooEarly) {
  for (const bool written : {true, false}) {
    rw_mutex m;
    written ? m.lock() : m.lock_shared();
    in_goroutine_and_thread([&] {
      const auto fails = [&](auto d) {
        const auto begin = steady_clock::now();
        EXPECT_FALSE(m.try_lock_for(d));
        EXPECT_FALSE(written && m.try_lock_shared_for(d));
        EXPECT_GE(steady_clock::now() - begin, d);
      };
      fails(0s);
      fails(-1ns);
      fails(-1h);
      fails(std::chrono::nanoseconds::min());
      fails(1us);
      fails(2ms);
      for (const auto t : {steady_clock::time_point::min(), steady_clock::time_point{},
                           steady_clock::now() - 1s, steady_clock::now() + 100us}) {
        EXPECT_FALSE(m.try_lock_until(t));
        EXPECT_EQ(m.try_lock_shared_until(t), !written);
        if (!written) m.unlock_shared();
      }
    });
    written ? m.unlock() : m.unlock_shared();
    EXPECT_TRUE(is_free(m));
  }
}

TEST_F(RWMutex, HugeTimeLimitsLastUntilTheUnlock) {
  rw_mutex m;
  m.lock();
  std::atomic<int> began{0};
  std::atomic<int> got{0};
  std::thread all([&] {
    in_all(4, 4, [&](int i) {
      ++began;
      if (i % 2 == 0) {
        got += m.try_lock_for(std::chrono::hours::max());
        m.unlock();
      } else {
        got += m.try_lock_shared_until(steady_clock::time_point::max());
        m.unlock_shared();
      }
    });
  });
  EXPECT_TRUE(wait_until([&] { return began == 8; }) && all_asleep());
  EXPECT_EQ(got, 0);
  m.unlock();
  all.join();
  EXPECT_EQ(got, 8);
  EXPECT_TRUE(is_free(m));
}

// A reader is inside, a writer waits for it, and readers for the writer, which then gives up.
template <class Write, class GiveUp>
void let_readers_in(Write write, GiveUp give_up) {
  rw_mutex m;
  m.lock_shared();
  std::atomic<bool> gave_up{false};
  std::atomic<int> inside{0};
  std::atomic<int> together{0};
  started.go([&] {
    gave_up = !write(m);
    if (!gave_up) m.unlock();
  });
  // It waits, unless its time was over before the test could see that.
  ASSERT_TRUE(wait_until([&] {
    if (gave_up || !m.try_lock_shared()) return true;
    m.unlock_shared();
    return false;
  }));
  std::thread readers([&] {
    in_all(4, 2, [&](int) {
      std::shared_lock guard(m);
      ++inside;
      together += wait_until([&] { return inside == 6; });
    });
  });
  give_up();
  readers.join();
  ASSERT_TRUE(quiescent());
  EXPECT_TRUE(gave_up);
  EXPECT_EQ(together, 6);
  m.unlock_shared();
  EXPECT_TRUE(is_free(m));
}

TEST_F(RWMutex, WriterThatGivesUpLetsReadersIn) {
  for (int i = 0; i < 5; ++i) {
    let_readers_in([](rw_mutex& m) { return m.try_lock_for(20ms); }, [] {});
    const auto [ctx, cancel] = with_cancel(background());
    let_readers_in([ctx = ctx](rw_mutex& m) { return m.lock(ctx); }, cancel);
  }
}

TEST_F(RWMutex, OneOfTwoWritersThatGivesUpLetsNoReaderIn) {
  rw_mutex m;
  m.lock_shared();
  std::atomic<bool> written{false};
  started.go([&] {
    std::lock_guard guard(m);
    written = true;
  });
  ASSERT_TRUE(writer_waits(m));
  EXPECT_FALSE(m.try_lock_for(100us));
  EXPECT_FALSE(run([&] { return m.try_lock_for(100us); }));
  EXPECT_FALSE(m.try_lock_shared());
  EXPECT_FALSE(m.try_lock_shared_for(100us));
  EXPECT_FALSE(written);
  m.unlock_shared();
  ASSERT_TRUE(quiescent());
  EXPECT_TRUE(written);
  EXPECT_TRUE(is_free(m));
}

TEST_F(RWMutex, TimeoutsThatRaceWithUnlocksLoseNothing) {
  const int rounds = scaled(1000);
  for (const int patient : {0, 2}) {
    rw_mutex m;
    std::atomic<int> inside{0};
    std::atomic<int> wrong{0};
    constexpr int writing = 10'000;
    in_all(8, 2, [&](int who) {
      for (int i = 0; i < rounds; ++i) {
        const auto d = who < patient ? 10h : std::chrono::microseconds((i * 7 + who * 13) % 60);
        const bool writer = who % 3 == 0;
        if (!(writer ? m.try_lock_for(d) : m.try_lock_shared_for(d))) continue;
        wrong += inside.fetch_add(writer ? writing : 1) >= (writer ? 1 : writing);
        if (i % 3 == 0) yield();
        if (writer && i % 16 == 0) sleep_for(20us);
        inside -= writer ? writing : 1;
        writer ? m.unlock() : m.unlock_shared();
      }
    });
    EXPECT_EQ(wrong, 0);
    EXPECT_TRUE(is_free(m));
  }
}

// ---------------------------------------------------------------- contexts

TEST_F(RWMutex, ContextThatIsDoneEndsTheWaitAtOnce) {
  in_goroutine_and_thread([] {
    rw_mutex m;
    const auto [ctx, cancel] = with_cancel(background());
    cancel();
    m.lock();
    for (int i = 0; i < 100; ++i) {
      EXPECT_FALSE(m.lock(ctx));
      EXPECT_FALSE(m.lock_shared(ctx));
    }
    m.unlock();
    m.lock_shared();
    EXPECT_FALSE(m.lock(ctx));
    EXPECT_FALSE(m.lock(with_timeout(background(), -1s).ctx));
    EXPECT_TRUE(m.try_lock_shared()) << "no writer is left behind";
    m.unlock_shared();
    m.unlock_shared();
    EXPECT_TRUE(is_free(m));
  });
}

TEST_F(RWMutex, ContextThatDoesNotEndMakesNoDifference) {
  in_goroutine_and_thread([] {
    rw_mutex m;
    const auto [ctx, cancel] = with_cancel(background());
    for (const context& c : {ctx, background(), with_timeout(background(), 1h).ctx}) {
      EXPECT_TRUE(m.lock(c));
      EXPECT_FALSE(m.try_lock_shared());
      started.go([&] { m.unlock(); });
      EXPECT_TRUE(m.lock_shared(c));
      EXPECT_TRUE(m.lock_shared(c));
      m.unlock_shared();
      started.go([&] { m.unlock_shared(); });
      EXPECT_TRUE(m.lock(c));
      m.unlock();
    }
    EXPECT_TRUE(is_free(m));
  });
}

TEST_F(RWMutex, CancelledContextEndsAllWaitsWithIt) {
  rw_mutex m;
  m.lock();
  const auto [ctx, cancel] = with_cancel(background());
  std::atomic<int> began{0};
  std::atomic<int> ended{0};
  std::thread all([&, ctx = ctx] {
    in_all(8, 4, [&](int who) {
      ++began;
      EXPECT_FALSE(who % 2 == 0 ? m.lock(ctx) : m.lock_shared(ctx));
      ++ended;
    });
  });
  EXPECT_TRUE(wait_until([&] { return began == 12; }) && all_asleep());
  EXPECT_EQ(ended, 0);
  cancel();
  all.join();
  EXPECT_EQ(ended, 12);
  m.unlock();
  EXPECT_TRUE(is_free(m));
}

TEST_F(RWMutex, CancellationsThatRaceWithUnlocksLoseNothing) {
  const int rounds = scaled(1000);
  rw_mutex m;
  std::atomic<int> wrong{0};
  std::atomic<int> writers{0};
  in_all(4, 1, [&](int who) {
    for (int i = 0; i < rounds; ++i) {
      const auto [ctx, cancel] = with_cancel(background());
      wait_group canceller;
      canceller.go([&, cancel = cancel] {
        if (who % 2 == 0) yield();
        cancel();
      });
      const bool writer = (who + i) % 3 == 0;
      if (writer ? m.lock(ctx) : m.lock_shared(ctx)) {
        wrong += writers.fetch_add(writer) != 0;
        if (i % 4 == 0) yield();
        writers -= writer;
        writer ? m.unlock() : m.unlock_shared();
      }
      canceller.wait();
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(is_free(m));
}

}  // namespace
}  // namespace gofer
