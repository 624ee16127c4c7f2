// gofer-test: once
// Stacks without goroutines: classes, tops, guards of each kind, reuse, and what is given back to
// the system.
#include "runtime/stacks/stack.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "os/memory.h"
#include "os/raw_syscall.h"
#include "runtime/base/sanitizer.h"

namespace gofer::internal {
namespace {

// Each test that needs fresh stacks has a class to itself: stacks are never unmapped.
constexpr StackClass marker_class{1};
constexpr StackClass mprotect_class{2};
constexpr StackClass none_class{5};
constexpr StackClass reuse_class{4};
constexpr StackClass pages_class{6};
constexpr StackClass cold_class{0};
constexpr StackClass map_class{7};
constexpr StackClass spaced_class{8};  // 32 MiB: twice that is more than the smallest space

// Asks the kernel, which answers EFAULT where an access of ours would end the process.
bool readable(const char* address) {
  int ends[2];
  if (pipe(ends) != 0) abort();
  const long written = os::raw_syscall(SYS_write, ends[1], reinterpret_cast<long>(address), 1);
  close(ends[0]);
  close(ends[1]);
  return written == 1;
}

bool guarded(const char* stack) {
  for (size_t at = 0; at < stack_guard_size; at += os::page_size) {
    if (readable(stack + at) || readable(stack + at + os::page_size - 1)) return false;
  }
  return readable(stack + stack_guard_size);
}

size_t resident_pages(const char* from, const char* to) {
  const auto first = reinterpret_cast<uintptr_t>(from) & ~(os::page_size - 1);
  const size_t pages =
      (reinterpret_cast<uintptr_t>(to) - first + os::page_size - 1) / os::page_size;
  std::vector<unsigned char> present(pages);
  if (mincore(reinterpret_cast<void*>(first), pages * os::page_size, present.data()) != 0) abort();
  return static_cast<size_t>(
      std::count_if(present.begin(), present.end(), [](unsigned char c) { return (c & 1) != 0; }));
}

size_t resident_pages(const char* stack, StackClass c) {
  return resident_pages(stack + stack_guard_size, stack + stack_size(c));
}

void touch(char* from, const char* to) {
  for (char* at = from; at < to; at += os::page_size) *const_cast<volatile char*>(at) = 1;
}

struct Mapping {
  uintptr_t from;
  uintptr_t to;
  std::string permissions;
};

// The mapping that the address lies in, as /proc/self/maps has it.
Mapping mapping_of(const char* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long from = 0;
    unsigned long to = 0;
    char mode[8] = {};
    if (sscanf(line.c_str(), "%lx-%lx %7s", &from, &to, mode) != 3) continue;
    const auto at = reinterpret_cast<uintptr_t>(address);
    if (at >= from && at < to) return {from, to, mode};
  }
  return {};
}

std::string permissions(const char* address) { return mapping_of(address).permissions; }

TEST(Stack, ClassesArePowersOfTwoFrom128KiB) {
  EXPECT_EQ(stack_size(StackClass{0}), 128u * 1024);
  for (int c = 1; c < stack_classes; ++c) {
    EXPECT_EQ(stack_size(StackClass(c)), 2 * stack_size(StackClass(c - 1)));
  }
  EXPECT_EQ(stack_size(StackClass(stack_classes - 1)), size_t{1} << 30);
}

TEST(Stack, ClassIsTheSmallestThatHoldsTheWishBesideTheGuard) {
  StackClass c;
  for (int i = 0; i < stack_classes; ++i) {
    const size_t usable = stack_size(StackClass(i)) - stack_guard_size;
    ASSERT_TRUE(stack_class_for(usable, c));
    EXPECT_EQ(static_cast<int>(c), i);
    ASSERT_EQ(stack_class_for(usable + 1, c), i + 1 < stack_classes);
    if (i + 1 < stack_classes) {
      EXPECT_EQ(static_cast<int>(c), i + 1);
    }
  }
  ASSERT_TRUE(stack_class_for(1, c));
  EXPECT_EQ(static_cast<int>(c), 0);
  ASSERT_TRUE(stack_class_for(0, c));
  EXPECT_EQ(c, default_stack_class());
  EXPECT_FALSE(stack_class_for(SIZE_MAX, c));
  EXPECT_FALSE(stack_class_for(size_t{1} << 30, c));
}

TEST(Stack, DefaultIsOneMiBAndCanBeSet) {
  const StackClass before = default_stack_class();
  EXPECT_EQ(stack_size(before), size_t{1} << 20);
  set_default_stack_size(64 * 1024);
  EXPECT_EQ(default_stack_class(), StackClass{0});
  set_default_stack_size(SIZE_MAX);  // refused
  EXPECT_EQ(default_stack_class(), StackClass{0});
  set_default_stack_size((size_t{1} << 20) - stack_guard_size);
  EXPECT_EQ(default_stack_class(), before);
}

TEST(Stack, LiesAtAMultipleOfItsSize) {
  for (const int c : {3, 8, 9}) {
    char* stack = take_stack(StackClass(c));
    ASSERT_NE(stack, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(stack) % stack_size(StackClass(c)), 0u);
    put_stack(stack, StackClass(c));
  }
}

TEST(Stack, TopsAreAlignedAndOfSixteenColours) {
  const StackClass c{3};
  std::set<size_t> colours;
  std::vector<char*> stacks;
  for (int i = 0; i < 64; ++i) {
    char* stack = take_stack(c);
    ASSERT_NE(stack, nullptr);
    stacks.push_back(stack);
    char* top = stack_top(stack, c);
    const auto below = static_cast<size_t>(stack + stack_size(c) - top);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(top) % 16, 0u);
    EXPECT_GE(below, stack_head_size);
    EXPECT_LE(below, stack_head_size + 960);
    colours.insert(below);
    *(top - 1) = 1;
    EXPECT_EQ(stack_top(stack, c), top);
  }
  // The colour is a hash of the address, which the kernel chooses: 64 may leave one or two out.
  EXPECT_GE(colours.size(), 12u);
  EXPECT_LE(colours.size(), 16u);
  for (char* stack : stacks) put_stack(stack, c);
}

TEST(Stack, MarkerGuardFaultsAndSplitsNoMapping) {
  if (!os::has_guard_markers()) GTEST_SKIP() << "this kernel has no guard markers";
  set_guard_kind(GuardKind::marker);
  std::vector<char*> stacks;
  std::set<uintptr_t> mappings;
  for (int i = 0; i < 200; ++i) {
    char* stack = take_stack(marker_class);
    ASSERT_NE(stack, nullptr);
    stacks.push_back(stack);
    if (i < 5) {
      EXPECT_TRUE(guarded(stack));
    }
    const Mapping mapping = mapping_of(stack);
    EXPECT_EQ(mapping.permissions, "rw-p");
    EXPECT_GE(mapping.to - reinterpret_cast<uintptr_t>(stack), stack_size(marker_class));
    mappings.insert(mapping.from);
  }
  EXPECT_LT(mappings.size(), 60u);  // 200 if each had one
  for (char* stack : stacks) put_stack(stack, marker_class);
}

TEST(Stack, MprotectGuardFaults) {
  set_guard_kind(GuardKind::mprotect);
  set_guard_budget(10);
  forbid_spaced_stacks();
  for (int i = 0; i < 10; ++i) {
    char* stack = take_stack(mprotect_class);
    ASSERT_NE(stack, nullptr);
    EXPECT_TRUE(guarded(stack));
    EXPECT_EQ(permissions(stack), "---p");
    EXPECT_EQ(permissions(stack + stack_guard_size), "rw-p");
  }
  set_guard_kind(GuardKind::marker);
}

// 128 of them share the guard of the lowest one.
TEST(Stack, WithoutGuardsTheNeighbourIsTheNextThing) {
  set_guard_kind(GuardKind::none);
  char* lowest = take_stack(none_class);
  char* stack = take_stack(none_class);
  set_guard_kind(GuardKind::marker);
  ASSERT_NE(lowest, nullptr);
  ASSERT_EQ(stack, lowest + stack_size(none_class));
  EXPECT_TRUE(guarded(lowest));
  touch(stack, stack + stack_size(none_class));
  EXPECT_TRUE(readable(stack - 1));
  put_stack(stack, none_class);
  put_stack(lowest, none_class);
}

TEST(Stack, GuardSurvivesReuse) {
  for (int i = 0; i < 5; ++i) {
    char* stack = take_stack(reuse_class);
    ASSERT_NE(stack, nullptr);
    ASSERT_TRUE(guarded(stack));
    touch(stack + stack_guard_size, stack + stack_size(reuse_class));
    put_stack(stack, reuse_class);
  }
}

TEST(Stack, PoolIsLastInFirstOut) {
  char* a = take_stack(reuse_class);
  char* b = take_stack(reuse_class);
  char* c = take_stack(reuse_class);
  EXPECT_TRUE(a != b && b != c && a != c);
  put_stack(a, reuse_class);
  put_stack(b, reuse_class);
  put_stack(c, reuse_class);
  EXPECT_EQ(take_stack(reuse_class), c);
  EXPECT_EQ(take_stack(reuse_class), b);
  EXPECT_EQ(take_stack(reuse_class), a);
  put_stack(a, reuse_class);
  put_stack(b, reuse_class);
  put_stack(c, reuse_class);
}

TEST(Stack, StackInThePoolKeepsNoMoreThanItsWarmTop) {
  char* stack = take_stack(pages_class);
  ASSERT_NE(stack, nullptr);
  const size_t all = (stack_size(pages_class) - stack_guard_size) / os::page_size;
  touch(stack + stack_guard_size, stack + stack_size(pages_class));
  EXPECT_EQ(resident_pages(stack, pages_class), all);
  put_stack(stack, pages_class);
  EXPECT_EQ(resident_pages(stack, pages_class), 4u);
  const char* end = stack + stack_size(pages_class);
  EXPECT_EQ(resident_pages(end - 4 * os::page_size, end), 4u);
  EXPECT_EQ(take_stack(pages_class), stack);
  EXPECT_EQ(*(end - 2 * os::page_size), 1);  // still what was written
  put_stack(stack, pages_class);
}

TEST(Stack, WhatIsMoreThanManyFreeStacksGivesEverythingBack) {
  constexpr size_t warm = 4096;
  constexpr size_t surplus = 50;
  std::vector<char*> stacks;
  for (size_t i = 0; i < warm + surplus; ++i) {
    char* stack = take_stack(cold_class);
    ASSERT_NE(stack, nullptr);
    touch(stack + stack_size(cold_class) - os::page_size, stack + stack_size(cold_class));
    stacks.push_back(stack);
  }
  for (char* stack : stacks) put_stack(stack, cold_class);
  for (size_t i = 0; i < warm; i += 100) {
    EXPECT_EQ(resident_pages(stacks[i], cold_class), 1u) << i;
  }
  for (size_t i = warm; i < stacks.size(); ++i) {
    EXPECT_EQ(resident_pages(stacks[i], cold_class), 0u) << i;
  }
  // All come back, each once, and the cold ones last.
  std::set<char*> back;
  for (size_t i = 0; i < stacks.size(); ++i) {
    char* stack = take_stack(cold_class);
    EXPECT_EQ(resident_pages(stack, cold_class), i < warm ? 1u : 0u) << i;
    back.insert(stack);
  }
  EXPECT_EQ(back, std::set<char*>(stacks.begin(), stacks.end()));
  for (char* stack : stacks) put_stack(stack, cold_class);
}

TEST(StackCache, RefillBringsABatchAndDrainLeavesTheNewest) {
  StackCache cache;
  ASSERT_TRUE(refill_stacks(cache));
  EXPECT_EQ(cache.count, StackCache::batch);
  std::set<char*> different(cache.slot, cache.slot + cache.count);
  EXPECT_EQ(different.size(), static_cast<size_t>(StackCache::batch));
  std::vector<char*> before(cache.slot, cache.slot + cache.count);
  drain_stacks(cache, 5);
  ASSERT_EQ(cache.count, 5);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(cache.slot[i], before[static_cast<size_t>(StackCache::batch - 5 + i)]);
  }
  drain_stacks(cache, 8);  // fewer are there: nothing happens
  EXPECT_EQ(cache.count, 5);
  EXPECT_EQ(cache.pop(), before[StackCache::batch - 1]);
  EXPECT_EQ(cache.pop(), before[StackCache::batch - 2]);
  EXPECT_EQ(cache.count, 3);
  put_stack(before[StackCache::batch - 1], default_stack_class());
  put_stack(before[StackCache::batch - 2], default_stack_class());
  drain_stacks(cache, 0);
  EXPECT_EQ(cache.count, 0);
  EXPECT_EQ(cache.pop(), nullptr);
}

TEST(StackCache, DrainedStacksGiveTheirDeepPagesBackWhenTrimmed) {
  StackCache cache;
  ASSERT_TRUE(refill_stacks(cache));
  const StackClass c = default_stack_class();
  std::vector<char*> stacks(cache.slot, cache.slot + cache.count);
  for (char* stack : stacks) touch(stack + stack_guard_size, stack + stack_size(c));
  drain_stacks(cache, 0);
  trim_stacks();
  for (char* stack : stacks) EXPECT_EQ(resident_pages(stack, c), 4u);
}

// A stack that another goroutine has just put back counts, too: no other may think that there is
// none.
TEST(StackCache, KnowsWhetherAStackCanBeHadNowOrLater) {
  StackCache cache;
  ASSERT_TRUE(refill_stacks(cache));
  char* used = cache.pop();
  EXPECT_TRUE(any_stack_outside_caches(cache.count));
  put_stack(used, default_stack_class());
  EXPECT_TRUE(any_stack_outside_caches(cache.count));
  drain_stacks(cache, 0);
  EXPECT_TRUE(any_stack_outside_caches(0));
}

// Each runs in a process of its own, because it spoils the process.
class StackDeathTest : public testing::Test {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(StackDeathTest, TouchingTheGuardIsASegmentationFault) {
  if (sanitizers_enabled) GTEST_SKIP() << "the sanitizer has its own way to end";
  EXPECT_EXIT(
      {
        char* stack = take_stack(map_class);
        *const_cast<volatile char*>(stack + stack_guard_size - 1) = 1;
      },
      testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(
      {
        set_guard_kind(GuardKind::mprotect);
        char* stack = take_stack(map_class);
        *const_cast<volatile char*>(stack) = 1;
      },
      testing::KilledBySignal(SIGSEGV), "");
}

// From `from` to `to` nothing can be read, as far as the pages that are looked at tell.
bool inaccessible(const char* from, const char* to) {
  for (const char* at = from; at < to; at += 61 * os::page_size) {
    if (readable(at)) return false;
  }
  return !readable(to - 1);
}

TEST_F(StackDeathTest, TheFirstStacksAreFarFromEverything) {
  if (sanitizers_enabled) GTEST_SKIP() << "address space is the sanitizer's";
  EXPECT_EXIT(
      {
        set_guard_budget(20);
        bool good = true;
        for (int i = 0; i < 18; ++i) {
          const char* stack = take_stack(map_class);
          good = good && guarded(stack) && inaccessible(stack - 15 * (1 << 20), stack);
        }
        for (int i = 0; i < 2; ++i) {
          const char* large = take_stack(spaced_class);
          good = good && guarded(large) && inaccessible(large - stack_size(spaced_class), large);
        }
        // The budget is used up.
        const char* lowest = take_stack(map_class);
        const char* stack = take_stack(map_class);
        good = good && stack == lowest + stack_size(map_class) && readable(stack - 1);
        exit(good && guarded(lowest) && guarded(stack) == os::has_guard_markers() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(StackDeathTest, WhereAddressSpaceIsLimitedNoneIsSpentOnDistance) {
  if (sanitizers_enabled) GTEST_SKIP() << "address space cannot be limited";
  EXPECT_EXIT(
      {
        rlimit limit{};
        limit.rlim_cur = limit.rlim_max = size_t{64} << 30;
        setrlimit(RLIMIT_AS, &limit);
        set_guard_budget(20);
        const char* lowest = take_stack(map_class);
        const char* stack = take_stack(map_class);
        const bool dense = stack == lowest + stack_size(map_class);
        exit(dense && guarded(lowest) && guarded(stack) ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// Until the kernel refuses one more.
void use_up_all_mappings() {
  for (;;) {
    const long page = os::raw_syscall(SYS_mmap, 0, 2 * os::page_size, PROT_NONE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page < 0 && page > -4096) return;
    const long half = os::raw_syscall(SYS_mprotect, page, os::page_size, PROT_READ);
    if (half != 0) return;
  }
}

TEST_F(StackDeathTest, WhenTheKernelRefusesMoreMappingsThereAreStacksAllTheSame) {
  if (sanitizers_enabled) GTEST_SKIP() << "the sanitizer needs mappings, too";
  EXPECT_EXIT(
      {
        const StackClass c = default_stack_class();
        reserve_stacks(300);
        char* dense = take_stack(c);
        set_guard_budget(100);
        char* spaced = take_stack(c);
        const bool before = inaccessible(spaced - 15 * (1 << 20), spaced);
        use_up_all_mappings();
        bool good = dense != nullptr && before;
        for (int i = 0; i < 100 && good; ++i) {
          char* stack = take_stack(c);
          good = stack != nullptr;
          if (good) touch(stack + stack_guard_size, stack + stack_size(c));
        }
        exit(good ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

// VmLck and such, in KiB.
long status_kb(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(key, 0) == 0) return std::stol(line.substr(key.size()));
  }
  return -1;
}

TEST_F(StackDeathTest, UnderMlockallTheGuardIsMadeByMprotect) {
  if (sanitizers_enabled) GTEST_SKIP() << "the sanitizer's shadow cannot be locked";
  EXPECT_EXIT(
      {
        if (mlockall(MCL_FUTURE | MCL_ONFAULT) != 0) exit(0);  // not allowed here
        set_guard_budget(100);
        forbid_spaced_stacks();
        char* stack = take_stack(map_class);
        const bool good = stack != nullptr && guarded(stack) && permissions(stack) == "---p";
        exit(good ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(StackDeathTest, UnderMlockallAStackHasNoMoreMemoryThanItHasTouched) {
  if (sanitizers_enabled) GTEST_SKIP() << "the sanitizer's shadow cannot be locked";
  for (const long budget : {0L, 1000L}) {
    EXPECT_EXIT(
        {
          if (mlockall(MCL_FUTURE) != 0) exit(0);  // not allowed here
          set_guard_budget(budget);
          const long before = status_kb("VmRSS:");
          const bool reserved = reserve_stacks(500);
          StackCache cache;
          bool good = reserved && refill_stacks(cache) && status_kb("VmRSS:") < before + 4096;
          char* stack = cache.pop();
          const StackClass c = default_stack_class();
          touch(stack + stack_guard_size, stack + stack_size(c));
          good = good && resident_pages(stack, c) == 240;
          put_stack(stack, c);
          good = good && resident_pages(stack, c) == 4;  // given back, although it was locked
          exit(good ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
  }
}

TEST_F(StackDeathTest, AddressSpaceThatIsNotUsedIsNoData) {
  EXPECT_EXIT(
      {
        const long before = status_kb("VmData:");
        const bool reserved =
            reserve_stacks(10'000) && take_stack(default_stack_class()) != nullptr;
        const long grown = status_kb("VmData:") - before;
        exit(reserved && grown < 200 * 1024 ? 0 : 1);  // of 10 GB
      },
      testing::ExitedWithCode(0), "");
}

// vm.overcommit_memory=2: what was accepted must be there, so it is charged at once.
TEST_F(StackDeathTest, WhereMemoryIsChargedEarlyStacksAreUsableAsSoonAsTheyAreReserved) {
  if (sanitizers_enabled) GTEST_SKIP() << "the sanitizer needs memory, too";
  EXPECT_EXIT(
      {
        set_charged_early(true);
        set_guard_budget(1000);
        const long before = status_kb("VmData:");
        const bool reserved = reserve_stacks(300);
        const long grown = status_kb("VmData:") - before;
        rlimit none{};
        setrlimit(RLIMIT_DATA, &none);  // no page more of it
        bool good = reserved && grown > 290 * 1024 && !reserve_stacks(1);
        for (int i = 0; i < 300 && good; ++i) good = take_stack(default_stack_class()) != nullptr;
        exit(good ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(StackDeathTest, WithoutAddressSpaceThereIsNoStack) {
  if (sanitizers_enabled) GTEST_SKIP() << "the sanitizer has used the address space up";
  EXPECT_EXIT(
      {
        rlimit limit{};
        limit.rlim_cur = limit.rlim_max = 256u << 20;
        setrlimit(RLIMIT_AS, &limit);
        const bool none =
            take_stack(StackClass(stack_classes - 1)) == nullptr && !reserve_stacks(100'000);
        // What fits is still to be had.
        char* small = take_stack(cold_class);
        exit(none && small != nullptr && guarded(small) ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gofer::internal
