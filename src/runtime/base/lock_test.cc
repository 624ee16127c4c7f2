// gofer-test: once
// The runtime's locks: mutual exclusion, no thread sleeps for ever, and the order of the ranks.
#include "runtime/base/lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "runtime/base/sanitizer.h"

namespace gofer::internal {
namespace {

TEST(Lock, LetsOneThreadInAtATime) {
  constexpr int threads = 8;
  const int rounds = sanitizers_enabled ? 5'000 : 50'000;
  Lock lock{LockRank::sched};
  int64_t plain = 0;
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  std::vector<std::thread> crowd;
  for (int t = 0; t < threads; ++t) {
    crowd.emplace_back([&, t] {
      for (int i = 0; i < rounds; ++i) {
        LockGuard guard(lock);
        if (inside.fetch_add(1, std::memory_order_relaxed) != 0) overlaps.fetch_add(1);
        ++plain;
        // Some stay long enough for the others to fall asleep.
        if ((i + t) % 512 == 0) std::this_thread::yield();
        inside.fetch_sub(1, std::memory_order_relaxed);
      }
    });
  }
  for (auto& thread : crowd) thread.join();
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(plain, int64_t{threads} * rounds);
  EXPECT_TRUE(lock.try_lock());
  lock.unlock();
}

TEST(Lock, WakesEverySleeperInTurn) {
  constexpr int threads = 6;
  const int rounds = sanitizers_enabled ? 20 : 100;
  for (int round = 0; round < rounds; ++round) {
    Lock lock{LockRank::sched};
    std::atomic<int> waiting{0};
    std::atomic<int> done{0};
    std::vector<std::thread> crowd;
    lock.lock();
    for (int t = 0; t < threads; ++t) {
      crowd.emplace_back([&] {
        waiting.fetch_add(1);
        LockGuard guard(lock);
        done.fetch_add(1);
      });
    }
    while (waiting != threads) std::this_thread::yield();
    // Long beyond the spin: they sleep, most of them.
    for (int i = 0; i < 20; ++i) std::this_thread::yield();
    EXPECT_EQ(done, 0);
    lock.unlock();
    for (auto& thread : crowd) thread.join();
    EXPECT_EQ(done, threads);
  }
}

TEST(Lock, TryLockTakesAFreeLockOnly) {
  Lock lock{LockRank::sched};
  EXPECT_TRUE(lock.try_lock());
  std::thread([&] { EXPECT_FALSE(lock.try_lock()); }).join();
  lock.unlock();
  std::thread([&] {
    EXPECT_TRUE(lock.try_lock());
    lock.unlock();
  }).join();
}

TEST(Lock, TryLockExcludesLock) {
  const int rounds = sanitizers_enabled ? 5'000 : 100'000;
  Lock lock{LockRank::sched};
  int64_t plain = 0;
  int64_t tried = 0;
  std::thread other([&] {
    for (int i = 0; i < rounds; ++i) {
      LockGuard guard(lock);
      ++plain;
    }
  });
  for (int i = 0; i < rounds; ++i) {
    if (!lock.try_lock()) continue;
    ++plain;
    ++tried;
    lock.unlock();
  }
  other.join();
  EXPECT_EQ(plain, rounds + tried);
}

TEST(Lock, RanksMayRiseAndAreForgottenAfterUnlock) {
  Lock world{LockRank::world};
  Lock sched{LockRank::sched};
  Lock stacks{LockRank::stacks};
  for (int i = 0; i < 20; ++i) {
    LockGuard a(world);
    LockGuard b(sched);
    LockGuard c(stacks);
  }
  LockGuard a(world);
  std::thread([&] { EXPECT_FALSE(world.try_lock()); }).join();
}

// Each runs in a process of its own that is to end in an assertion.
class LockDeathTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!checks_enabled) GTEST_SKIP() << "ranks are checked in builds with GOFER_CHECKS only";
    testing::FLAGS_gtest_death_test_style = "threadsafe";
  }
};

TEST_F(LockDeathTest, AFallingRankIsCaught) {
  EXPECT_DEATH(
      {
        Lock stacks{LockRank::stacks};
        Lock sched{LockRank::sched};
        stacks.lock();
        sched.lock();
      },
      "locks are taken in the order of their ranks");
}

TEST_F(LockDeathTest, TwoOfOneRankAreCaught) {
  EXPECT_DEATH(
      {
        Lock a{LockRank::primitive};
        Lock b{LockRank::primitive};
        a.lock();
        b.lock();
      },
      "locks are taken in the order of their ranks");
}

TEST_F(LockDeathTest, TryLockObeysTheRanksToo) {
  EXPECT_DEATH(
      {
        Lock stacks{LockRank::stacks};
        Lock world{LockRank::world};
        stacks.lock();
        world.try_lock();
      },
      "locks are taken in the order of their ranks");
}

TEST_F(LockDeathTest, UnlockingInTheWrongOrderIsCaught) {
  EXPECT_DEATH(
      {
        Lock world{LockRank::world};
        Lock sched{LockRank::sched};
        world.lock();
        sched.lock();
        world.unlock();
      },
      "locks are released in the reverse order of taking");
}

TEST_F(LockDeathTest, UnlockingWhatIsNotHeldIsCaught) {
  EXPECT_DEATH(
      {
        Lock sched{LockRank::sched};
        sched.unlock();
      },
      "locks are released in the reverse order of taking");
}

}  // namespace
}  // namespace gofer::internal
