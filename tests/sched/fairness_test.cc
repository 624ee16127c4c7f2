// Fairness among goroutines that hand the processor to each other: none is forgotten for long.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <numeric>
#include <thread>

#include "runtime/base/sanitizer.h"
#include "support/scaled.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using test::scaled;
using test::wait_until;

// Two goroutines that send each other a token, counting, until told to stop.
class Pair {
 public:
  template <class Work>
  void start(wait_group& wg, const std::atomic<bool>& stop, Work work) {
    wg.go([this, &stop, work] {
      while (!stop) {
        work();
        there_.send(1);
        back_.recv();
        ++exchanges;
      }
      there_.close();
    });
    wg.go([this, work] {
      for ([[maybe_unused]] int token : there_) {
        work();
        back_.send(1);
      }
    });
  }
  std::atomic<long> exchanges{0};

 private:
  chan<int> there_{0};
  chan<int> back_{0};
};

// Each of the hog's turns is long, and always one of them is next to run on the processor; but a
// turn ends with the handing over, and others run then.
TEST(Fairness, OfAHogAndALightPairThatPlayPingPongOnOneProcessor) {
  const int procs = gomaxprocs(1);
  std::atomic<bool> stop{false};
  Pair hog;
  Pair light;
  wait_group wg;
  hog.start(wg, stop, [] {
    for (int i = 0; i < 100; ++i) asm volatile("");
  });
  light.start(wg, stop, [] {});
  while (light.exchanges < scaled(20'000) || hog.exchanges < scaled(20'000)) yield();
  const double ratio = static_cast<double>(hog.exchanges) / static_cast<double>(light.exchanges);
  stop = true;
  wg.wait();
  gomaxprocs(procs);
  EXPECT_LT(ratio, 20);
  EXPECT_GT(ratio, 1.0 / 20);
}

// A ping-pong pair keeps runnext busy; the queue behind it must move all the same.
TEST(Fairness, OfAPingPongPairAndACrowdInTheQueue) {
  std::atomic<bool> stop{false};
  Pair pair;
  wait_group wg;
  pair.start(wg, stop, [] {});
  std::atomic<long> turns{0};
  for (int i = 0; i < 50; ++i) {
    wg.go([&] {
      while (!stop) {
        yield();
        ++turns;
      }
    });
  }
  EXPECT_TRUE(wait_until([&] { return turns >= 5000 && pair.exchanges >= 1000; }));
  stop = true;
  wg.wait();
}

// A thread sends to eight receivers that wait for their turn: everyone gets its share. On one
// processor, because a thread that the kernel stops for a while would stop its receiver with it. A
// receiver that finds the sender waiting each time goes on for a slice: there have to be many.
TEST(Fairness, OfReceiversThatWaitOnOneChannel) {
  const int procs = gomaxprocs(1);
  constexpr int receivers = 8;
  constexpr int rounds = 20'000;
  chan<int> c(0);
  std::atomic<int> ready{0};
  int got[receivers] = {};
  wait_group wg;
  for (int& mine : got) {
    wg.go([&] {
      ++ready;
      while (c.recv()) ++mine;
    });
  }
  while (ready < receivers) yield();
  for (int i = 0; i < rounds; ++i) c.send(i);
  c.close();
  wg.wait();
  gomaxprocs(procs);
  for (const int n : got) EXPECT_GT(n, rounds / receivers / 20);
}

// Sixteen goroutines that compute without end on two processors. Each has its share: none
// computes without a processor beside those that have one.
TEST(Fairness, OfGoroutinesThatComputeWithoutEnd) {
  if (internal::tsan_enabled) GTEST_SKIP() << "no thread is paused in this build";
  const int procs = gomaxprocs(2);
  std::atomic<bool> stop{false};
  std::array<long, 16> steps{};
  wait_group wg;
  for (long& mine : steps) {
    wg.go([&mine, &stop] {
      for (; !stop; ++mine) {
        for (int i = 0; i < 1000; ++i) asm volatile("");
      }
    });
  }
  // On a busy machine a slice may be without a core: it takes many for the shares to become even.
  const std::clock_t from = std::clock();
  while (std::clock() - from < 8 * CLOCKS_PER_SEC) std::this_thread::sleep_for(10ms);
  stop = true;
  wg.wait();
  gomaxprocs(procs);
  const double mean = static_cast<double>(std::accumulate(steps.begin(), steps.end(), 0L)) / 16;
  const auto [least, most] = std::minmax_element(steps.begin(), steps.end());
  EXPECT_LT(static_cast<double>(*most), 2 * mean);
  EXPECT_GT(static_cast<double>(*least), mean / 4);
}

}  // namespace
}  // namespace gofer
