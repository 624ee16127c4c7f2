// Stopping the world and gomaxprocs(n): up and down under load, from goroutines and threads, past
// goroutines that compute or block without calling the runtime; nothing is lost.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "os/thread.h"
#include "runtime/base/sanitizer.h"
#include "runtime/goroutines/spawn.h"
#include "runtime/procs/current.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/stop_world.h"
#include "runtime/sched/verify.h"
#include "runtime/threads/threads.h"
#include "support/compute.h"
#include "support/procs.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using internal::goroutines;
using internal::M;
using internal::p_table;
using internal::threads;
using test::compute;
using test::Procs;
using test::wait_until;

// Goroutines that start others, yield, wait and compute until told to stop; what they start counts
// itself in and out.
class Load {
 public:
  explicit Load(int workers) {
    for (int i = 0; i < workers; ++i) {
      group_.go([this, i] { work(static_cast<unsigned>(i)); });
    }
  }

  /// Also checks that nothing was lost or done twice.
  void stop() {
    stop_ = true;
    group_.wait();
    EXPECT_EQ(ended_, begun_);
    EXPECT_GT(ended_, 0);
  }

  /// False if nothing of it ends for a long time.
  [[nodiscard]] bool goes_on() const {
    const int64_t earlier = ended_;
    return wait_until([&] { return ended_ != earlier; });
  }

 private:
  void child(int depth) {
    if (depth > 0) {
      wait_group inner;
      begun_.fetch_add(1);
      inner.go([this, depth] { child(depth - 1); });
      yield();
      inner.wait();
    }
    ended_.fetch_add(1);
  }

  void work(unsigned seed) {
    std::minstd_rand random(seed + 1);
    while (!stop_) {
      switch (random() % 5) {
        case 0:
          yield();
          break;
        case 1:
          compute(static_cast<int>(random() % 2000));
          break;
        case 2: {
          begun_.fetch_add(1);
          wait_group one;
          one.go([this] { child(3); });
          one.wait();
          break;
        }
        default: {
          wait_group many;
          for (unsigned i = random() % 8; i > 0; --i) {
            begun_.fetch_add(1);
            many.go([this] { child(0); });
          }
          if (random() % 2 == 0) yield();
          many.wait();
        }
      }
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<int64_t> begun_{0};
  std::atomic<int64_t> ended_{0};
  wait_group group_;
};

constexpr int changes = internal::sanitizers_enabled ? 50 : 200;

// Changes GOMAXPROCS at random, with a check of everything now and then. False if the load stands.
bool change_at_random(unsigned seed, int times, const Load& load) {
  std::minstd_rand random(seed);
  for (int i = 0; i < times; ++i) {
    gomaxprocs(static_cast<int>(random() % 16) + 1);
    if (i % 8 == 0) internal::verify_scheduler();
    if (i % 3 == 0 && !load.goes_on()) return false;
  }
  return true;
}

TEST(Gomaxprocs, ReturnsTheOldSettingAndOnlyAsksWithZero) {
  const int before = gomaxprocs(0);
  EXPECT_EQ(gomaxprocs(3), before);
  EXPECT_EQ(gomaxprocs(0), 3);
  EXPECT_EQ(gomaxprocs(-1), 3);
  EXPECT_EQ(stats().gomaxprocs, 3);
  EXPECT_EQ(stats().procs.size(), 3u);
  EXPECT_EQ(gomaxprocs(before), 3);
  EXPECT_EQ(gomaxprocs(before), before);
}

TEST(Gomaxprocs, CanBeAThousandAndOneAgain) {
  Procs many(1024);
  std::atomic<int> ran{0};
  wait_group done;
  for (int i = 0; i < 2000; ++i) done.go([&] { ran.fetch_add(1); });
  done.wait();
  EXPECT_EQ(ran, 2000);
  internal::verify_scheduler();
  gomaxprocs(1);
  internal::verify_scheduler();
  done.go([&] { ran.fetch_add(1); });
  done.wait();
  EXPECT_EQ(ran, 2001);
}

TEST(Gomaxprocs, QueuesOfRetiredProcessorsAreNotLost) {
  for (int round = 0; round < 15; ++round) {
    Procs four(4);
    std::atomic<int> ran{0};
    wait_group done;
    // Each fills the queue of its own P, and then only computes.
    std::atomic<bool> go_on{false};
    std::atomic<int> filled{0};
    for (int i = 0; i < 4; ++i) {
      done.go([&] {
        for (int k = 0; k < 50; ++k) done.go([&] { ran.fetch_add(1); });
        filled.fetch_add(1);
        while (!go_on) internal::cpu_relax();
      });
    }
    ASSERT_TRUE(wait_until([&] { return filled == 4; }));
    gomaxprocs(1);
    internal::verify_scheduler();
    go_on = true;
    done.wait();
    EXPECT_EQ(ran, 200);
  }
}

TEST(Gomaxprocs, GoesUpAndDownFromAThreadUnderLoad) {
  Procs restore(4);
  Load load(6);
  EXPECT_TRUE(change_at_random(1, changes, load));
  load.stop();
  internal::verify_scheduler();
}

TEST(Gomaxprocs, GoesUpAndDownFromAGoroutineUnderLoad) {
  Procs restore(4);
  Load load(6);
  EXPECT_TRUE(run([&] { return change_at_random(2, changes, load); }));
  load.stop();
  internal::verify_scheduler();
}

TEST(Gomaxprocs, GoesUpAndDownFromTwoGoroutinesAndTwoThreadsAtOnce) {
  Procs restore(4);
  Load load(4);
  wait_group goroutines;
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (unsigned i = 0; i < 2; ++i) {
    goroutines.go([&, i] { good += change_at_random(10 + i, changes / 2, load); });
    threads.emplace_back([&, i] { good += change_at_random(20 + i, changes / 2, load); });
  }
  for (auto& thread : threads) thread.join();
  goroutines.wait();
  EXPECT_EQ(good, 4);
  load.stop();
  internal::verify_scheduler();
}

// Two goroutines compute on two Ps; the one on the second P retires it, and takes the other's.
TEST(Gomaxprocs, CallerGoesOnWithAProcessorThatExists) {
  for (int round = 0; round < 20; ++round) {
    Procs two(2);
    std::atomic<int> computing{0};
    std::atomic<bool> retired{false};
    std::atomic<int> ended{0};
    uint32_t processor = 99;
    bool held = false;
    wait_group done;
    for (int i = 0; i < 2; ++i) {
      done.go([&] {
        computing.fetch_add(1);
        while (computing < 2) internal::cpu_relax();
        bool second = false;
        {
          internal::Inside inside;
          second = inside.m()->p->id == 1;
        }
        if (second) {
          gomaxprocs(1);
          internal::Inside inside;
          processor = inside.m()->p->id;
          held = inside.m()->p->word.load() == inside.m()->p_word &&
                 inside.m()->p->status.load() == internal::PStatus::running;
          retired = true;
        }
        while (!retired) internal::cpu_relax();
        ended.fetch_add(1);
      });
    }
    done.wait();
    EXPECT_EQ(processor, 0u);
    EXPECT_TRUE(held);
    EXPECT_EQ(ended, 2);
  }
}

TEST(StopWorld, NothingIsScheduledWhileItStands) {
  Load load(6);
  std::atomic<int64_t> yields{0};
  std::atomic<bool> stop{false};
  wait_group done;
  for (int i = 0; i < 4; ++i) {
    done.go([&] {
      while (!stop) {
        yield();
        yields.fetch_add(1);
      }
    });
  }
  for (int round = 0; round < 10; ++round) {
    const int64_t earlier = yields;
    ASSERT_TRUE(wait_until([&] { return yields != earlier; }));
    M* m = internal::stop_the_world();
    EXPECT_EQ(m, nullptr);
    const int64_t first = yields;
    uint64_t switches = 0;
    for (int i = 0; i < p_table.in_use.load(); ++i) switches += p_table.all[i].load()->switches;
    for (int i = 0; i < 20; ++i) std::this_thread::yield();
    // Each may still come to the end of its round, outside of the runtime.
    EXPECT_LE(yields, first + 4);
    for (int i = 0; i < p_table.in_use.load(); ++i) switches -= p_table.all[i].load()->switches;
    EXPECT_EQ(switches, 0u);
    internal::start_the_world(m);
  }
  stop = true;
  done.wait();
  load.stop();
}

TEST(StopWorld, GoroutineThatStopsItGoesOnAlone) {
  Load load(4);
  bool has_m = true;
  bool stays = true;
  run([&] {
    for (int round = 0; round < 50; ++round) {
      M* m = internal::stop_the_world();
      has_m = has_m && m != nullptr && m == internal::current_m();
      const int thread = internal::os::thread_id();
      compute(1000);
      internal::start_the_world(m);
      stays = stays && thread == internal::os::thread_id();
      yield();
    }
  });
  EXPECT_TRUE(has_m);
  EXPECT_TRUE(stays);
  load.stop();
}

// Computes without any call of the runtime until told, then uses the runtime again.
struct Spinner {
  std::atomic<bool> running{false};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> turns{0};
  std::atomic<int> children{0};

  void operator()() {
    running = true;
    while (!stop) {
      turns.fetch_add(1, std::memory_order_relaxed);
      compute(10);
    }
    wait_group done;
    for (int i = 0; i < 5; ++i) done.go([this] { children.fetch_add(1); });
    yield();
    done.wait();
  }
};

TEST(StopWorld, CompletesWhileAGoroutineComputes) {
  for (int round = 0; round < 20; ++round) {
    Spinner spinner;
    wait_group done;
    done.go(std::ref(spinner));
    ASSERT_TRUE(wait_until([&] { return spinner.running.load(); }));
    M* m = internal::stop_the_world();
    // It computes on: stopping takes its P, not its thread.
    const uint64_t turns = spinner.turns;
    EXPECT_TRUE(wait_until([&] { return spinner.turns > turns; }));
    // Half of the time it asks for a P while there is none.
    if (round % 2 == 0) spinner.stop = true;
    compute(2000);
    internal::start_the_world(m);
    spinner.stop = true;
    done.wait();
    EXPECT_EQ(spinner.children, 5);
  }
}

TEST(StopWorld, GomaxprocsChangesWhileGoroutinesCompute) {
  Procs restore(4);
  std::vector<Spinner> spinners(4);
  wait_group done;
  for (auto& spinner : spinners) done.go(std::ref(spinner));
  for (auto& spinner : spinners) {
    ASSERT_TRUE(wait_until([&] { return spinner.running.load(); }));
  }
  std::minstd_rand random(7);
  for (int i = 0; i < 100; ++i) {
    gomaxprocs(static_cast<int>(random() % 8) + 1);
    internal::verify_scheduler();
  }
  gomaxprocs(1);  // fewer Ps than goroutines that compute
  for (auto& spinner : spinners) spinner.stop = true;
  done.wait();
  for (auto& spinner : spinners) EXPECT_EQ(spinner.children, 5);
}

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() { EXPECT_EQ(pipe(ends), 0); }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
  char read_one() const {
    char c = 0;
    return read(ends[0], &c, 1) == 1 ? c : '?';
  }
  void write_one(char c) const { EXPECT_EQ(write(ends[1], &c, 1), 1); }
};

TEST(StopWorld, CompletesWhileAGoroutineBlocksInRead) {
  for (int round = 0; round < 50; ++round) {
    Pipe pipe;
    std::atomic<bool> reading{false};
    std::atomic<char> got{0};
    std::atomic<int> children{0};
    wait_group done;
    done.go([&] {
      reading = true;
      got = pipe.read_one();
      wait_group inner;
      for (int i = 0; i < 5; ++i) inner.go([&] { children.fetch_add(1); });
      inner.wait();
    });
    ASSERT_TRUE(wait_until([&] { return reading.load(); }));
    compute(100);
    M* m = internal::stop_the_world();
    if (round % 2 == 0) pipe.write_one('x');
    compute(2000);
    internal::start_the_world(m);
    if (round % 2 != 0) {
      internal::verify_scheduler();
      pipe.write_one('x');
    }
    done.wait();
    EXPECT_EQ(got, 'x');
    EXPECT_EQ(children, 5);
  }
}

TEST(StopWorld, OthersUseTheProcessorsThatABlockedGoroutineLost) {
  Procs one(1);
  Pipe pipe;
  std::atomic<bool> reading{false};
  std::atomic<bool> other_ran{false};
  wait_group done;
  done.go([&] {
    reading = true;
    pipe.read_one();
  });
  ASSERT_TRUE(wait_until([&] { return reading.load(); }));
  // With two Ps there is one beside the reader's.
  gomaxprocs(2);
  done.go([&] { other_ran = true; });
  EXPECT_TRUE(wait_until([&] { return other_ran.load(); }));
  pipe.write_one('x');
  done.wait();
}

// While an M returns from a blocking call, the stopper may have its P, and may or may not give it
// back at any moment of the return.
TEST(StopWorld, BlockingCallsReturnWhileItStopsAndStarts) {
  for (const int procs : {1, 2}) {
    Procs few(procs);
    std::atomic<bool> stop{false};
    std::atomic<int> calls{0};
    wait_group group;
    for (int i = 0; i < 4; ++i) {
      group.go([&, i] {
        while (!stop) {
          blocking([&] {
            if (i % 2 == 0) usleep(20);
          });
          calls += i % 2 == 0;
        }
      });
    }
    const int most = internal::sanitizers_enabled ? 100 : 1'000;
    EXPECT_TRUE(wait_until([&] {
      for (int i = 0; i < 20; ++i) gomaxprocs(procs);
      return calls >= most;
    })) << calls;
    stop = true;
    group.wait();
  }
}

TEST(StopWorld, LockedGoroutinesKeepTheirThreads) {
  Procs restore(4);
  Load load(2);
  std::atomic<bool> stop{false};
  std::atomic<int> moved{0};
  std::atomic<int> turns{0};
  wait_group done;
  for (int i = 0; i < 4; ++i) {
    done.go([&] {
      lock_os_thread();
      const int thread = internal::os::thread_id();
      while (!stop) {
        wait_group one;
        one.go([] {});
        one.wait();
        yield();
        compute(100);
        moved += thread != internal::os::thread_id();
        turns.fetch_add(1);
      }
      unlock_os_thread();
    });
  }
  EXPECT_TRUE(change_at_random(5, changes / 3, load));
  EXPECT_TRUE(wait_until([&] { return turns >= 100; }));
  stop = true;
  done.wait();
  load.stop();
  EXPECT_EQ(moved, 0);
}

// A goroutine that is started while the world stands, or while it starts, must not be forgotten.
// Only the waker and the M that starts the world may see it.
TEST(StopWorld, SwallowsNoWakeUp) {
  constexpr int starters = 3;
  const int rounds = internal::sanitizers_enabled ? 300 : 5'000;
  std::atomic<int> turn{0};
  std::atomic<int> ran{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < starters; ++i) {
    threads.emplace_back([&, i] {
      std::minstd_rand random(static_cast<unsigned>(i) + 1);
      for (int round = 1; round <= rounds; ++round) {
        if (!wait_until([&] { return turn.load() >= round; })) return;
        compute(static_cast<int>(random() % 300));
        go([&] { ran.fetch_add(1); });
      }
    });
  }
  bool good = true;
  for (int round = 1; round <= rounds && good; ++round) {
    turn = round;
    M* m = internal::stop_the_world();
    compute(round % 300);
    internal::start_the_world(m);
    good = wait_until([&] { return ran.load() == starters * round; });
    EXPECT_TRUE(good) << "round " << round;
  }
  turn = rounds;
  for (auto& thread : threads) thread.join();
}

TEST(VerifyScheduler, AgreesInGoroutinesAndThreads) {
  internal::verify_scheduler();
  run([] {
    internal::verify_scheduler();
    wait_group done;
    for (int i = 0; i < 300; ++i) done.go([] {});
    internal::verify_scheduler();
    done.wait();
    internal::verify_scheduler();
  });
  internal::verify_scheduler();
}

}  // namespace
}  // namespace gofer
