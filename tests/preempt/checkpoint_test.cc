// What users can do so that their goroutines cost no threads: checkpoints in long loops, and a
// limit for blocking calls.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <stdexcept>
#include <thread>

#include "os/thread.h"
#include "runtime/base/sanitizer.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

TEST(Checkpoint, DoesNothingInAnOrdinaryThread) { checkpoint(); }

TEST(Checkpoint, LetsOthersRun) {
  std::atomic<bool> stop{false};
  wait_group all;
  for (int i = 0; i < 2 * gomaxprocs(0); ++i) {
    all.go([&] {
      while (!stop) checkpoint();
    });
  }
  all.go([&] { stop = true; });
  all.wait();
}

// A goroutine that was paused goes on on its own thread, so it is one more.
TEST(Checkpoint, CostsNoThread) {
  const int before = internal::os::count_threads();
  ASSERT_GT(before, 0);
  std::atomic<int> most{0};
  std::atomic<bool> stop{false};
  constexpr int goroutines = 64;
  std::atomic<int> began{0};
  wait_group all;
  for (int i = 0; i < goroutines; ++i) {
    all.go([&] {
      ++began;
      while (!stop) {
        for (int k = 0; k < 1000; ++k) asm volatile("");
        checkpoint();
      }
    });
  }
  EXPECT_TRUE(test::wait_until([&] {
    const int now = internal::os::count_threads();
    if (now > most) most = now;
    return began == goroutines;
  }));
  stop = true;
  all.wait();
  // Some may be paused all the same, when their threads were without a core for long.
  EXPECT_LE(most, before + gomaxprocs(0) + goroutines / 4);
}

TEST(Checkpoint, DoesNotGiveWayWhereTheGoroutineMustNotBePaused) {
  std::atomic<bool> ran{false};
  wait_group all;
  all.go([&] {
    const no_preempt scope;
    for (int i = 0; i < 1'000'000; ++i) checkpoint();
    ran = true;
  });
  all.wait();
  EXPECT_TRUE(ran);
}

class MaxBlocking : public testing::Test {
 protected:
  void TearDown() override { set_max_blocking(0); }
};

TEST_F(MaxBlocking, IsNoLimitUntilItIsSetAndTellsTheOldOne) {
  EXPECT_EQ(set_max_blocking(-1), 0);
  EXPECT_EQ(set_max_blocking(7), 0);
  EXPECT_EQ(set_max_blocking(-1), 7);
  EXPECT_EQ(set_max_blocking(0), 7);
}

TEST_F(MaxBlocking, SoManyCallsRunAtOnceAndTheOthersWaitWithoutAThread) {
  constexpr int limit = 3;
  // Enough to tell a thread a call from the threads that a sanitizer's allocator costs on a busy
  // machine, where goroutines sleep for its locks.
  constexpr int calls = 600;
  set_max_blocking(limit);
  const int before = internal::os::count_threads();
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  std::atomic<int> threads{0};
  std::atomic<int> done{0};
  wait_group all;
  for (int i = 0; i < calls; ++i) {
    all.go([&] {
      blocking([&] {
        const int now = ++running;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
        }
        usleep(1000);
        const int has = internal::os::count_threads();
        for (int seen = threads; has > seen && !threads.compare_exchange_weak(seen, has);) {
        }
        --running;
        ++done;
      });
    });
  }
  all.wait();
  EXPECT_EQ(done, calls);
  EXPECT_LE(most, limit);
  EXPECT_LT(threads - before, calls / 2);
}

TEST_F(MaxBlocking, ACallInsideOfAnotherNeedsNoPlace) {
  set_max_blocking(1);
  int answer = 0;
  wait_group all;
  all.go([&] { answer = blocking([] { return blocking(handoff, [] { return 42; }); }); });
  all.wait();
  EXPECT_EQ(answer, 42);
}

TEST_F(MaxBlocking, APlaceIsGivenBackByACallThatThrows) {
  set_max_blocking(1);
  int caught = 0;
  wait_group all;
  for (int i = 0; i < 10; ++i) {
    all.go([&] {
      try {
        blocking([] { throw std::runtime_error("in a call"); });
      } catch (const std::runtime_error&) {
        blocking([&] { ++caught; });
      }
    });
  }
  all.wait();
  EXPECT_EQ(caught, 10);
}

TEST_F(MaxBlocking, ALargerLimitLetsWaitersGoAndNoneLetsAllGo) {
  set_max_blocking(1);
  std::atomic<bool> go_on{false};
  std::atomic<int> running{0};
  wait_group all;
  for (int i = 0; i < 8; ++i) {
    all.go([&] {
      blocking([&] {
        ++running;
        while (!go_on) usleep(100);
      });
    });
  }
  EXPECT_TRUE(test::wait_until([&] { return running == 1; }));
  set_max_blocking(3);
  EXPECT_TRUE(test::wait_until([&] { return running == 3; }));
  set_max_blocking(0);
  EXPECT_TRUE(test::wait_until([&] { return running == 8; }));
  go_on = true;
  all.wait();
}

TEST_F(MaxBlocking, DoesNotCountOrdinaryThreads) {
  set_max_blocking(1);
  std::atomic<bool> go_on{false};
  std::atomic<bool> inside{false};
  wait_group all;
  all.go([&] {
    blocking([&] {
      inside = true;
      while (!go_on) usleep(100);
    });
  });
  ASSERT_TRUE(test::wait_until([&] { return inside.load(); }));
  int answer = 0;
  std::thread([&] { answer = blocking([] { return 1; }); }).join();
  EXPECT_EQ(answer, 1);
  go_on = true;
  all.wait();
}

TEST_F(MaxBlocking, TheErrnoOfTheCallIsLeft) {
  set_max_blocking(2);
  int seen = 0;
  wait_group all;
  all.go([&] {
    const auto failed = blocking([] { return close(-1); });
    seen = failed == -1 ? errno : 0;
  });
  all.wait();
  EXPECT_EQ(seen, EBADF);
}

}  // namespace
}  // namespace gofer
