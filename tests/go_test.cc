// `go` and `run`: every kind of callable and argument, where they live and when they die, what a
// failed `go` leaves behind, ids, names and counts.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <any>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include "runtime/sanitizer.h"
#include "support/child.h"
#include "support/quiescent.h"
#include "support/scaled.h"
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
using test::run_child;
using test::wait_until;

constexpr int scaled(int count) { return test::scaled(count, 50); }

using Go = test::QuiescentTest;
using GoClosure = test::QuiescentTest;
using GoFailure = test::QuiescentTest;
using Goroutine = test::QuiescentTest;
using Yield = test::QuiescentTest;
using RunCall = test::QuiescentTest;

// Counts objects, and says where and when the last one died.
struct Tracked {
  static inline std::atomic<int> alive{0};
  static inline std::atomic<int> copies{0};
  static inline std::atomic<int> moves{0};
  static inline std::atomic<std::uint64_t> died_in{~std::uint64_t{0}};

  static void reset() {
    copies = 0;
    moves = 0;
    died_in = ~std::uint64_t{0};
  }
  Tracked() { ++alive; }
  Tracked(const Tracked&) {
    ++alive;
    ++copies;
  }
  Tracked(Tracked&& other) noexcept {
    ++alive;
    ++moves;
    other.moved_from = true;
  }
  Tracked& operator=(const Tracked&) = delete;
  ~Tracked() {
    --alive;
    if (!moved_from) died_in = this_goroutine::id();
  }
  bool moved_from = false;
};

// ---------------------------------------------------------------- callables

std::atomic<int> calls{0};
void plain_function() { ++calls; }
int function_with_result(int x) {
  calls += x;
  return x;
}
void noexcept_function() noexcept { ++calls; }

// Starts goroutines by start(), and waits until all have ended.
template <class Start>
int calls_of(Start&& start) {
  calls = 0;
  start();
  EXPECT_TRUE(quiescent());
  return calls;
}

TEST_F(Go, TakesFunctionsAndPointersToThem) {
  EXPECT_EQ(calls_of([] { go(plain_function); }), 1);
  EXPECT_EQ(calls_of([] { go(&plain_function); }), 1);
  EXPECT_EQ(calls_of([] { go(noexcept_function); }), 1);
  EXPECT_EQ(calls_of([] {
              void (*pointer)() = plain_function;
              go(pointer);
              pointer = nullptr;
            }),
            1);
  EXPECT_EQ(calls_of([] { go(function_with_result, 41); }), 41);
}

TEST_F(Go, TakesLambdasOfEveryKind) {
  EXPECT_EQ(calls_of([] { go([] { ++calls; }); }), 1);
  EXPECT_EQ(calls_of([] {
              go([n = 5]() mutable {
                n += 2;
                calls = n;
              });
            }),
            7);
  EXPECT_EQ(calls_of([] { go([](auto... xs) { calls = (xs + ...); }, 1, 2, 3, 4); }), 10);
  EXPECT_EQ(calls_of([] {
              go(
                  +[](int n) { calls = n; }, 3);
            }),
            3);
  const auto constant = [] { ++calls; };
  EXPECT_EQ(calls_of([&] { go(constant); }), 1);
  EXPECT_EQ(calls_of([&] { go(std::move(constant)); }), 1);
}

TEST_F(Go, TakesStdFunctionAndBind) {
  std::function<void(int)> f = [](int n) { calls += n; };
  EXPECT_EQ(calls_of([&] {
              go(f, 2);
              go(std::ref(f), 3);
              go(std::bind(f, 4));
            }),
            9);
  EXPECT_TRUE(f) << "go moved from an lvalue";
}

struct Counter {
  int by = 1;
  void add(int times) { calls += by * times; }
  void add_const() const { calls += by; }
  void add_rvalue() && { calls += 10 * by; }
  virtual void add_virtual() { calls += 1; }
  virtual ~Counter() = default;
};
struct Derived : Counter {
  void add_virtual() override { calls += 100; }
};

TEST_F(Go, TakesMembersWithAnObject) {
  Counter counter;
  counter.by = 3;
  EXPECT_EQ(calls_of([&] { go(&Counter::add, &counter, 2); }), 6);
  EXPECT_EQ(calls_of([&] { go(&Counter::add, counter, 2); }), 6);
  EXPECT_EQ(calls_of([&] { go(&Counter::add, std::ref(counter), 2); }), 6);
  EXPECT_EQ(calls_of([&] { go(&Counter::add_const, std::cref(counter)); }), 3);
  EXPECT_EQ(calls_of([&] { go(&Counter::add_rvalue, counter); }), 30);
  EXPECT_EQ(calls_of([&] { go(&Counter::add, std::make_unique<Counter>(counter), 5); }), 15);
  EXPECT_EQ(calls_of([&] { go(&Counter::add, std::make_shared<Counter>(counter), 5); }), 15);
  EXPECT_EQ(calls_of([&] { go(&Counter::add_virtual, std::unique_ptr<Counter>(new Derived)); }),
            100);
  EXPECT_EQ(calls_of([&] { go(&Counter::by, &counter); }), 0);  // reads a member, drops it
}

struct ByCategory {
  void operator()() & { calls = 1; }
  void operator()() const& { calls = 2; }
  void operator()() && { calls = 3; }
  void operator()() const&& { calls = 4; }
};
struct ConstOrNot {
  void operator()() const { calls = 1; }
  void operator()() { calls = 2; }
};

TEST_F(Go, CallsItsOwnCopyAsAnRvalueAsStdThreadDoes) {
  ByCategory f;
  const ByCategory constant;
  EXPECT_EQ(calls_of([&] { go(f); }), 3);
  EXPECT_EQ(calls_of([&] { go(ByCategory()); }), 3);
  EXPECT_EQ(calls_of([&] { go(constant); }), 3);
  const ConstOrNot g;
  EXPECT_EQ(calls_of([&] { go(g); }), 2) << "the copy is not const";
}

TEST_F(Go, DropsResults) {
  EXPECT_EQ(calls_of([] {
              go([] {
                ++calls;
                return std::string(1000, 'x');
              });
            }),
            1);
  Tracked::reset();
  const int before = Tracked::alive;
  go([] { return Tracked(); });
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(Tracked::alive, before);
  EXPECT_NE(Tracked::died_in, 0u);
}

// ---------------------------------------------------------------- arguments

TEST_F(Go, MovesMoveOnlyCallablesAndArguments) {
  std::unique_ptr<int> result;
  wait_group done;
  done.add(1);
  go(
      [held = std::make_unique<int>(40), &result, &done](std::unique_ptr<int> passed) {
        result = std::make_unique<int>(*held + *passed);
        done.done();
      },
      std::make_unique<int>(2));
  done.wait();
  EXPECT_EQ(*result, 42);
}

TEST_F(Go, GivesArgumentsAsRvalues) {
  std::string taken;
  std::size_t seen = 0;
  const std::string original = "a string that is too long for the small buffer of std::string";
  wait_group done;
  done.add(2);
  go(
      [&](std::string&& s) {
        taken = std::move(s);
        done.done();
      },
      original);
  go(
      [&](const std::string& s) {
        seen = s.size();
        done.done();
      },
      original);
  done.wait();
  EXPECT_EQ(taken, original);
  EXPECT_EQ(seen, original.size());
}

TEST_F(Go, CopiesWhatAReferenceRefersTo) {
  auto text = std::make_unique<std::string>("before");
  std::string seen;
  std::string& reference = *text;
  wait_group gate, done;
  gate.add(1);
  done.add(1);
  go(
      [&](const std::string& s) {
        gate.wait();
        seen = s;
        done.done();
      },
      reference);
  *text = "after";
  text.reset();
  gate.done();
  done.wait();
  EXPECT_EQ(seen, "before");
}

TEST_F(Go, PassesStdRefAsAReference) {
  int value = 1;
  wait_group done;
  done.add(1);
  go(
      [](int& x, wait_group& group) {
        x = 2;
        group.done();
      },
      std::ref(value), std::ref(done));
  done.wait();
  EXPECT_EQ(value, 2);
}

// Calls go(f, argument) and waits until f has been called with it.
template <class F, class Argument>
void go_and_wait(F f, Argument&& argument) {
  wait_group done;
  done.add(1);
  go(
      [f, &done](auto&& a) {
        f(std::forward<decltype(a)>(a));
        done.done();
      },
      std::forward<Argument>(argument));
  done.wait();
}

TEST_F(Go, DecaysLiteralsArraysAndFunctions) {
  std::string a, b;
  int third = 0;
  static int numbers[] = {1, 2, 3};
  static char buffer[] = "buffer";
  go_and_wait([&](std::string s) { a = std::move(s); }, "literal");
  go_and_wait(
      [&](auto pointer) {
        static_assert(std::is_same_v<decltype(pointer), char*>);
        b = pointer;
      },
      buffer);
  go_and_wait([&](int* p) { third = p[2]; }, numbers);
  calls = 0;
  go_and_wait([&](auto f) { f(); }, plain_function);
  EXPECT_EQ(a, "literal");
  EXPECT_EQ(b, "buffer");
  EXPECT_EQ(third, 3);
  EXPECT_EQ(calls, 1);
}

// Types that swallow a braced list differently from a value of their own type.
TEST_F(Go, KeepsArgumentsThatConvertFromAnything) {
  std::any any;
  std::tuple<int> tuple;
  std::vector<std::any> list;
  std::tuple<std::tuple<int>> nested;
  go_and_wait([&](std::any a) { any = std::move(a); }, std::any(7));
  go_and_wait([&](std::tuple<int> t) { tuple = t; }, std::tuple(8));
  go_and_wait([&](std::tuple<std::tuple<int>> t) { nested = t; },
              std::tuple<std::tuple<int>>(std::tuple(10)));
  const std::vector<std::any> two{std::any(1), std::any(2)};
  go_and_wait([&](std::vector<std::any> v) { list = std::move(v); }, two);
  EXPECT_EQ(std::any_cast<int>(any), 7);
  EXPECT_EQ(std::get<0>(tuple), 8);
  EXPECT_EQ(std::get<0>(std::get<0>(nested)), 10);
  EXPECT_EQ(list.size(), 2u);
}

TEST_F(Go, TakesManyArguments) {
  EXPECT_EQ(calls_of([] {
              go([](auto... x) { calls = static_cast<int>((x + ...)); }, 1, 2L, 3u, 4.0, 'a', 6, 7,
                 8, 9, 10, 11, 12, 13, 14, 15, 16);
            }),
            1 + 2 + 3 + 4 + 'a' + (6 + 16) * 11 / 2);
}

template <class... Args>
concept can_go = requires(Args&&... args) {
  gofer::go(std::forward<Args>(args)...);
};

static_assert(can_go<void (&)()>);
static_assert(!can_go<int>, "not callable");
static_assert(!can_go<void (&)(int, int), int>, "an argument is missing");
static_assert(!can_go<void (&)(), int>, "an argument too many");
static_assert(!can_go<void (&)(std::string&), std::string&>, "the copy is no lvalue");
static_assert(can_go<void (&)(std::string&), std::reference_wrapper<std::string>>);
static_assert(can_go<void (&)(int, int), int, long>);
static_assert(!can_go<go_options>, "options, but nothing to call");
static_assert(can_go<const go_options&, void (&)()>);
static_assert(!can_go<const go_options&, int>);
static_assert(noexcept(gofer::this_goroutine::id()) && noexcept(gofer::this_goroutine::name()));

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

// ---------------------------------------------------------------- closures built by code that
// waits

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

// ---------------------------------------------------------------- run

TEST_F(RunCall, ReturnsTheValue) {
  EXPECT_EQ(run([] { return 42; }), 42);
  EXPECT_EQ(run([] { return std::string(10'000, 'x'); }), std::string(10'000, 'x'));
  const std::unique_ptr<int> moved = run([] { return std::make_unique<int>(7); });
  EXPECT_EQ(*moved, 7);
  EXPECT_EQ(run([] { return std::optional<int>(); }), std::nullopt);
  bool ran = false;
  run([&] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST_F(RunCall, CallsTheObjectItIsGiven) {
  struct Functor {
    int calls = 0;
    Functor() = default;
    Functor(const Functor&) = delete;
    int operator()() { return ++calls; }
  } functor;
  EXPECT_EQ(run(functor), 1);
  EXPECT_EQ(run(functor), 2);
  const auto constant = [] { return 3; };
  EXPECT_EQ(run(constant), 3);
  const auto constant_void = [] {};
  run(constant_void);
}

int main_function() { return static_cast<int>(this_goroutine::id() != 0); }

TEST_F(RunCall, TakesFunctions) {
  EXPECT_EQ(run(main_function), 1);
  EXPECT_EQ(run(&main_function), 1);
  calls = 0;
  run(plain_function);
  run(&plain_function);
  EXPECT_EQ(calls, 2);
}

TEST_F(RunCall, ReturnsReferences) {
  int value = 1;
  int& same = run([&]() -> int& { return value; });
  EXPECT_EQ(&same, &value);
  std::string text = "moved";
  const std::string taken = run([&]() -> std::string&& { return std::move(text); });
  EXPECT_EQ(taken, "moved");
  const int& constant = run([&]() -> const int& { return value; });
  EXPECT_EQ(&constant, &value);
}

TEST_F(RunCall, RunsInAGoroutineOnAnotherThread) {
  const pid_t here = gettid();
  EXPECT_NE(run([] { return gettid(); }), here);
  EXPECT_NE(run([] { return this_goroutine::id(); }), 0u);
}

int nested(int depth) {
  return depth == 0 ? 0 : 1 + run([&] { return nested(depth - 1); });
}

TEST_F(RunCall, Nests) {
  EXPECT_EQ(nested(1), 1);
  EXPECT_EQ(nested(200), 200);
  // Several at once, inside goroutines.
  std::atomic<int> sum{0};
  run([&] {
    wait_group group;
    for (int i = 0; i < 50; ++i) group.go([&, i] { sum += nested(i % 10); });
    group.wait();
  });
  EXPECT_EQ(sum, 5 * 45);
}

TEST_F(RunCall, WorksFromSeveralThreadsAtOnce) {
  const int threads_count = 8;
  const int each = scaled(5000);
  std::atomic<long> sum{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < threads_count; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < each; ++i) {
        sum += run([&] {
          if (i % 3 == 0) yield();
          return t * each + i;
        });
      }
    });
  }
  for (std::thread& t : threads) t.join();
  const long n = static_cast<long>(threads_count) * each;
  EXPECT_EQ(sum, n * (n - 1) / 2);
}

TEST_F(RunCall, ReturnsWhileOthersStay) {
  wait_group gate;
  gate.add(1);
  std::atomic<int> finished{0};
  const int result = run([&] {
    for (int i = 0; i < 10; ++i) {
      go([&] {
        gate.wait();
        ++finished;
      });
    }
    return 5;
  });
  EXPECT_EQ(result, 5);
  EXPECT_EQ(finished, 0);
  EXPECT_EQ(run([] { return 6; }), 6);
  gate.done();
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(finished, 10);
}

TEST_F(RunCall, SeesWhatWasWrittenBeforeAndShowsWhatIsWrittenInside) {
  std::vector<int> data(1000);
  std::iota(data.begin(), data.end(), 0);
  run([&] {
    for (int& x : data) x *= 2;
    go([] {});
    yield();
  });
  EXPECT_EQ(std::accumulate(data.begin(), data.end(), 0), 999'000);
}

}  // namespace
}  // namespace gofer
