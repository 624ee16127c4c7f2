// Foreign threads beside goroutines: both start goroutines, wait for them and release them;
// threads come and go while the goroutines that they started stay.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "support/quiescent.h"
#include "support/scaled.h"
#include "support/start_detached.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using test::quiescent;
using test::wait_until;

constexpr int scaled(int count) { return test::scaled(count, 50); }

using Threads = test::QuiescentTest;

TEST_F(Threads, StartGoroutinesAtTheSameTime) {
  const int threads_count = 8;
  const int each = scaled(100'000);
  std::atomic<long> sum{0};
  wait_group group;
  std::vector<std::thread> threads;
  for (int t = 0; t < threads_count; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) group.go([&sum, n = t * each + i] { sum += n; });
    });
  }
  for (std::thread& t : threads) t.join();
  group.wait();
  const long n = static_cast<long>(threads_count) * each;
  EXPECT_EQ(sum, n * (n - 1) / 2);
  ASSERT_TRUE(quiescent());
}

TEST_F(Threads, AndGoroutinesStartGoroutinesTogether) {
  const int each = scaled(50'000);
  std::atomic<int> ran{0};
  wait_group group;
  const auto start_many = [&] {
    for (int i = 0; i < each; ++i) {
      group.go([&ran, i] {
        if (i % 16 == 0) yield();
        ++ran;
      });
    }
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back(start_many);
  for (int g = 0; g < 4; ++g) group.go(start_many);
  for (std::thread& t : threads) t.join();
  group.wait();
  EXPECT_EQ(ran, 8 * each);
}

TEST_F(Threads, WaitForGoroutinesWithoutStoppingOthers) {
  const int threads_count = 16;
  std::vector<std::thread> threads;
  std::array<wait_group, 16> groups;
  for (wait_group& g : groups) g.add(1);
  std::atomic<int> waiting{0};
  std::atomic<int> released{0};
  for (int t = 0; t < threads_count; ++t) {
    threads.emplace_back([&, t] {
      ++waiting;
      groups[static_cast<std::size_t>(t)].wait();
      ++released;
      // Each releases the next: a chain through threads and goroutines in turn.
      go([&, t] {
        if (t + 1 < threads_count) groups[static_cast<std::size_t>(t + 1)].done();
      });
    });
  }
  EXPECT_TRUE(wait_until([&] { return waiting == threads_count; }));
  EXPECT_EQ(run([] { return 1; }), 1);
  go([&] { groups[0].done(); });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(released, threads_count);
  ASSERT_TRUE(quiescent());
}

TEST_F(Threads, MayEndWhileTheirGoroutinesGoOn) {
  const int threads_count = 50;
  const int each = scaled(1000);
  wait_group gate;
  gate.add(1);
  std::atomic<int> finished{0};
  for (int t = 0; t < threads_count; ++t) {
    std::thread([&] {
      for (int i = 0; i < each; ++i) {
        go([&] {
          gate.wait();
          yield();
          ++finished;
        });
      }
    }).join();
  }
  EXPECT_EQ(finished, 0);
  EXPECT_EQ(num_goroutine(), static_cast<std::size_t>(threads_count * each));
  gate.done();
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(finished, threads_count * each);
}

TEST_F(Threads, ThatAreDetachedMayEndInAnyState) {
  const int count = scaled(2000);
  std::atomic<int> finished{0};
  std::atomic<int> ended{0};
  for (int i = 0; i < count; ++i) {
    test::start_detached([&, i] {
      go([&] { ++finished; });
      if (i % 2 == 0) run([] { yield(); });
      ++ended;
    });
  }
  EXPECT_TRUE(wait_until([&] { return ended == count && finished == count; })) << finished;
}

TEST_F(Threads, ThousandsOfShortOnesEachUseGofer) {
  const int rounds = scaled(1000);
  const int at_once = 4;
  std::atomic<long> sum{0};
  long expected = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < at_once; ++t) {
      const int n = round * at_once + t;
      expected += 2L * n + 1;
      threads.emplace_back([&sum, n] {
        wait_group group;
        group.go([&sum, n] { sum += n; });
        group.go([&sum] {
          yield();
          ++sum;
        });
        group.wait();
        sum += run([n] { return n; });
        yield();
      });
    }
    for (std::thread& t : threads) t.join();
  }
  EXPECT_EQ(sum, expected);
}

TEST_F(Threads, StartedByGoroutinesAreOrdinaryOnes) {
  std::atomic<int> sum{0};
  std::atomic<int> with_id{0};
  run([&] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        with_id += this_goroutine::id() != 0;
        sum += run([] { return 1; });
      });
    }
    // A join would block the goroutine's thread, and with one processor all goroutines: wait first.
    while (sum < 8) yield();
    for (std::thread& t : threads) t.join();
  });
  EXPECT_EQ(sum, 8);
  EXPECT_EQ(with_id, 0);
}

TEST_F(Threads, UseGoferFromThreadLocalDestructors) {
  static std::atomic<int> ran{0};
  ran = 0;
  struct AtEnd {
    ~AtEnd() {
      go([] { ++ran; });
      wait_group group;
      group.go([] { ++ran; });
      group.wait();
      ran += run([] { return 1; });
    }
  };
  const int count = scaled(500);
  for (int i = 0; i < count; ++i) {
    std::thread([] {
      thread_local AtEnd at_end;
      static_cast<void>(&at_end);
      run([] {});
    }).join();
  }
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(ran, 3 * count);
}

TEST_F(Threads, AndGoroutinesMeetAtABarrierManyTimes) {
  const int parties = 12;  // half of them threads
  const int rounds = scaled(3000);
  struct Round {
    wait_group arrived;
    std::atomic<int> passed{0};
  };
  std::vector<std::unique_ptr<Round>> barrier;
  for (int i = 0; i < rounds; ++i) {
    barrier.push_back(std::make_unique<Round>());
    barrier.back()->arrived.add(parties);
  }
  std::atomic<int> wrong{0};
  const auto party = [&] {
    for (int i = 0; i < rounds; ++i) {
      Round& r = *barrier[static_cast<std::size_t>(i)];
      wrong += r.passed != 0;  // none passes before all have arrived
      r.arrived.done();
      r.arrived.wait();
      ++r.passed;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < parties / 2; ++i) threads.emplace_back(party);
  wait_group group;
  for (int i = 0; i < parties - parties / 2; ++i) group.go(party);
  group.wait();
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  int passed = 0;
  for (const auto& r : barrier) passed += r->passed;
  EXPECT_EQ(passed, parties * rounds);
}

// No goroutine ever runs on a thread of the user's.
TEST_F(Threads, ExecuteNoGoroutines) {
  const pid_t mine = gettid();
  std::atomic<int> here{0};
  wait_group group;
  for (int i = 0; i < scaled(10'000); ++i) {
    group.go([&] {
      here += gettid() == mine;
      yield();
      here += gettid() == mine;
    });
  }
  group.wait();
  EXPECT_EQ(here, 0);
}

}  // namespace
}  // namespace gofer
