// gofer-test: once
#include "runtime/trace/stacks.h"

#include <alloca.h>
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "debug/unwind.h"
#include "runtime/procs/current.h"
#include "runtime/threads/m.h"

namespace gofer::internal::tracer {
namespace {

using Pcs = std::vector<uintptr_t>;

// What the last leaf has found.
struct Found {
  Stack* stack = nullptr;
  Pcs pcs;      // of the stack, from the caller of the leaf on
  Pcs unwound;  // the same by the unwinder
};
Found found;

// After a call: it is not the last thing that the function does, so the function has a frame.
void keep_frame() { asm volatile("" ::: "memory"); }

[[gnu::noinline]] void leaf() {
  const Inside inside;
  found.stack = stack_here(inside.m());
  found.pcs.clear();
  if (found.stack != nullptr) {
    const auto pcs = found.stack->pcs();
    found.pcs.assign(pcs.begin() + 1, pcs.end());
  }
  std::array<uintptr_t, most_calls + 10> unwound;
  const size_t n = std::min(unwind_here(unwound, 0), most_calls);
  found.unwound.assign(unwound.begin() + 1, unwound.begin() + static_cast<long>(n));
}

// Functions that call each other at random: with frames of the same and of different sizes, of a
// size that varies, and with a handler.
std::mt19937 random_numbers(1);
void call_random(int depth);

template <size_t size>
void call_with_frame(int depth) {
  std::array<char, size> frame;
  asm volatile("" : : "r"(frame.data()) : "memory");
  call_random(depth);
  asm volatile("" : : "r"(frame.data()) : "memory");
}
[[gnu::noinline]] void small(int depth) { call_with_frame<32>(depth); }
[[gnu::noinline]] void as_small(int depth) {
  call_with_frame<32>(depth);
  keep_frame();
}
[[gnu::noinline]] void large(int depth) { call_with_frame<136>(depth); }
[[gnu::noinline]] void catches(int depth) {
  try {
    call_with_frame<72>(depth);
  } catch (int) {
    std::abort();
  }
}
[[gnu::noinline]] void varies(int depth) {
  auto* x = static_cast<volatile char*>(alloca(16 + 16 * (random_numbers() % 3)));
  x[0] = 1;
  call_random(depth);
  x[1] = 2;
}

[[gnu::noinline]] void call_random(int depth) {
  constexpr std::array<void (*)(int), 5> functions{small, as_small, large, catches, varies};
  if (depth == 0) {
    leaf();
  } else {
    functions[random_numbers() % functions.size()](depth - 1);
  }
  keep_frame();
}

TEST(Stacks, AreThoseOfTheUnwinderForRandomCalls) {
  constexpr int calls = 100'000;
  int without = 0;
  std::set<uint32_t> ids;
  run([&] {
    for (int i = 0; i < calls; ++i) {
      call_random(static_cast<int>(random_numbers() % 6));
      if (found.stack == nullptr) {
        ++without;
        continue;
      }
      ASSERT_EQ(found.pcs, found.unwound) << "at call " << i;
      ids.insert(found.stack->id);
    }
  });
  RecordProperty("stacks", static_cast<int>(ids.size()));
  RecordProperty("without", without);
  // Frames of many sizes in any order have too many shapes for one depth.
  EXPECT_LT(without, calls / 2);
  EXPECT_GT(ids.size(), 1000u);
}

[[gnu::noinline]] void first_way() {
  leaf();
  keep_frame();
}
[[gnu::noinline]] void second_way() {
  leaf();
  keep_frame();
}

TEST(Stacks, TellTwoWaysToOneCallApart) {
  run([] {
    std::array<uint32_t, 2> ids{};
    for (int round = 0; round < 3; ++round) {
      for (auto* way : {first_way, second_way}) {
        way();
        ASSERT_NE(found.stack, nullptr);
        EXPECT_EQ(found.pcs, found.unwound);
        uint32_t& id = ids[way == second_way];
        EXPECT_TRUE(round == 0 || found.stack->id == id);
        id = found.stack->id;
      }
    }
    EXPECT_NE(ids[0], ids[1]);
  });
}

template <int n>
[[gnu::noinline]] void way() {
  leaf();
  keep_frame();
}

template <int... n>
std::vector<void (*)()> ways(std::integer_sequence<int, n...>) {
  return {way<n>...};
}

TEST(Stacks, TellManyWaysToOneCallApart) {
  run([] {
    std::set<uint32_t> ids;
    const auto all = ways(std::make_integer_sequence<int, 50>());
    for (int round = 0; round < 3; ++round) {
      for (auto* one : all) {
        one();
        ASSERT_NE(found.stack, nullptr);
        EXPECT_EQ(found.pcs, found.unwound);
        ids.insert(found.stack->id);
      }
    }
    EXPECT_EQ(ids.size(), all.size());
  });
}

[[gnu::noinline]] void recurse(int depth) {
  if (depth == 0) {
    leaf();
  } else {
    recurse(depth - 1);
  }
  keep_frame();
}

TEST(Stacks, HaveTheInnermostCallsOfARecursion) {
  run([] {
    std::set<uint32_t> ids;
    for (int round = 0; round < 2; ++round) {
      for (int depth = 0; depth < 100; ++depth) {
        recurse(depth);
        ASSERT_NE(found.stack, nullptr);
        EXPECT_LE(found.stack->pcs().size(), most_calls);
        EXPECT_EQ(found.pcs, found.unwound) << depth;
        ids.insert(found.stack->id);
      }
    }
    EXPECT_EQ(ids.size(), 100u);
  });
}

TEST(Stacks, AreFoundByOtherGoroutinesWithTheSameFunction) {
  run([] {
    std::set<uint32_t> ids;
    for (int i = 0; i < 10; ++i) {
      wait_group one;
      one.go([&] {
        recurse(2);
        ids.insert(found.stack != nullptr ? found.stack->id : 0);
      });
      one.wait();
    }
    EXPECT_EQ(ids.size(), 1u);
    EXPECT_FALSE(ids.contains(0));
  });
}

TEST(Stacks, HaveTheFunctionOfTheGoroutine) {
  run([] {
    G* g = current_m()->curg;
    leaf();
    ASSERT_NE(found.stack, nullptr);
    EXPECT_EQ(found.stack->entry, entry_of(g));
  });
}

TEST(Stacks, ThatHaveNoRoomAreNoStacks) {
  run([] {
    recurse(200);
    const Stack* known = found.stack;
    ASSERT_NE(known, nullptr);
    const auto limit = [](uint32_t most) {
      const Inside inside;
      limit_stacks(most);
    };
    limit(count_stacks());
    for (int i = 0; i < 3; ++i) {
      recurse(201 + i);
      EXPECT_EQ(found.stack, nullptr);
      recurse(200);
      EXPECT_EQ(found.stack, known);
    }
    limit(most_stacks);
    recurse(201);
    EXPECT_NE(found.stack, nullptr);
    EXPECT_EQ(found.pcs, found.unwound);
  });
}

TEST(Stacks, AreOfTheGoroutinesOwnStackOnly) {
  run([] {
    // Another goroutine's M: what runs here is not on its stack.
    M other_m;
    G other;
    other_m.curg = &other;
    EXPECT_EQ(stack_here(&other_m), nullptr);
    other_m.curg = nullptr;
    EXPECT_EQ(stack_here(&other_m), nullptr);
  });
}

}  // namespace
}  // namespace gofer::internal::tracer
