// Parking and readying: no wake-up is lost, between goroutines and foreign threads in all roles,
// and an idle process wakes up.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "runtime/base/sanitizer.h"
#include "runtime/process/settings.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/spinning.h"
#include "support/event.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using test::Event;
using test::wait_until;

// As many rounds as this build and scheduler can do in the same time: with the global queue alone,
// every wake-up goes to another thread.
int scaled(int rounds) {
  gomaxprocs(0);  // the environment has been read
  const int divisor = (internal::sanitizers_enabled ? 20 : 1) * (internal::settings.gm ? 2 : 1);
  return rounds / divisor > 10 ? rounds / divisor : 10;
}

// Spins for a moment, so that both sides are at the same point at the same time.
template <class Condition>
void spin_until(Condition condition) {
  for (int i = 1; !condition(); ++i) {
    if (i % 64 == 0) yield();
  }
}

TEST(ParkReady, ReadyThatComesFirstIsNotLost) {
  run([] {
    Event event;
    for (int i = 0; i < scaled(100'000); ++i) {
      event.set();
      event.wait();
    }
  });
}

TEST(ParkReady, PairsOfGoroutinesWakeEachOther) {
  constexpr int pairs = 4;
  const int rounds = scaled(125'000);  // a million times parked and readied
  struct Pair {
    Event a;
    Event b;
    int a_rounds = 0;
    int b_rounds = 0;
  };
  std::vector<Pair> all(pairs);
  run([&] {
    wait_group done;
    for (Pair& pair : all) {
      done.go([&pair, rounds] {
        for (; pair.a_rounds < rounds; ++pair.a_rounds) {
          pair.b.set();
          pair.a.wait();
        }
      });
      done.go([&pair, rounds] {
        for (; pair.b_rounds < rounds; ++pair.b_rounds) {
          pair.b.wait();
          pair.a.set();
        }
      });
    }
    done.wait();
  });
  for (const Pair& pair : all) {
    EXPECT_EQ(pair.a_rounds, rounds);
    EXPECT_EQ(pair.b_rounds, rounds);
  }
}

// A waiter and a setter start at the same instant, again and again.
TEST(ParkReady, SettingAtTheMomentOfParkingIsNotLost) {
  constexpr int pairs = 2;
  const int rounds = scaled(10'000);
  struct Pair {
    Event event;
    alignas(64) std::atomic<int> asked{0};
    alignas(64) std::atomic<int> answered{0};
  };
  std::vector<Pair> all(pairs);
  run([&] {
    wait_group done;
    for (Pair& pair : all) {
      done.go([&pair, rounds] {
        for (int i = 1; i <= rounds; ++i) {
          spin_until([&] { return pair.asked.load(std::memory_order_acquire) == i; });
          pair.event.wait();
          pair.answered.store(i, std::memory_order_release);
        }
      });
      done.go([&pair, rounds] {
        for (int i = 1; i <= rounds; ++i) {
          pair.asked.store(i, std::memory_order_release);
          for (int pause = i % 50; pause > 0; --pause) internal::cpu_relax();
          pair.event.set();
          spin_until([&] { return pair.answered.load(std::memory_order_acquire) == i; });
        }
      });
    }
    done.wait();
  });
  for (const Pair& pair : all) EXPECT_EQ(pair.answered, rounds);
}

TEST(ParkReady, ThreadsReadyGoroutines) {
  constexpr int pairs = 2;
  const int rounds = scaled(5'000);
  struct Pair {
    Event event;
    std::atomic<int> asked{0};
    std::atomic<int> answered{0};
  };
  std::vector<Pair> all(pairs);
  wait_group done;
  std::vector<std::thread> threads;
  for (Pair& pair : all) {
    done.go([&pair, rounds] {
      for (int i = 1; i <= rounds; ++i) {
        pair.asked.store(i, std::memory_order_release);
        pair.event.wait();
        pair.answered.store(i, std::memory_order_release);
      }
    });
    threads.emplace_back([&pair, rounds] {
      for (int i = 1; i <= rounds; ++i) {
        if (!wait_until([&] { return pair.asked.load(std::memory_order_acquire) == i; })) return;
        pair.event.set();
        if (!wait_until([&] { return pair.answered.load(std::memory_order_acquire) == i; })) return;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const Pair& pair : all) ASSERT_EQ(pair.answered, rounds);
  done.wait();
}

TEST(ParkReady, TokenGoesRoundARingOfGoroutines) {
  constexpr size_t members = 500;
  const int laps = scaled(200);
  std::vector<Event> ring(members);
  std::atomic<int64_t> passed{0};
  run([&] {
    wait_group done;
    for (size_t i = 0; i < members; ++i) {
      done.go([&, i] {
        for (int lap = 0; lap < laps; ++lap) {
          ring[i].wait();
          passed.fetch_add(1, std::memory_order_relaxed);
          if (i + 1 < members || lap + 1 < laps) ring[(i + 1) % members].set();
        }
      });
    }
    ring[0].set();
    done.wait();
  });
  EXPECT_EQ(passed, static_cast<int64_t>(members) * laps);
}

// The group lies on the waiter's stack and is gone as soon as wait() returns.
TEST(ParkReady, GoroutinesWaitForTheOnesTheyStart) {
  const int rounds = scaled(100'000);
  std::atomic<int64_t> ran{0};
  run([&] {
    wait_group done;
    for (int i = 0; i < 4; ++i) {
      done.go([&] {
        for (int round = 0; round < rounds; ++round) {
          wait_group one;
          one.go([&] { ran.fetch_add(1, std::memory_order_relaxed); });
          one.wait();
        }
      });
    }
    done.wait();
  });
  EXPECT_EQ(ran, int64_t{4} * rounds);
}

TEST(ParkReady, OneDoneWakesEveryWaiter) {
  constexpr int waiters = 20;
  const int rounds = scaled(4'000);
  std::atomic<int64_t> woken{0};
  run([&] {
    for (int round = 0; round < rounds; ++round) {
      wait_group gate;
      wait_group all;
      gate.add(1);
      for (int i = 0; i < waiters; ++i) {
        all.go([&] {
          gate.wait();
          woken.fetch_add(1, std::memory_order_relaxed);
        });
      }
      // From no goroutine parked to all of them, depending on the round.
      for (int i = round % 4; i > 0; --i) yield();
      gate.done();
      all.wait();
    }
  });
  EXPECT_EQ(woken, int64_t{waiters} * rounds);
}

// One round of a conversation: each side waits for the other's done().
struct Round {
  wait_group to_goroutine;
  wait_group to_thread;
  Round() {
    to_goroutine.add(1);
    to_thread.add(1);
  }
};

TEST(ParkReady, ThreadsAndGoroutinesWaitForEachOther) {
  constexpr int pairs = 3;
  const int rounds = scaled(3'000);
  std::atomic<int64_t> heard{0};
  wait_group done;
  std::vector<std::unique_ptr<Round[]>> conversations;
  std::vector<std::thread> threads;
  for (int i = 0; i < pairs; ++i) {
    Round* round = conversations.emplace_back(new Round[static_cast<size_t>(rounds)]).get();
    done.go([=, &heard] {
      for (int k = 0; k < rounds; ++k) {
        round[k].to_goroutine.wait();
        heard.fetch_add(1, std::memory_order_relaxed);
        round[k].to_thread.done();
      }
    });
    threads.emplace_back([=, &heard] {
      for (int k = 0; k < rounds; ++k) {
        round[k].to_goroutine.done();
        round[k].to_thread.wait();
        heard.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  done.wait();
  EXPECT_EQ(heard, int64_t{2} * pairs * rounds);
}

TEST(ParkReady, GroupIsCountedAndAwaitedFromBothSides) {
  const int rounds = scaled(2'000);
  int64_t wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    wait_group group;
    std::atomic<int> ended{0};
    std::atomic<int> seen_by_goroutine{-1};
    wait_group watcher;
    group.add(4);
    for (int i = 0; i < 4; ++i) {
      go([&] {
        ended.fetch_add(1, std::memory_order_relaxed);
        group.done();
      });
    }
    watcher.go([&] {
      group.wait();
      seen_by_goroutine = ended.load(std::memory_order_relaxed);
    });
    group.wait();
    wrong += ended.load(std::memory_order_relaxed) != 4;
    watcher.wait();
    wrong += seen_by_goroutine != 4;
  }
  EXPECT_EQ(wrong, 0);
}

void pause_for(std::mt19937& random) {
  std::uniform_int_distribution<int> distribution(0, 3000);
  for (int i = distribution(random); i > 0; --i) internal::cpu_relax();
}

bool everything_idle() {
  return internal::wake_state.idle_p_count.load() == internal::p_table.in_use.load() &&
         internal::wake_state.spinning_ms.load() == 0;
}

TEST(ParkReady, IdleProcessRunsAGoroutineFromAThread) {
  const int rounds = scaled(4'000);
  std::mt19937 random(1);
  std::atomic<int> ran{0};
  for (int round = 1; round <= rounds; ++round) {
    // Some when everything sleeps, some just when it is about to.
    if (round % 4 == 0) {
      ASSERT_TRUE(wait_until(everything_idle)) << "round " << round;
    }
    pause_for(random);
    go([&] { ran.fetch_add(1, std::memory_order_release); });
    ASSERT_TRUE(wait_until([&] { return ran.load(std::memory_order_acquire) == round; }))
        << "round " << round;
  }
}

TEST(ParkReady, IdleProcessRunsGoroutinesFromSeveralThreadsAtOnce) {
  constexpr int starters = 3;
  const int rounds = scaled(2'000);
  std::atomic<int> turn{0};
  std::atomic<int> ran{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < starters; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937 random(static_cast<unsigned>(i));
      for (int round = 1; round <= rounds; ++round) {
        if (!wait_until([&] { return turn.load() >= round; })) return;
        pause_for(random);
        go([&] { ran.fetch_add(1); });
      }
    });
  }
  bool good = true;
  for (int round = 1; round <= rounds && good; ++round) {
    good = wait_until(everything_idle);
    turn = round;
    good = good && wait_until([&] { return ran.load() == starters * round; });
    EXPECT_TRUE(good) << "round " << round;
  }
  turn = rounds;
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace gofer
