// stats(): each figure is what the documentation says, at rest, at work, and while work is stolen.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "support/model_gm.h"
#include "support/quiescent.h"
#include "support/scaled.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using test::model_gm;
using test::quiescent;
using test::scaled;
using test::wait_until;

template <class T>
std::uint64_t total(const scheduler_stats& s, T processor_stats::*field) {
  std::uint64_t sum = 0;
  for (const processor_stats& p : s.procs) sum += p.*field;
  return sum;
}

using Stats = test::QuiescentTest;

bool consistent(const scheduler_stats& s) {
  bool ok = s.gomaxprocs >= 1 && s.procs.size() == static_cast<std::size_t>(s.gomaxprocs) &&
            s.idle_procs >= 0 && s.idle_procs <= s.gomaxprocs && s.threads >= 1 &&
            s.idle_threads >= 0 && s.idle_threads <= s.threads && s.spinning_threads >= 0 &&
            s.spinning_threads <= s.threads;
  for (const processor_stats& p : s.procs) {
    ok = ok && p.stolen >= p.steals && p.queued <= 257;
  }
  return ok;
}

TEST_F(Stats, AtRestEverythingIsIdle) {
  run([] {});
  EXPECT_TRUE(wait_until([] {
    const scheduler_stats s = stats();
    return s.idle_procs == s.gomaxprocs && s.idle_threads == s.threads && s.spinning_threads == 0;
  }));
  const scheduler_stats s = stats();
  EXPECT_TRUE(consistent(s));
  EXPECT_EQ(s.gomaxprocs, gomaxprocs(0));
  EXPECT_EQ(s.global_queue, 0u);
  EXPECT_EQ(s.goroutines, 0u);
  EXPECT_EQ(total(s, &processor_stats::queued), 0u);
  const scheduler_stats again = stats();
  EXPECT_EQ(total(again, &processor_stats::switches), total(s, &processor_stats::switches));
}

TEST_F(Stats, CountEveryStart) {
  const auto count = static_cast<std::uint64_t>(scaled(20'000));
  ASSERT_TRUE(quiescent());
  const scheduler_stats before = stats();
  run([&] {
    wait_group group;
    for (std::uint64_t i = 0; i < count; ++i) group.go([] { yield(); });
    group.wait();
  });
  for (std::uint64_t i = 0; i < count; ++i) go([] {});
  ASSERT_TRUE(quiescent());
  const scheduler_stats after = stats();
  const auto started =
      total(after, &processor_stats::started) - total(before, &processor_stats::started);
  const auto switches =
      total(after, &processor_stats::switches) - total(before, &processor_stats::switches);
  EXPECT_EQ(started, 2 * count + 1);
  EXPECT_GE(switches, started);
  EXPECT_TRUE(consistent(after));
}

TEST_F(Stats, SeenFromAGoroutineCountItself) {
  const scheduler_stats s = run([] { return stats(); });
  EXPECT_TRUE(consistent(s));
  EXPECT_LT(s.idle_procs, s.gomaxprocs);
  EXPECT_LT(s.idle_threads, s.threads);
  EXPECT_GE(s.goroutines, 1u);
}

TEST_F(Stats, CountParkedGoroutinesButDoNotQueueThem) {
  const auto count = static_cast<std::size_t>(scaled(2000));
  wait_group gate;
  gate.add(1);
  for (std::size_t i = 0; i < count; ++i) go([&] { gate.wait(); });
  EXPECT_TRUE(wait_until([] {
    const scheduler_stats s = stats();
    return s.idle_procs == s.gomaxprocs && s.global_queue == 0 &&
           total(s, &processor_stats::queued) == 0;
  }));
  EXPECT_EQ(stats().goroutines, count);
  gate.done();
  ASSERT_TRUE(quiescent());
}

// With one processor, what a goroutine starts stays in the queues until it waits.
TEST_F(Stats, ShowQueuedGoroutines) {
  const int procs = gomaxprocs(1);
  for (const std::size_t count : {1u, 100u, 257u, 258u, 1000u}) {
    const scheduler_stats s = run([&] {
      const no_preempt whole;  // the kernel may let its slice pass without it
      for (std::size_t i = 0; i < count; ++i) go([] {});
      return stats();
    });
    const auto local = total(s, &processor_stats::queued);
    EXPECT_EQ(s.global_queue + local, count);
    EXPECT_EQ(s.goroutines, count + 1);
    EXPECT_EQ(s.procs.size(), 1u);
    if (model_gm()) {
      EXPECT_EQ(local, 0u);
    } else if (count <= 257) {
      EXPECT_EQ(s.global_queue, 0u) << "256 and the next to run fit into the local queue";
    } else {
      EXPECT_GE(s.global_queue, 129u) << "an overflow moves half of the queue and the newcomer";
    }
    ASSERT_TRUE(quiescent());
  }
  gomaxprocs(procs);
}

TEST_F(Stats, CountSteals) {
  const auto work_by_one = [] {
    run([] {
      wait_group group;
      for (int i = 0; i < 200; ++i) {
        group.go([] {
          volatile int x = 0;
          for (int k = 0; k < 20'000; ++k) x = x + k;
        });
      }
      group.wait();
    });
  };
  const scheduler_stats before = stats();
  const auto stolen_since = [&](auto field) {
    return total(stats(), field) - total(before, field);
  };
  if (gomaxprocs(0) > 1 && !model_gm()) {
    EXPECT_TRUE(wait_until([&] {
      work_by_one();
      return stolen_since(&processor_stats::steals) >= 3;
    }));
    EXPECT_GE(stolen_since(&processor_stats::stolen), stolen_since(&processor_stats::steals));
    // The work was done by more than one.
    const scheduler_stats after = stats();
    int busy = 0;
    for (std::size_t i = 0; i < after.procs.size(); ++i) {
      busy += after.procs[i].started > before.procs[i].started;
    }
    EXPECT_GE(busy, 2);
  } else {
    for (int i = 0; i < 5; ++i) work_by_one();
    EXPECT_EQ(stolen_since(&processor_stats::steals), 0u);
    EXPECT_EQ(stolen_since(&processor_stats::stolen), 0u);
  }
}

TEST_F(Stats, MayBeReadByAnyoneAtAnyTime) {
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::atomic<int> read{0};
  const auto read_on = [&] {
    std::uint64_t switches = 0;
    while (!stop) {
      const scheduler_stats s = stats();
      const auto now = total(s, &processor_stats::switches);
      wrong += !consistent(s) || now < switches;
      switches = now;
      ++read;
      yield();
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back(read_on);
  go(read_on);
  for (int i = 0; i < scaled(400); ++i) {
    run([] {
      wait_group group;
      for (int k = 0; k < 100; ++k) group.go([] { yield(); });
      group.wait();
    });
  }
  EXPECT_TRUE(wait_until([&] { return read >= 10; }));
  stop = true;
  for (std::thread& t : threads) t.join();
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(wrong, 0);
}

TEST_F(Stats, FollowGomaxprocs) {
  const int procs = gomaxprocs(0);
  for (const int n : {1, 3, 16, 2}) {
    gomaxprocs(n);
    const scheduler_stats s = stats();
    EXPECT_EQ(s.gomaxprocs, n);
    EXPECT_EQ(s.procs.size(), static_cast<std::size_t>(n));
    EXPECT_TRUE(consistent(s));
    run([] {
      wait_group group;
      for (int i = 0; i < 100; ++i) group.go([] { yield(); });
      group.wait();
    });
    ASSERT_TRUE(quiescent());
  }
  gomaxprocs(procs);
}

}  // namespace
}  // namespace gofer
