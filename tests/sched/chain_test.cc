// Whole programs of goroutines whose result is known: chains, rings, trees, and the usual parallel
// algorithms.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "runtime/base/sanitizer.h"
#include "support/quiescent.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using test::quiescent;
using test::wait_until;

constexpr bool slow = internal::sanitizers_enabled;

using Chain = test::QuiescentTest;
using ForkJoin = test::QuiescentTest;

constexpr std::size_t links = slow ? 500 : 10'000;

// Link i waits for its successor, notes that it was there, and releases its predecessor.
struct Links {
  std::vector<wait_group> released = std::vector<wait_group>(links + 1);
  std::vector<std::size_t> order;
  std::atomic<std::size_t> waiting{0};

  Links() {
    order.reserve(links);
    for (wait_group& w : released) w.add(1);
  }
  void link(std::size_t i) {
    ++waiting;
    released[i + 1].wait();
    order.push_back(i);
    released[i].done();
  }
  bool torn_down_in_order() const {
    for (std::size_t i = 0; i < links; ++i) {
      if (order[i] != links - 1 - i) return false;
    }
    return order.size() == links;
  }
};

TEST_F(Chain, StartedByOneIsTornDownInOrder) {
  Links chain;
  run([&] {
    for (std::size_t i = 0; i < links; ++i) go([&, i] { chain.link(i); });
    chain.released[links].done();
    chain.released[0].wait();
  });
  EXPECT_TRUE(chain.torn_down_in_order());
}

TEST_F(Chain, IsTornDownAfterAllLinksWait) {
  Links chain;
  for (std::size_t i = 0; i < links; ++i) go([&, i] { chain.link(i); });
  EXPECT_TRUE(wait_until([&] { return chain.waiting == links; }));
  EXPECT_EQ(num_goroutine(), links);
  chain.released[links].done();
  chain.released[0].wait();
  EXPECT_TRUE(chain.torn_down_in_order());
  ASSERT_TRUE(quiescent());
}

TEST_F(Chain, StartedLinkByLinkIsTornDownInOrder) {
  Links chain;
  struct Grow {
    Links& chain;
    void operator()(std::size_t i) const {
      if (i + 1 < links) {
        go(*this, i + 1);
      } else {
        chain.released[links].done();
      }
      chain.link(i);
    }
  };
  go(Grow{chain}, std::size_t{0});
  chain.released[0].wait();
  EXPECT_TRUE(chain.torn_down_in_order());
  ASSERT_TRUE(quiescent());
}

// Every member starts the next one and waits for it, through a group of its own.
TEST_F(Chain, OfNestedWaitsReturnsThroughAll) {
  struct Nest {
    std::size_t operator()(std::size_t depth) const {
      if (depth == 0) return 0;
      std::size_t below = 0;
      wait_group group;
      group.go([&] { below = (*this)(depth - 1); });
      group.wait();
      return below + 1;
    }
  };
  EXPECT_EQ(run([] { return Nest{}(links); }), links);
}

TEST_F(Chain, ClosedToARingPassesATokenRound) {
  const int members = slow ? 50 : 1000;
  const int rounds = slow ? 20 : 100;
  std::vector<wait_group> turn(static_cast<std::size_t>(members));
  std::vector<int> seen;
  seen.reserve(static_cast<std::size_t>(members * rounds));
  for (wait_group& t : turn) t.add(1);
  run([&] {
    wait_group all;
    for (int i = 0; i < members; ++i) {
      all.go([&, i] {
        wait_group& mine = turn[static_cast<std::size_t>(i)];
        for (int round = 0; round < rounds; ++round) {
          mine.wait();
          mine.add(1);
          seen.push_back(i);
          turn[static_cast<std::size_t>((i + 1) % members)].done();
        }
      });
    }
    turn[0].done();
    all.wait();
  });
  ASSERT_EQ(seen.size(), static_cast<std::size_t>(members * rounds));
  int wrong = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) wrong += seen[i] != static_cast<int>(i) % members;
  EXPECT_EQ(wrong, 0);
}

TEST_F(ForkJoin, OfAThousandTimesAThousand) {
  const int outer = slow ? 50 : 1000;
  const int inner = slow ? 100 : 1000;
  std::vector<int> counts(static_cast<std::size_t>(outer));
  run([&] {
    wait_group all;
    for (int i = 0; i < outer; ++i) {
      all.go([&, i] {
        std::atomic<int> ran{0};
        wait_group mine;
        for (int k = 0; k < inner; ++k) mine.go([&ran] { ++ran; });
        mine.wait();
        counts[static_cast<std::size_t>(i)] = ran;
      });
    }
    all.wait();
  });
  EXPECT_EQ(std::count(counts.begin(), counts.end(), inner), outer);
}

// A goroutine for every node of a binary tree.
std::uint64_t tree_sum(std::uint64_t node, int depth) {
  if (depth == 0) return node;
  std::uint64_t left = 0;
  std::uint64_t right = 0;
  wait_group group;
  group.go([&] { left = tree_sum(2 * node, depth - 1); });
  group.go([&] { right = tree_sum(2 * node + 1, depth - 1); });
  group.wait();
  return left + right;
}

TEST_F(ForkJoin, OfABinaryTreeSumsItsLeaves) {
  const int depth = slow ? 10 : 16;
  const std::uint64_t first = std::uint64_t{1} << depth;
  const std::uint64_t expected = first * (first + 2 * first - 1) / 2;
  EXPECT_EQ(run([&] { return tree_sum(1, depth); }), expected);
}

int fib(int n) {
  if (n < 2) return n;
  int left = 0;
  wait_group group;
  group.go([&left, n] { left = fib(n - 1); });
  const int right = fib(n - 2);
  group.wait();
  return left + right;
}

TEST_F(ForkJoin, ComputesFibonacciNumbers) {
  const int n = slow ? 14 : 24;
  const int expected = slow ? 377 : 46'368;
  EXPECT_EQ(run([&] { return fib(n); }), expected);
  // From several threads' goroutines at once.
  std::atomic<int> right{0};
  wait_group group;
  for (int i = 0; i < 4; ++i) group.go([&] { right += fib(12) == 144; });
  group.wait();
  EXPECT_EQ(right, 4);
}

void quicksort(std::span<int> data) {
  constexpr std::size_t cut_off = 256;
  if (data.size() <= cut_off) {
    std::sort(data.begin(), data.end());
    return;
  }
  const int pivot = data[data.size() / 2];
  const auto low = std::partition(data.begin(), data.end(), [&](int x) { return x < pivot; });
  const auto high = std::partition(low, data.end(), [&](int x) { return x == pivot; });
  wait_group group;
  group.go([&] { quicksort(data.first(static_cast<std::size_t>(low - data.begin()))); });
  quicksort(data.last(static_cast<std::size_t>(data.end() - high)));
  group.wait();
}

TEST_F(ForkJoin, SortsLikeStdSort) {
  std::mt19937 random(1);
  const std::size_t size = slow ? 50'000 : 1'000'000;
  for (const int range : {1, 1000, 1 << 30}) {
    std::vector<int> data(size);
    for (int& x : data) x = static_cast<int>(random() % static_cast<unsigned>(range));
    std::vector<int> expected = data;
    std::sort(expected.begin(), expected.end());
    run([&] { quicksort(data); });
    EXPECT_EQ(data, expected);
  }
}

TEST_F(ForkJoin, CountsPrimesWithAGoroutinePerNumber) {
  const int limit = slow ? 2000 : 50'000;
  std::atomic<int> primes{0};
  run([&] {
    wait_group group;
    for (int n = 2; n < limit; ++n) {
      group.go([&primes, n] {
        for (int d = 2; d * d <= n; ++d) {
          if (n % d == 0) return;
        }
        ++primes;
      });
    }
    group.wait();
  });
  EXPECT_EQ(primes, slow ? 303 : 5133);
}

}  // namespace
}  // namespace gofer
