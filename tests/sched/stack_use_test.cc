// What goroutines may do with their stacks: go deep, have large frames, keep their contents and the
// floating-point environment over switches, be there a million at once, and give memory back.
#include <alloca.h>
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <xmmintrin.h>

#include <array>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/sanitizer.h"
#include "support/child.h"
#include "support/quiescent.h"
#include "support/scaled.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using test::ChildResult;
using test::quiescent;
using test::run_child;
using test::scaled;
using test::wait_until;
using test::with_debug;

constexpr bool sanitized = internal::sanitizers_enabled;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
// Of a stack, for the frames above and below those that a test counts.
constexpr std::size_t spare = sanitized ? 32 * kib : 6 * kib;

using Stack = test::QuiescentTest;
using FloatingPoint = test::QuiescentTest;

// ---------------------------------------------------------------- depth

// Goes down until `bytes` of stack lie above, and checks on the way back what it left there; with
// `yields`, others run while it is at the bottom and on the way.
template <int FrameSize>
// NOLINTNEXTLINE(misc-no-recursion)
[[gnu::noinline]] bool descend(std::uintptr_t top, std::size_t bytes, bool yields) {
  volatile unsigned char frame[FrameSize];
  const auto here = reinterpret_cast<std::uintptr_t>(&frame[0]);
  const auto mark = static_cast<unsigned char>((here >> 9) + (top >> 12));
  for (int i = 0; i < FrameSize; i += 73) frame[i] = static_cast<unsigned char>(mark + i);
  bool ok = true;
  if (top - here < bytes) {
    ok = descend<FrameSize>(top, bytes, yields);
    if (yields && (here >> 9) % 64 == 0) yield();
  } else if (yields) {
    for (int i = 0; i < 5; ++i) yield();
  }
  for (int i = 0; i < FrameSize; i += 73) {
    ok = ok && frame[i] == static_cast<unsigned char>(mark + i);
  }
  return ok;
}

// TSan follows 65,536 frames at most.
bool descend_here(std::size_t bytes, bool yields = false) {
  const auto top = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return bytes < 8 * mib ? descend<512>(top, bytes, yields) : descend<4096>(top, bytes, yields);
}

TEST_F(Stack, OfDefaultSizeHas960KiB) {
  if (std::getenv("GOFER_STACK_SIZE") != nullptr) GTEST_SKIP() << "another default";
  EXPECT_TRUE(run([] { return descend_here(960 * kib - spare); }));
  std::atomic<int> good{0};
  const int count = scaled(200);
  wait_group group;
  for (int i = 0; i < count; ++i) {
    group.go([&, i] { good += descend_here((960 * kib - spare) / (1 + i % 7), true); });
  }
  group.wait();
  EXPECT_EQ(good, count);
}

TEST_F(Stack, HasTheSizeThatWasAskedFor) {
  for (const std::size_t size :
       {64 * kib, 65 * kib, 128 * kib, 300 * kib, 960 * kib, mib, 2 * mib, 7 * mib, 64 * mib}) {
    const std::size_t depth = size - spare;
    std::atomic<int> good{0};
    const int count = size > 8 * mib ? 2 : 10;
    wait_group group;
    group.add(count);
    for (int i = 0; i < count; ++i) {
      go({.name = "deep", .stack_size = size}, [&] {
        good += descend_here(depth, true);
        group.done();
      });
    }
    group.wait();
    EXPECT_EQ(good, count) << size;
    EXPECT_EQ(run([&] {
                wait_group inner;
                inner.add(1);
                bool ok = false;
                go({.stack_size = size}, [&] {
                  ok = descend_here(depth);
                  inner.done();
                });
                inner.wait();
                return ok;
              }),
              true)
        << size;
  }
}

TEST_F(Stack, OfEverySizeIsUsedAgain) {
  const int rounds = scaled(2000);
  std::atomic<int> good{0};
  run([&] {
    for (int i = 0; i < rounds; ++i) {
      wait_group group;
      group.add(4);
      for (const std::size_t size : {64 * kib, 0 * kib, 200 * kib, 4 * mib}) {
        go({.stack_size = size}, [&] {
          good += descend_here(16 * kib, true);
          group.done();
        });
      }
      group.wait();
    }
  });
  EXPECT_EQ(good, 4 * rounds);
}

TEST_F(Stack, SizeFromTheEnvironment) {
  const std::vector<std::pair<std::string, std::size_t>> cases = {
      {"64K", 64 * kib}, {"131072", 128 * kib}, {"1M", mib}, {"8M", 8 * mib}, {"64M", 64 * mib}};
  for (const auto& [text, size] : cases) {
    const ChildResult r =
        run_child("use_stack", {std::to_string(size - spare), "20"}, {"GOFER_STACK_SIZE=" + text});
    EXPECT_TRUE(r.exited_with(0)) << text << r;
    EXPECT_EQ(r.err, "") << text;
  }
}

TEST_F(Stack, TakesStdRegexOnLongTexts) {
  // A few hundred bytes of stack for every character; a sanitizer multiplies them.
  const std::size_t size = sanitized ? 64 * mib : 0;
  for (const int length : {378, 800}) {
    const std::string text = std::string(static_cast<std::size_t>(length), 'a') + "!";
    const std::regex pattern("(a|b)*!");
    wait_group group;
    std::atomic<int> matched{0};
    const int count = 8;
    group.add(count);
    for (int i = 0; i < count; ++i) {
      go({.stack_size = size}, [&] {
        matched += std::regex_match(text, pattern);
        group.done();
      });
    }
    group.wait();
    EXPECT_EQ(matched, count) << length;
  }
}

// ---------------------------------------------------------------- large frames

template <std::size_t Size>
[[gnu::noinline]] bool large_frame(int seed) {
  volatile unsigned char bytes[Size];
  for (std::size_t i = 0; i < Size; i += 1021) bytes[i] = static_cast<unsigned char>(seed + i);
  yield();
  bool ok = true;
  for (std::size_t i = 0; i < Size; i += 1021) {
    ok = ok && bytes[i] == static_cast<unsigned char>(seed + i);
  }
  return ok;
}

TEST_F(Stack, HoldsLargeFrames) {
  std::atomic<int> good{0};
  const int rounds = scaled(100);
  wait_group group;
  for (int i = 0; i < rounds; ++i) {
    group.go([&, i] {
      good += large_frame<5'000>(i);
      good += large_frame<70'000>(i + 1);
      good += large_frame<300'000>(i + 2);
      good += large_frame<900'000>(i + 3);
    });
  }
  group.wait();
  EXPECT_EQ(good, 4 * rounds);
}

[[gnu::noinline]] bool use_alloca(std::size_t size, int seed) {
  auto* bytes = static_cast<unsigned char*>(alloca(size));
  std::memset(bytes, seed, size);
  yield();
  bool ok = true;
  for (std::size_t i = 0; i < size; ++i) ok = ok && bytes[i] == static_cast<unsigned char>(seed);
  return ok;
}

TEST_F(Stack, HoldsAllocaOfManySizes) {
  std::atomic<int> good{0};
  int count = 0;
  wait_group group;
  for (const std::size_t size : {1, 100, 4095, 4096, 4097, 20'000, 65'536, 200'000, 800'000}) {
    for (int i = 0; i < scaled(40); ++i) {
      ++count;
      group.go([&, size, i] { good += use_alloca(size, i); });
    }
  }
  group.wait();
  EXPECT_EQ(good, count);
}

TEST_F(Stack, IsAlignedForVectorInstructions) {
  std::atomic<int> misaligned{0};
  run([&] {
    wait_group group;
    for (int i = 0; i < 200; ++i) {
      group.go([&] {
        alignas(16) volatile char sixteen[16];
        alignas(64) volatile char sixty_four[64];
        sixteen[0] = 1;
        sixty_four[0] = 1;
        yield();
        misaligned += reinterpret_cast<std::uintptr_t>(&sixteen[0]) % 16 != 0;
        misaligned += reinterpret_cast<std::uintptr_t>(&sixty_four[0]) % 64 != 0;
        char text[100];
        // printf with a double spills vector registers with aligned moves.
        std::snprintf(text, sizeof text, "%f %a", 1.5, 0.1);
        misaligned += std::strncmp(text, "1.500000 ", 9) != 0;
      });
    }
    group.wait();
  });
  EXPECT_EQ(misaligned, 0);
}

// ---------------------------------------------------------------- contents over switches

TEST_F(Stack, KeepsItsContentsOverManySwitches) {
  const int count = scaled(2000);
  const int rounds = 50;
  std::atomic<int> good{0};
  run([&] {
    wait_group group;
    for (int g = 0; g < count; ++g) {
      group.go([&, g] {
        std::array<std::uint64_t, 200> data;
        const auto seed = static_cast<std::uint64_t>(g) * 0x9e3779b97f4a7c15u;
        for (std::size_t i = 0; i < data.size(); ++i) data[i] = seed + i;
        std::uint64_t a = seed, b = seed + 1, c = seed + 2, d = seed + 3, e = seed + 4,
                      f = seed + 5;
        double x = g, y = g + 0.5;
        bool ok = true;
        for (int round = 0; round < rounds; ++round) {
          yield();
          a += 1, b += 2, c += 3, d += 4, e += 5, f += 6, x += 1.0, y += 0.25;
          const auto at = static_cast<std::size_t>(round * 7) % data.size();
          ok = ok && data[at] == seed + at;
        }
        const auto n = static_cast<std::uint64_t>(rounds);
        ok = ok && a == seed + n && b == seed + 1 + 2 * n && c == seed + 2 + 3 * n;
        ok = ok && d == seed + 3 + 4 * n && e == seed + 4 + 5 * n && f == seed + 5 + 6 * n;
        ok = ok && x == g + rounds && y == g + 0.5 + 0.25 * rounds;
        for (std::size_t i = 0; i < data.size(); ++i) ok = ok && data[i] == seed + i;
        good += ok;
      });
    }
    group.wait();
  });
  EXPECT_EQ(good, count);
}

TEST_F(Stack, MayBePointedIntoByOthers) {
  const int count = scaled(1000);
  std::atomic<int> good{0};
  run([&] {
    wait_group group;
    for (int g = 0; g < count; ++g) {
      group.go([&, g] {
        std::array<int, 100> mine{};
        wait_group helpers;
        for (std::size_t i = 0; i < mine.size(); ++i) {
          helpers.go([&mine, i, g] { mine[i] = g + static_cast<int>(i); });
        }
        helpers.wait();
        bool ok = true;
        for (std::size_t i = 0; i < mine.size(); ++i) ok = ok && mine[i] == g + static_cast<int>(i);
        good += ok;
      });
    }
    group.wait();
  });
  EXPECT_EQ(good, count);
}

// ---------------------------------------------------------------- the floating-point environment

// What the mode does, in SSE and in x87 arithmetic.
struct Thirds {
  double d;
  long double ld;
  bool operator==(const Thirds&) const = default;
};
[[gnu::noinline]] Thirds thirds() {
  volatile double d = 1.0;
  volatile double three = 3.0;
  volatile long double ld = 1.0L;
  volatile long double three_l = 3.0L;
  d = d / three;
  ld = ld / three_l;
  return {d, ld};
}

constexpr std::array<int, 4> modes = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};

TEST_F(FloatingPoint, RoundingModeBelongsToTheGoroutine) {
  std::array<Thirds, 4> expected;
  for (std::size_t m = 0; m < modes.size(); ++m) {
    std::fesetround(modes[m]);
    expected[m] = thirds();
  }
  std::fesetround(FE_TONEAREST);
  ASSERT_FALSE(expected[1] == expected[2]);
  std::atomic<int> wrong{0};
  const int count = scaled(1000);
  run([&] {
    wait_group group;
    for (int i = 0; i < count; ++i) {
      group.go([&, m = static_cast<std::size_t>(i) % modes.size()] {
        wrong += std::fegetround() != FE_TONEAREST;
        std::fesetround(modes[m]);
        for (int round = 0; round < 20; ++round) {
          yield();
          wrong += std::fegetround() != modes[m];
          wrong += !(thirds() == expected[m]);
        }
        std::fesetround(FE_TONEAREST);
      });
    }
    group.wait();
    wrong += std::fegetround() != FE_TONEAREST;
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

TEST_F(FloatingPoint, SurvivesParkingAndOtherThreads) {
  wait_group gate;
  gate.add(1);
  std::atomic<int> parked{0};
  std::atomic<int> wrong{0};
  const int count = scaled(1000);
  for (int i = 0; i < count; ++i) {
    go([&, mode = modes[static_cast<std::size_t>(i) % modes.size()]] {
      std::fesetround(mode);
      ++parked;
      gate.wait();
      wrong += std::fegetround() != mode;
      std::fesetround(FE_TONEAREST);
    });
  }
  EXPECT_TRUE(wait_until([&] { return parked == count; }));
  gate.done();
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(wrong, 0);
}

// A goroutine that ends with another mode leaves it to no other goroutine, however it ends.
TEST_F(FloatingPoint, IsNotLeftBehindByAGoroutineThatEnds) {
  std::atomic<int> wrong{0};
  const unsigned clean = _mm_getcsr() & ~0x3fu;  // without the flags of past operations
  const auto check = [&] {
    wrong += std::fegetround() != FE_TONEAREST;
    wrong += (_mm_getcsr() & ~0x3fu) != clean;
  };
  run([&] {
    for (int i = 0; i < scaled(5000); ++i) {
      wait_group group;
      group.go([&, i] {
        check();
        std::fesetround(i % 2 == 0 ? FE_UPWARD : FE_DOWNWARD);
        _mm_setcsr(_mm_getcsr() | 0x8040u);  // flush to zero, denormals are zero
        if (i % 3 == 0) yield();
        if (i % 5 == 0) goexit();
      });
      group.go(check);
      if (i % 2 == 0) group.go(check);
      group.wait();
      check();
    }
  });
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(wrong, 0);
}

TEST_F(FloatingPoint, OfAPlainThreadStays) {
  std::fesetround(FE_UPWARD);
  const int inside = run([] {
    const int mode = std::fegetround();
    std::fesetround(FE_DOWNWARD);
    yield();
    return mode;
  });
  wait_group group;
  group.go([] { std::fesetround(FE_TOWARDZERO); });
  group.wait();
  const int after = std::fegetround();
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(after, FE_UPWARD);
  EXPECT_TRUE(inside == FE_TONEAREST || inside == FE_UPWARD);
}

// ---------------------------------------------------------------- memory

struct MemoryReport {
  long before = 0, in_use = 0, after = 0;
};

bool read_report(const ChildResult& r, MemoryReport& m) {
  return std::sscanf(r.out.c_str(), "before %ld in_use %ld after %ld", &m.before, &m.in_use,
                     &m.after) == 3;
}

TEST_F(Stack, GivesMemoryBackWhenAllIsQuiet) {
  if (sanitized) GTEST_SKIP() << "the sanitizer's own memory grows with the stacks";
  const ChildResult r = run_child("use_memory", {"100000", "500", "204800"},
                                  {with_debug("idlems=50,scavengems=8000")});
  ASSERT_TRUE(r.exited_with(0)) << r;
  MemoryReport m;
  ASSERT_TRUE(read_report(r, m)) << r;
  EXPECT_GT(m.in_use, m.before + 500 * 200) << r;
  // 500 stacks may keep 16 KiB each.
  EXPECT_LT(m.after, m.before + 500 * 16 + 4096) << r;
}

long parked_kb(const ChildResult& r, long count) {
  long parked = 0;
  long kb = 0;
  if (std::sscanf(r.out.c_str(), "parked %ld kb %ld", &parked, &kb) != 2) return -1;
  return parked == count ? kb : -1;
}

// Of all children so far. Not the time that passed: others may need this machine, too.
double child_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST_F(Stack, TwentyThousandParkedWithoutMarkers) {
  const int count = scaled(20'000);
  for (const char* guard : {"guard=mprotect", "guard=none"}) {
    const ChildResult r = run_child("use_parked", {std::to_string(count)}, {with_debug(guard)});
    EXPECT_TRUE(r.exited_with(0)) << r;
    EXPECT_GT(parked_kb(r, count), 0) << r;
    EXPECT_EQ(r.err, "") << r;
  }
}

TEST_F(Stack, AMillionParkedAtOnceWhateverTheGuards) {
  if (sanitized) GTEST_SKIP() << "too many for a sanitizer";
  if (gomaxprocs(0) != 2 || std::getenv("GOFER_DEBUG") != nullptr) {
    GTEST_SKIP() << "once, with two processors";
  }
  for (const char* guard : {"guard=madvise", "guard=mprotect", "guard=none"}) {
    const double before = child_cpu_seconds();
    const ChildResult r =
        run_child("use_parked", {"1000000"}, {with_debug(guard)}, std::chrono::seconds(180));
    const double took = child_cpu_seconds() - before;
    EXPECT_TRUE(r.exited_with(0)) << guard << r;
    EXPECT_EQ(r.err, "") << guard << r;
    const long kb = parked_kb(r, 1'000'000);
    EXPECT_GT(kb, 0) << guard << r;
    EXPECT_LT(kb, 7L << 20) << guard << r;
    EXPECT_LT(took, 60.0) << guard;
  }
}

}  // namespace
}  // namespace gofer
