// Closures of goroutines: where they live and when they die, what a failed `go` leaves behind, and
// closures whose copies wait.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "runtime/base/sanitizer.h"
#include "support/quiescent.h"
#include "support/scaled.h"
#include "support/tracked.h"
#include "support/wait_until.h"

namespace {
thread_local std::size_t allocations = 0;  // by operator new, in this thread
}  // namespace

#ifdef GOFER_TSAN  // clang's runtime for it has an operator new that cannot be replaced
constexpr bool allocations_are_counted = false;
#else
constexpr bool allocations_are_counted = true;

namespace {
void* allocate(std::size_t size, std::size_t align) {
  ++allocations;
  const std::size_t rounded = (std::max<std::size_t>(size, 1) + align - 1) / align * align;
  void* p = std::aligned_alloc(align, rounded);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

// Not inlined, or g++ sees a pointer from operator new in free().
[[gnu::noinline]] void release(void* p) { std::free(p); }
}  // namespace

void* operator new(std::size_t size) { return allocate(size, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new(std::size_t size, std::align_val_t align) {
  return allocate(size, static_cast<std::size_t>(align));
}
void operator delete(void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }
#endif

namespace gofer {
namespace {

using test::quiescent;
using test::Tracked;
using test::wait_until;

constexpr int scaled(int count) { return test::scaled(count, 50); }

using GoClosure = test::QuiescentTest;
using GoFailure = test::QuiescentTest;

// ---------------------------------------------------------------- where a closure lives and dies

TEST_F(GoClosure, IsDestroyedOnceInTheGoroutineAfterTheCall) {
  for (const bool from_goroutine : {false, true}) {
    Tracked::reset();
    std::atomic<std::uint64_t> ran_in{0};
    std::atomic<int> alive_in_call{0};
    const int before = Tracked::alive;
    const auto start = [&] {
      go(
          [&ran_in, &alive_in_call, tracked = Tracked()](const Tracked& argument) {
            static_cast<void>(argument);
            alive_in_call = Tracked::alive.load();
            ran_in = this_goroutine::id();
            yield();
          },
          Tracked());
    };
    if (from_goroutine) {
      run(start);
    } else {
      start();
    }
    ASSERT_TRUE(quiescent());
    EXPECT_EQ(Tracked::alive, before);
    EXPECT_EQ(Tracked::copies, 0);
    EXPECT_GE(alive_in_call, before + 2);
    EXPECT_NE(ran_in, 0u);
    EXPECT_EQ(Tracked::died_in, ran_in);
  }
}

TEST_F(GoClosure, CopiesLvaluesOnce) {
  Tracked::reset();
  const Tracked argument;
  const auto f = [held = Tracked()](const Tracked&) { static_cast<void>(held); };
  Tracked::reset();
  go(f, argument);
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(Tracked::copies, 2);
}

template <std::size_t Size, std::size_t Align = 1>
struct alignas(Align) Sized {
  static inline std::atomic<int> alive{0};
  static inline std::atomic<int> good{0};
  static inline std::atomic<int> misaligned{0};
  std::array<unsigned char, Size> bytes;

  explicit Sized(int seed) {
    for (std::size_t i = 0; i < Size; ++i) bytes[i] = static_cast<unsigned char>(seed + i * 7);
    ++alive;
  }
  Sized(const Sized& other) : bytes(other.bytes) { ++alive; }
  ~Sized() { --alive; }
  void operator()() {
    const int seed = bytes[0];
    bool intact = true;
    for (std::size_t i = 0; i < Size; ++i) {
      intact = intact && bytes[i] == static_cast<unsigned char>(seed + i * 7);
    }
    good += intact ? 1 : 0;
    misaligned += reinterpret_cast<std::uintptr_t>(this) % Align == 0 ? 0 : 1;
    yield();
  }
};

// Checks how many times `go` of such a closure calls operator new, once it is warm.
template <class Closure>
void expect_allocations(std::size_t expected) {
  const int count = 100;
  Closure::good = 0;
  for (int i = 0; i < count; ++i) go(Closure(i));
  EXPECT_TRUE(quiescent());
  const Closure closure(1);
  const std::size_t before = allocations;
  go(closure);
  const std::size_t made = allocations - before;
  EXPECT_TRUE(quiescent());
  EXPECT_EQ(Closure::good, count + 1) << sizeof(Closure);
  EXPECT_EQ(Closure::misaligned, 0) << sizeof(Closure);
  EXPECT_EQ(Closure::alive, 1) << sizeof(Closure);
  if (allocations_are_counted) {
    EXPECT_EQ(made, expected) << sizeof(Closure);
  }
}

TEST_F(GoClosure, UpTo64BytesNeedsNoHeap) {
  expect_allocations<Sized<1>>(0);
  expect_allocations<Sized<8, 8>>(0);
  expect_allocations<Sized<63>>(0);
  expect_allocations<Sized<64>>(0);
  expect_allocations<Sized<64, 16>>(0);
}

TEST_F(GoClosure, LargerOrOverAlignedGoesToTheHeapInOnePiece) {
  expect_allocations<Sized<65>>(1);
  expect_allocations<Sized<128, 8>>(1);
  expect_allocations<Sized<4096>>(1);
  expect_allocations<Sized<100'000>>(1);
  expect_allocations<Sized<32, 32>>(1);
  expect_allocations<Sized<64, 64>>(1);
  expect_allocations<Sized<128, 128>>(1);
  expect_allocations<Sized<8192, 4096>>(1);
}

TEST_F(GoClosure, ArgumentsCountTowardsItsSize) {
  std::array<char, 56> small{};
  std::array<char, 64> large{};
  std::atomic<int> ran{0};
  const auto f = [&ran](const auto&) { ++ran; };  // one pointer
  static_assert(sizeof f == 8);
  go(f, small);
  ASSERT_TRUE(quiescent());
  std::size_t before = allocations;
  go(f, small);
  EXPECT_EQ(allocations - before, 0u);
  before = allocations;
  go(f, large);
  if (allocations_are_counted) {
    EXPECT_EQ(allocations - before, 1u);
  }
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(ran, 3);
}

TEST_F(GoClosure, NamesAreCopied) {
  std::string name = "a name that lives only until go has returned";
  std::string seen;
  wait_group gate, done;
  gate.add(1);
  done.add(1);
  go({.name = name}, [&] {
    gate.wait();
    seen = this_goroutine::name();
    done.done();
  });
  name.assign(name.size(), '?');
  gate.done();
  done.wait();
  EXPECT_EQ(seen, "a name that lives only until go has returned");
}

// ---------------------------------------------------------------- a `go` that fails

struct CopyFailed : std::runtime_error {
  CopyFailed() : std::runtime_error("copy") {}
};
template <std::size_t Size>
struct ThrowsOnCopy {
  std::array<char, Size> bytes{};
  ThrowsOnCopy() = default;
  ThrowsOnCopy(const ThrowsOnCopy&) { throw CopyFailed(); }
  void operator()() const { std::abort(); }
};

std::size_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  unsigned long all = 0, resident = 0;
  const bool ok = file != nullptr && std::fscanf(file, "%lu %lu", &all, &resident) == 2;
  if (file != nullptr) std::fclose(file);
  return ok ? resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) : 0;
}

template <class F>
bool fails_to_copy(F&& f) {
  try {
    f();
  } catch (const CopyFailed&) {
    return true;
  }
  return false;
}

TEST_F(GoFailure, LeavesNothingBehindWhenTheCallableThrows) {
  const ThrowsOnCopy<8> small;
  const ThrowsOnCopy<500> large;
  EXPECT_TRUE(fails_to_copy([&] { go(small); }));
  EXPECT_TRUE(fails_to_copy([&] { go(large); }));
  EXPECT_TRUE(fails_to_copy([&] { go({.name = "named"}, small); }));
  EXPECT_TRUE(fails_to_copy([&] { go({.name = "named", .stack_size = 1 << 21}, large); }));
  EXPECT_EQ(num_goroutine(), 0u);
  const int failures = run([&] {
    int n = 0;
    n += fails_to_copy([&] { go(small); });
    n += fails_to_copy([&] { go(large); });
    n += fails_to_copy([&] { go({.name = "named", .stack_size = 1 << 21}, small); });
    return num_goroutine() == 1 ? n : -1;
  });
  EXPECT_EQ(failures, 3);
}

TEST_F(GoFailure, DestroysWhatWasCopiedBefore) {
  const ThrowsOnCopy<8> bad;
  const int before = Tracked::alive;
  const auto f = [held = Tracked()](const Tracked&, const ThrowsOnCopy<8>&, const Tracked&) {
    static_cast<void>(held);
  };
  EXPECT_TRUE(fails_to_copy([&] { go(f, Tracked(), bad, Tracked()); }));
  EXPECT_EQ(Tracked::alive, before + 1);
  std::array<char, 100> ballast{};
  const auto g = [ballast, held = Tracked()](const ThrowsOnCopy<8>&) {
    static_cast<void>(ballast);
    static_cast<void>(held);
  };
  EXPECT_TRUE(fails_to_copy([&] { go(g, bad); }));
  EXPECT_EQ(Tracked::alive, before + 2);
}

TEST_F(GoFailure, UsesItsRecordAgain) {
  const ThrowsOnCopy<8> bad;
  const int rounds = scaled(150'000);
  const auto fail_often = [&] {
    int failed = 0;
    for (int i = 0; i < rounds; ++i) {
      failed += fails_to_copy([&] { go(bad); });
      if (i % 8 == 0) failed += fails_to_copy([&] { go({.name = "x"}, bad); }) ? 0 : 1;
    }
    return failed;
  };
  EXPECT_EQ(fail_often(), rounds);  // warm
  const std::size_t before = resident_bytes();
  EXPECT_EQ(fail_often(), rounds);
  EXPECT_EQ(run(fail_often), rounds);
  const std::size_t after = resident_bytes();
  // 150,000 lost records, twice, would be 57 MB.
  EXPECT_LT(after, before + (std::size_t{32} << 20));
}

TEST_F(GoFailure, TooLargeAStackIsBadAlloc) {
  constexpr std::size_t terabyte = std::size_t{1} << 40;
  bool ran = false;
  EXPECT_THROW(go({.stack_size = terabyte}, [&] { ran = true; }), std::bad_alloc);
  EXPECT_THROW(go({.stack_size = ~std::size_t{0}}, [&] { ran = true; }), std::bad_alloc);
  EXPECT_EQ(num_goroutine(), 0u);
  EXPECT_TRUE(run([&] {
    try {
      go({.name = "large", .stack_size = terabyte}, [&] { ran = true; });
    } catch (const std::bad_alloc&) {
      return true;
    }
    return false;
  }));
  EXPECT_FALSE(ran);
}

// ---------------------------------------------------------------- copies that wait

struct YieldsOnCopy {
  std::uint64_t value;
  explicit YieldsOnCopy(std::uint64_t v) : value(v) {}
  YieldsOnCopy(const YieldsOnCopy& other) : value(0) {
    for (int i = 0; i < 3; ++i) yield();
    value = other.value;
    yield();
  }
};

TEST_F(GoClosure, MayBeCopiedByCodeThatYields) {
  const int spawners = 100;
  const int each = scaled(1000);
  std::atomic<std::uint64_t> sum{0};
  std::atomic<int> own_id_kept{0};
  run([&] {
    wait_group group;
    for (int s = 0; s < spawners; ++s) {
      group.go([&] {
        const std::uint64_t id = this_goroutine::id();
        for (int i = 0; i < each; ++i) {
          const YieldsOnCopy value(static_cast<std::uint64_t>(i));
          gofer::go([&sum](const YieldsOnCopy& v) { sum += v.value; }, value);
        }
        own_id_kept += this_goroutine::id() == id;
      });
    }
    group.wait();
  });
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(sum, static_cast<std::uint64_t>(spawners) * static_cast<unsigned>(each) *
                     static_cast<unsigned>(each - 1) / 2);
  EXPECT_EQ(own_id_kept, spawners);
}

struct WaitsOnCopy {
  wait_group* gate;
  explicit WaitsOnCopy(wait_group* g) : gate(g) {}
  WaitsOnCopy(const WaitsOnCopy& other) : gate(other.gate) { gate->wait(); }
};

TEST_F(GoClosure, MayBeCopiedByCodeThatBlocks) {
  wait_group gate;
  gate.add(1);
  std::atomic<int> ran{0};
  std::atomic<int> copying{0};
  const int count = 50;
  for (int i = 0; i < count; ++i) {
    go([&] {
      const WaitsOnCopy waits(&gate);
      ++copying;
      go([&ran](const WaitsOnCopy&) { ++ran; }, waits);
    });
  }
  std::thread plain([&] {
    const WaitsOnCopy waits(&gate);
    ++copying;
    go([&ran](const WaitsOnCopy&) { ++ran; }, waits);
  });
  EXPECT_TRUE(wait_until([&] { return copying == count + 1; }));
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(num_goroutine(), static_cast<std::size_t>(count)) << "not started yet: not counted";
  gate.done();
  plain.join();
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(ran, count + 1);
}

struct GoesOnCopy {
  std::atomic<int>* ran;
  explicit GoesOnCopy(std::atomic<int>* r) : ran(r) {}
  GoesOnCopy(const GoesOnCopy& other) : ran(other.ran) {
    go([r = ran] { ++*r; });
  }
};

TEST_F(GoClosure, MayBeCopiedByCodeThatStartsGoroutines) {
  std::atomic<int> ran{0};
  const GoesOnCopy value(&ran);
  go([](const GoesOnCopy& v) { ++*v.ran; }, value);
  run([&] { go([](const GoesOnCopy& v) { ++*v.ran; }, value); });
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(ran, 4);
}

struct ExitsOnCopy {
  ExitsOnCopy() = default;
  ExitsOnCopy(const ExitsOnCopy&) { goexit(); }
};

TEST_F(GoClosure, MayBeCopiedByCodeThatEndsTheGoroutine) {
  std::atomic<bool> went_on{false};
  go([&] {
    const ExitsOnCopy value;
    go([&](const ExitsOnCopy&) { went_on = true; }, value);
    went_on = true;
  });
  ASSERT_TRUE(quiescent());
  EXPECT_FALSE(went_on);
}

TEST_F(GoClosure, DestructorMayBlockAndStartGoroutines) {
  struct Last {
    wait_group* gate;
    std::atomic<int>* ran;
    ~Last() {
      gate->wait();
      go([r = ran] { ++*r; });
      yield();
      ++*ran;
    }
  };
  wait_group gate;
  gate.add(1);
  std::atomic<int> ran{0};
  const int count = 20;
  for (int i = 0; i < count; ++i) {
    go([last = std::unique_ptr<Last>(new Last{&gate, &ran})] { static_cast<void>(last); });
  }
  EXPECT_EQ(num_goroutine(), static_cast<std::size_t>(count));
  gate.done();
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(ran, 2 * count);
}

}  // namespace
}  // namespace gofer
