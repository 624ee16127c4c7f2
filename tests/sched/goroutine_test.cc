// What goroutines have and do: ids, names, counts, yield.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/sanitizer.h"
#include "support/child.h"
#include "support/quiescent.h"
#include "support/scaled.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using test::quiescent;
using test::run_child;
using test::wait_until;

constexpr int scaled(int count) { return test::scaled(count, 50); }

using Goroutine = test::QuiescentTest;
using Yield = test::QuiescentTest;

// ---------------------------------------------------------------- ids, names, counts

TEST_F(Goroutine, PlainThreadHasNoIdAndNoName) {
  EXPECT_EQ(this_goroutine::id(), 0u);
  EXPECT_EQ(this_goroutine::name(), "");
  run([] {});
  EXPECT_EQ(this_goroutine::id(), 0u);
  std::thread([] {
    EXPECT_EQ(this_goroutine::id(), 0u);
    EXPECT_EQ(this_goroutine::name(), "");
  }).join();
}

// Whatever call is the first to use the runtime.
TEST_F(Goroutine, FirstOneHasNumberOne) {
  for (const char* first :
       {"run", "go", "yield", "stats", "gomaxprocs", "num_cpu", "counts", "locks", "wait_group"}) {
    const test::ChildResult r = run_child("use_first", {first});
    EXPECT_TRUE(r.exited_with(0)) << first << r;
    EXPECT_EQ(r.out, "id 1\n") << first << r;
  }
}

TEST_F(Goroutine, IdsAreNeverReused) {
  const int count = scaled(20'000);
  std::vector<std::uint64_t> ids(static_cast<std::size_t>(3 * count));
  const auto spawn = [&](int from) {
    wait_group group;
    for (int i = from; i < from + count; ++i) {
      group.go([&slot = ids[static_cast<std::size_t>(i)]] {
        slot = this_goroutine::id();
        yield();
        if (slot != this_goroutine::id()) slot = 0;
      });
    }
    group.wait();
  };
  std::thread other([&] { spawn(0); });
  run([&] { spawn(count); });
  spawn(2 * count);
  other.join();
  std::sort(ids.begin(), ids.end());
  EXPECT_NE(ids.front(), 0u);
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
}

TEST_F(Goroutine, HasNoNameByDefaultAndNeverAnOldOne) {
  std::atomic<int> wrong{0};
  run([&] {
    wrong += this_goroutine::name() != "";
    for (int i = 0; i < 200; ++i) {
      wait_group group;
      group.add(1);
      go({.name = "named"}, [&] {
        wrong += this_goroutine::name() != "named";
        group.done();
      });
      group.go([&] { wrong += this_goroutine::name() != ""; });
      group.wait();
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST_F(Goroutine, KeepsItsNameOverSwitchesAndUntilItsClosureIsGone) {
  struct Last {
    std::atomic<int>* wrong;
    std::string expected;
    bool armed = true;
    Last(std::atomic<int>* w, std::string e) : wrong(w), expected(std::move(e)) {}
    Last(Last&& other) noexcept : wrong(other.wrong), expected(std::move(other.expected)) {
      other.armed = false;
    }
    ~Last() {
      if (armed) *wrong += this_goroutine::name() != expected;
    }
  };
  std::atomic<int> wrong{0};
  const int count = 100;
  for (int i = 0; i < count; ++i) {
    // The longest is 200,000 characters.
    std::string name = std::to_string(i) + std::string(static_cast<std::size_t>(i) * 2000, 'n');
    go({.name = name}, [&wrong, name, last = Last(&wrong, name)] {
      for (int round = 0; round < 5; ++round) {
        wrong += this_goroutine::name() != name;
        yield();
      }
    });
  }
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(wrong, 0);
}

TEST_F(Goroutine, CountIsExact) {
  const int count = scaled(100'000);
  EXPECT_EQ(num_goroutine(), 0u);
  wait_group gate;
  gate.add(1);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(num_goroutine(), static_cast<std::size_t>(i));
    go([&] { gate.wait(); });
  }
  const std::size_t inside = run([] { return num_goroutine(); });
  EXPECT_EQ(inside, 1001u);
  gate.done();
  ASSERT_TRUE(quiescent());
  // Created and ended at different Ps, by different threads.
  std::thread other([&] {
    for (int i = 0; i < count / 2; ++i) go([] { yield(); });
  });
  run([&] {
    wait_group group;
    for (int i = 0; i < count / 2; ++i) group.go([] { yield(); });
    group.wait();
  });
  other.join();
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(num_goroutine(), 0u);
  EXPECT_EQ(stats().goroutines, 0u);
}

TEST_F(Goroutine, NumCpuIsWhatTheProcessMayUse) {
  EXPECT_GE(num_cpu(), 1);
  EXPECT_LE(num_cpu(), sysconf(_SC_NPROCESSORS_CONF));
  EXPECT_EQ(run([] { return num_cpu(); }), num_cpu());
}

TEST_F(Goroutine, GoDoesNotMoveTheCallerToAnotherThread) {
  const int count = scaled(100'000);
  const int moved = run([&] {
    int n = 0;
    for (int i = 0; i < count; ++i) {
      const pid_t before = gettid();
      go([] {});
      if (gettid() != before) ++n;
    }
    return n;
  });
  EXPECT_EQ(moved, 0);
}

// ---------------------------------------------------------------- yield

TEST_F(Yield, LetsEveryGoroutineProceedInTurn) {
  // With more Ps than CPUs, a turn may have to wait for the kernel to run its thread.
  const int count = gomaxprocs(0) > num_cpu() || internal::sanitizers_enabled ? 40 : 300;
  const int rounds = 5;
  std::atomic<int> turn{0};
  run([&] {
    wait_group group;
    for (int i = 0; i < count; ++i) {
      group.go([&, i] {
        for (int round = 0; round < rounds; ++round) {
          while (turn.load() % count != i) yield();
          ++turn;
        }
      });
    }
    group.wait();
  });
  EXPECT_EQ(turn, count * rounds);
}

TEST_F(Yield, LetsAGoroutineStartedByAPlainThreadIn) {
  std::atomic<bool> stop{false};
  std::atomic<int> spinning{0};
  const int procs = gomaxprocs(0);
  for (int i = 0; i < procs + 2; ++i) {
    go([&] {
      ++spinning;
      while (!stop) yield();
    });
  }
  EXPECT_TRUE(wait_until([&] { return spinning == procs + 2; }));
  go([&] { stop = true; });
  EXPECT_TRUE(quiescent());
}

TEST_F(Yield, HasTheNamesOfStdThisThread) {
  run([] {
    this_goroutine::yield();
    this_goroutine::sleep_for(std::chrono::nanoseconds(1));
    this_goroutine::sleep_until(std::chrono::steady_clock::now());
    EXPECT_NE(this_goroutine::id(), 0u);
  });
}

TEST_F(Yield, AloneReturnsAtOnce) {
  run([] {
    const std::uint64_t id = this_goroutine::id();
    for (int i = 0; i < 1000; ++i) yield();
    EXPECT_EQ(this_goroutine::id(), id);
  });
}

TEST_F(Yield, WorksInAPlainThread) {
  std::atomic<bool> flag{false};
  go([&] { flag = true; });
  EXPECT_TRUE(wait_until([&] {
    yield();
    return flag.load();
  }));
}

}  // namespace
}  // namespace gofer
