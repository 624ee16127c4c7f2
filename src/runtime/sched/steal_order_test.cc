// gofer-test: once
// The order in which a thief visits the others: each once, from every start, with every stride.
#include "runtime/sched/steal_order.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

namespace gofer::internal {
namespace {

std::vector<uint32_t> visit(uint32_t n, uint32_t random) {
  std::vector<uint32_t> positions;
  for (StealOrder order(n, random); !order.done(); order.next()) {
    positions.push_back(order.position());
    if (positions.size() > n) break;
  }
  return positions;
}

bool each_once(uint32_t n, const std::vector<uint32_t>& positions) {
  std::vector<int> seen(n, 0);
  for (const uint32_t position : positions) {
    if (position >= n) return false;
    ++seen[position];
  }
  for (const int count : seen) {
    if (count != 1) return false;
  }
  return true;
}

TEST(StealOrder, VisitsEachPositionOnceForEveryCountAndSeed) {
  for (uint32_t n = 1; n <= 64; ++n) {
    for (uint32_t random = 0; random < 5000; ++random) {
      ASSERT_TRUE(each_once(n, visit(n, random))) << n << " positions, seed " << random;
    }
  }
}

TEST(StealOrder, VisitsEachPositionOnceForLargeSeedsAndCounts) {
  for (const uint32_t n : {1u, 2u, 97u, 128u, 1000u, 4095u, 4096u}) {
    for (uint32_t k = 0; k < 200; ++k) {
      const uint32_t random = 0xffffffffu - k * 7919u;
      ASSERT_TRUE(each_once(n, visit(n, random))) << n << " positions, seed " << random;
    }
  }
}

TEST(StealOrder, ReachesEveryStartWithEveryCoprimeStride) {
  for (uint32_t n = 2; n <= 64; ++n) {
    std::set<std::pair<uint32_t, uint32_t>> pairs;
    for (uint32_t random = 0; random < n * n; ++random) {
      const auto positions = visit(n, random);
      pairs.emplace(positions[0], (positions[1] + n - positions[0]) % n);
    }
    std::set<std::pair<uint32_t, uint32_t>> expected;
    for (uint32_t start = 0; start < n; ++start) {
      for (uint32_t stride = 1; stride <= n; ++stride) {
        if (std::gcd(stride, n) == 1) expected.emplace(start, stride % n);
      }
    }
    ASSERT_EQ(pairs, expected) << n << " positions";
  }
}

TEST(StealOrder, ConsecutiveSeedsStartAtDifferentPositions) {
  for (uint32_t random = 0; random < 1000; ++random) {
    EXPECT_NE(visit(8, random)[0], visit(8, random + 1)[0]);
  }
}

}  // namespace
}  // namespace gofer::internal
