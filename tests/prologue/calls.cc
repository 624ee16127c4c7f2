// All kinds of calls with a pause at their prologue: what goes in and what comes out must be as
// without. Compiled once per variant in CMakeLists.txt beside this file, for another level of
// optimisation or another linker each.
//
// A check raises the guard right before the call it is about, so that this very prologue pauses; it
// runs in a foreign thread and in a goroutine, by itself and under fire from another thread.
#include <alloca.h>
#include <errno.h>
#include <fenv.h>
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <setjmp.h>
#include <unwind.h>

#include <algorithm>
#include <chrono>
#include <complex>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "prologue/fire.h"
#include "runtime/base/sanitizer.h"
#include "runtime/watch/prologue.h"

// As if in another file: the compiler knows neither the callers nor their arguments.
#define GOFER_APART [[gnu::noipa]]

extern "C" {
int gofer_test_nested(int outer);
int gofer_test_nested_large(int outer);
int gofer_test_nested_variadic(int outer);
}

namespace gofer {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;
using test::Fire;
using test::pauses;
using test::Spoiler;

constexpr uint64_t pauses_under_fire = internal::sanitizers_enabled ? 50 : 100;

using Check = void (*)(int i);

// Raised by another thread alone. It needs a processor for that, and a busy machine gives it one
// only now and then.
void under_fire(Check check) {
  gofer_test_armed = 0;
  const uint64_t goal = pauses() + pauses_under_fire;
  const auto end = steady_clock::now() + seconds(30);
  Fire fire;
  for (int i = 0; pauses() < goal && !testing::Test::HasFailure(); ++i) {
    check(i);
    ASSERT_LT(steady_clock::now(), end) << pauses() << " pauses";
  }
  gofer_test_armed = 1;
}

void here(Check check) {
  for (int i = 0; i < 100 && !testing::Test::HasFailure(); ++i) {
    const uint64_t before = pauses();
    check(i);
    ASSERT_GT(pauses(), before);
  }
  under_fire(check);
}

void everywhere(Check check) {
  Spoiler spoiler;
  here(check);
  run([check] { here(check); });
}

// Recursion.

[[gnu::noinline]] int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

void check_recursion(int i) {
  GOFER_RAISE();
  const int got = fib(10 + i % 3);
  EXPECT_EQ(got, i % 3 == 0 ? 55 : i % 3 == 1 ? 89 : 144);
}

// Variadic functions.

struct Pair {
  double first;
  int second;
};
struct Large {
  int64_t values[5];
};

// By kinds: i int, d double, l long double, p Pair, s Large.
double sum_of(const char* kinds, va_list list) {
  double sum = 0;
  for (; *kinds != 0; ++kinds) {
    if (*kinds == 'i') sum += va_arg(list, int);
    if (*kinds == 'd') sum += va_arg(list, double);
    if (*kinds == 'l') sum += static_cast<double>(va_arg(list, long double));
    if (*kinds == 'p') {
      const Pair pair = va_arg(list, Pair);
      sum += pair.first + pair.second;
    }
    if (*kinds == 's') {
      const Large large = va_arg(list, Large);
      for (const int64_t value : large.values) sum += static_cast<double>(value);
    }
  }
  return sum;
}

GOFER_APART double variadic(const char* kinds, ...) {
  va_list list;
  va_start(list, kinds);
  const double sum = sum_of(kinds, list);
  va_end(list);
  return sum;
}

// GCC 12 takes the register with the arguments for its loop over a large frame's pages, unless kept
// from it: gofer-preemptible.specs.
template <size_t size>
GOFER_APART double variadic_large(const char* kinds, ...) {
  char frame[size];
  memset(frame, kinds[0], sizeof frame);
  asm volatile("" : : "r"(frame) : "memory");
  va_list list;
  va_start(list, kinds);
  const double sum = sum_of(kinds, list);
  va_end(list);
  return frame[size / 2] == kinds[0] ? sum : -1;
}

GOFER_APART double variadic_alloca(const char* kinds, ...) {
  va_list list;
  va_start(list, kinds);
  GOFER_RAISE();
  char* copy = static_cast<char*>(alloca(strlen(kinds) + 1));
  strcpy(copy, kinds);
  const double sum = sum_of(copy, list);
  va_end(list);
  return sum;
}

// The same arguments for each: more than the registers hold of every kind.
template <class F>
void check_variadic(F function, int i) {
  const Pair pair{0.5 * i, i};
  const Large large{{i, 1, 2, 3, 4}};
  GOFER_RAISE();
  const double got =
      function("iiiiiiiiddddddddddplsppi", 1, 2, 3, 4, 5, 6, 7, i, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0,
               7.0, 8.0, 9.0, 0.25 * i, pair, 100.0L, large, pair, pair, -1);
  EXPECT_EQ(got, 28 + i + 45 + 0.25 * i + 1.5 * i + 100 + i + 10 + 3.0 * i - 1) << i;
}

void check_variadics(int i) {
  check_variadic(variadic, i);
  check_variadic(variadic_alloca, i);
  check_variadic(variadic_large<600>, i);
  check_variadic(variadic_large<6000>, i);
  check_variadic(variadic_large<25000>, i);
  check_variadic(variadic_large<100000>, i);
}

// Memory that a function takes on its stack.

GOFER_APART int fill(char* memory, int size, int value) {
  memset(memory, value, static_cast<size_t>(size));
  return memory[0] + memory[size - 1];
}

// The second call has arguments on the stack, at its foot: below what alloca gave.
GOFER_APART int ends_of(int, int, int, int, int, int, const char* one, const char* two, int last) {
  return one[0] + one[last] + two[0] + two[last];
}

GOFER_APART bool take_and_fill(int size) {
  const auto n = static_cast<size_t>(size);
  GOFER_RAISE();
  char* one = static_cast<char*>(alloca(n));
  fill(one, size, 1);
  GOFER_RAISE();
  char* two = static_cast<char*>(alloca(n));
  fill(two, size, 2);
  GOFER_RAISE();
  int sum = ends_of(1, 2, 3, 4, 5, 6, one, two, size - 1);
  GOFER_RAISE();
  sum += ends_of(1, 2, 3, 4, 5, 6, one, static_cast<char*>(memset(alloca(n), 3, n)), size - 1);
  const auto at = reinterpret_cast<uintptr_t>(two);
  const bool apart = one < two ? one + size <= two : two + size <= one;
  return sum == 6 + 8 && apart && at % 16 == 0 && std::count(one, one + size, 1) == size &&
         std::count(two, two + size, 2) == size;
}

// Variable-length arrays end with their scope: a loop of them must not eat the stack up. Two
// megabytes in all, more than a goroutine has.
GOFER_APART int arrays_in_a_loop(int n) {
  int sum = 0;
  for (int i = 1; i <= 128; ++i) {
    const int size = 4000 + n % 7;
    GOFER_RAISE();
    __extension__ volatile int array[size];
    array[0] = i;
    array[size - 1] = 1;
    sum += array[0] + array[size - 1];
  }
  return sum;
}

void check_alloca(int i) {
  const int sizes[] = {1, 15, 16, 100, 255, 4095, 4096, 5000, 20000 + i};
  for (const int size : sizes) {
    EXPECT_TRUE(take_and_fill(size)) << size;
  }
  EXPECT_EQ(arrays_in_a_loop(i), 128 * 129 / 2 + 128);
}

// Large frames, and aligned ones.

template <size_t size>
GOFER_APART int with_frame(int n, int rest) {
  char frame[size];
  fill(frame, size, n);
  if (rest > 0) {
    GOFER_RAISE();
    n += with_frame<size>(n + 1, rest - 1);
  }
  return n + static_cast<int>(std::count(frame, frame + size, frame[size / 2]) == size);
}

GOFER_APART bool with_aligned_frame(int n) {
  alignas(128) char frame[700];
  fill(frame, sizeof frame, n);
  return reinterpret_cast<uintptr_t>(frame) % 128 == 0 && frame[350] == n;
}

void check_frames(int i) {
  GOFER_RAISE();
  EXPECT_EQ((with_frame<300>(1, 2)), 9);
  GOFER_RAISE();
  EXPECT_EQ((with_frame<5000>(1, 2)), 9);
  GOFER_RAISE();
  EXPECT_EQ((with_frame<80000>(1, 2)), 9);
  GOFER_RAISE();
  const bool aligned = with_aligned_frame(i % 100);
  EXPECT_TRUE(aligned);
}

// Arguments and results of every class.

GOFER_APART double many(int a, int64_t b, double c, float d, int e, short f, int64_t g, double h,
                        int i, double j, double k, double l, double m, double n, double o, int p,
                        long double q, std::complex<double> r, Pair s, Large t) {
  return a + 2.0 * static_cast<double>(b) + 3 * c + 4 * d + 5 * e + 6 * f +
         7 * static_cast<double>(g) + 8 * h + 9 * i + 10 * j + 11 * k + 12 * l + 13 * m + 14 * n +
         15 * o + 16 * p + 17 * static_cast<double>(q) + 18 * r.real() + 19 * r.imag() +
         20 * s.first + 21 * s.second + 22 * static_cast<double>(t.values[4]);
}

GOFER_APART std::complex<double> twice(std::complex<double> value) { return value + value; }
GOFER_APART long double half(long double value) { return value / 2; }
GOFER_APART Large next(Large value, int by) {
  for (int64_t& v : value.values) v += by;
  return value;
}

void check_arguments(int i) {
  const Pair pair{2, 3};
  const Large large{{1, 2, 3, 4, i}};
  const std::complex<double> complex(1, i);
  GOFER_RAISE();
  const double got =
      many(i, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, i, 16, 17.0L, complex, pair, large);
  EXPECT_EQ(got, i + 4 + 9 + 16 + 25 + 36 + 49 + 64 + 81 + 100 + 121 + 144 + 169 + 196 + 15 * i +
                     256 + 289 + 18 + 19 * i + 40 + 63 + 22 * i);
  GOFER_RAISE();
  const std::complex<double> doubled = twice(complex);
  EXPECT_EQ(doubled, std::complex<double>(2, 2 * i));
  GOFER_RAISE();
  const long double halved = half(3.0L * i);
  EXPECT_EQ(halved, 1.5L * i);
  GOFER_RAISE();
  const Large incremented = next(large, 5);
  EXPECT_EQ(incremented.values[0] + incremented.values[4], 1 + i + 10);
}

typedef int64_t Wide __attribute__((vector_size(32)));
[[gnu::target("avx2"), gnu::noipa]] int64_t wide(Wide a, Wide b, Wide c, Wide d, Wide e, Wide f,
                                                 Wide g, Wide h, Wide i) {
  const Wide sum = a + b + c + d + e + f + g + h - i;
  return sum[0] + 10 * sum[1] + 100 * sum[2] + 1000 * sum[3];
}

[[gnu::target("avx2")]] void check_wide(int i) {
  const Wide one{1, 2, 3, 4};
  const Wide other{i, i, i, i};
  GOFER_RAISE();
  const int64_t got = wide(one, one, one, one, one, one, one, other, other);
  EXPECT_EQ(got, 7 * 4321);
}

typedef int64_t Wider __attribute__((vector_size(64)));
[[gnu::target("avx512f"), gnu::noipa]] int64_t wider(Wider a, Wider b, Wider c, Wider d, Wider e,
                                                     Wider f, Wider g, Wider h) {
  const Wider sum = a + b + c + d + e + f + g - h;
  return sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
}

[[gnu::target("avx512f")]] void check_wider(int i) {
  const Wider one{1, 2, 3, 4, 5, 6, 7, i};
  GOFER_RAISE();
  const int64_t got = wider(one, one, one, one, one, one, one, one);
  EXPECT_EQ(got, 6 * (28 + i));
}

// The static chain.

#if defined(GOFER_TEST_NESTED)
void check_nested(int i) {
  EXPECT_EQ(gofer_test_nested(i), 5 * i + 5);
  EXPECT_EQ(gofer_test_nested_large(i), 10 + i);
  EXPECT_EQ(gofer_test_nested_variadic(i), 45 + i);
}
#endif

// Exceptions, jumps, and calls by pointer.

struct Counted {
  explicit Counted(int& count) : count_(count) { ++count_; }
  GOFER_APART ~Counted() { --count_; }
  int& count_;
};

GOFER_APART int throw_from(int depth, int& count) {
  Counted counted(count);
  GOFER_RAISE();
  if (depth == 0) throw std::runtime_error(std::to_string(count));
  return throw_from(depth - 1, count) + 1;
}

void check_exceptions(int i) {
  int count = 0;
  std::string what;
  GOFER_RAISE();
  try {
    throw_from(i % 8, count);
  } catch (const std::exception& e) {
    GOFER_RAISE();
    what = e.what();
  }
  EXPECT_EQ(what, std::to_string(i % 8 + 1));
  EXPECT_EQ(count, 0);
}

GOFER_APART void jump(jmp_buf& to) { longjmp(to, 7); }

GOFER_APART void jump_from(int depth, jmp_buf& to) {
  GOFER_RAISE();
  if (depth > 0) jump_from(depth - 1, to);
  jump(to);
}

void check_jumps(int i) {
  jmp_buf to;
  GOFER_RAISE();
  const int value = setjmp(to);
  if (value == 0) jump_from(i % 8, to);
  EXPECT_EQ(value, 7);
}

struct Shape {
  virtual ~Shape() = default;
  virtual double area(double scale) const = 0;
};
struct Square final : Shape {
  explicit Square(double side) : side_(side) {}
  double area(double scale) const override { return side_ * side_ * scale; }
  double side_;
};
GOFER_APART std::unique_ptr<Shape> make_shape(double side) {
  return std::make_unique<Square>(side);
}

int compare(const void* left, const void* right) {
  GOFER_RAISE();
  return *static_cast<const int*>(left) - *static_cast<const int*>(right);
}

void check_indirect(int i) {
  const auto shape = make_shape(i);
  GOFER_RAISE();
  const double area = shape->area(0.5);
  EXPECT_EQ(area, 0.5 * i * i);

  const std::function<double(double, int)> function = [i, &shape](double x, int n) {
    return x + n + i + shape->area(1);
  };
  GOFER_RAISE();
  const double value = function(0.5, 3);
  EXPECT_EQ(value, 3.5 + i + 1.0 * i * i);

  std::mt19937 random(static_cast<unsigned>(i));
  std::vector<int> numbers(50);
  for (int& n : numbers) n = static_cast<int>(random() % 1000);
  std::vector<int> same = numbers;
  std::sort(numbers.begin(), numbers.end(), [](int left, int right) {
    GOFER_RAISE();
    return left < right;
  });
  qsort(same.data(), same.size(), sizeof(int), compare);  // called by code that knows nothing of it
  EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
  EXPECT_EQ(numbers, same);
}

// What else a thread has.

void check_thread_state(int) {
  errno = 4711;
  feclearexcept(FE_ALL_EXCEPT);
  GOFER_RAISE();
  fib(3);
  EXPECT_EQ(errno, 4711);
  EXPECT_EQ(fetestexcept(FE_ALL_EXCEPT), 0);
}

constexpr Check all_checks[] = {
    check_recursion,  check_variadics, check_alloca,   check_frames,       check_arguments,
#if defined(GOFER_TEST_NESTED)
    check_nested,
#endif
    check_exceptions, check_jumps,     check_indirect, check_thread_state,
};

TEST(PrologueCalls, Recursion) { everywhere(check_recursion); }
TEST(PrologueCalls, VariadicFunctions) { everywhere(check_variadics); }
TEST(PrologueCalls, AllocaAndVariableLengthArrays) { everywhere(check_alloca); }
TEST(PrologueCalls, LargeAndAlignedFrames) { everywhere(check_frames); }
TEST(PrologueCalls, ArgumentsOfEveryClass) { everywhere(check_arguments); }
TEST(PrologueCalls, ArgumentsOf256Bits) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "no AVX2";
  everywhere(check_wide);
}
TEST(PrologueCalls, ArgumentsOf512Bits) {
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "no AVX-512";
  everywhere(check_wider);
}
#if defined(GOFER_TEST_NESTED)
TEST(PrologueCalls, FunctionsInsideOfFunctions) { everywhere(check_nested); }
#endif
TEST(PrologueCalls, Exceptions) { everywhere(check_exceptions); }
TEST(PrologueCalls, Longjmp) { everywhere(check_jumps); }
TEST(PrologueCalls, VirtualFunctionsClosuresAndComparators) { everywhere(check_indirect); }
TEST(PrologueCalls, ErrnoAndFloatingPointFlagsStay) { everywhere(check_thread_state); }

// gold and lld would have every prologue before a call into libc come by.
TEST(PrologueCalls, NoThreadPausesUnasked) {
  Spoiler spoiler;
  gofer_test_armed = 0;
  for (const Check check : all_checks) check(3);
  gofer_test_armed = 1;
  EXPECT_EQ(pauses(), 0U);
}

TEST(PrologueCalls, ThePauseAnswersTheRequest) {
  GOFER_RAISE();
  fib(1);
  EXPECT_EQ(*internal::prologue_guard(), 0U);
}

// Every register at its full width, those that no C++ function is passed anything in included.
struct State {
  unsigned char vectors[32][64];
  uint64_t masks[8];
  uint64_t general[8];
  uint64_t flags;
};
extern "C" void gofer_test_registers(const State* in, State* out, int avx512);

TEST(PrologueCalls, AllRegistersStay) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "no AVX2";
  const bool avx512 = __builtin_cpu_supports("avx512f");
  Spoiler spoiler;
  State in{};
  std::mt19937 random(1);
  for (int i = 0; i < (avx512 ? 32 : 16); ++i)
    for (int byte = 0; byte < (avx512 ? 64 : 32); ++byte)
      in.vectors[i][byte] = static_cast<unsigned char>(random());
  for (uint64_t& mask : in.masks) mask = avx512 ? random() & 0xffff : 0;
  for (uint64_t& general : in.general) general = random() * 0x100000001;
  in.flags = 0x8d7;  // overflow, sign, zero, auxiliary, parity, carry
  State out{};
  gofer_test_registers(&in, &out, avx512);
  EXPECT_EQ(pauses(), 1U);
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(memcmp(in.vectors[i], out.vectors[i], 64), 0) << "vector " << i;
  for (int i = 0; i < 8; ++i) EXPECT_EQ(in.masks[i], out.masks[i]) << "mask " << i;
  for (int i = 0; i < 8; ++i) EXPECT_EQ(in.general[i], out.general[i]) << "general " << i;
  EXPECT_EQ(in.flags & 0x8d5, out.flags & 0x8d5);
}

// A trace from inside of a pause leads out of it.

std::vector<void*>* trace = nullptr;

_Unwind_Reason_Code note_frame(_Unwind_Context* context, void*) {
  void* ip = reinterpret_cast<void*>(_Unwind_GetIP(context) - 1);
  trace->push_back(_Unwind_FindEnclosingFunction(ip));
  return _URC_NO_REASON;
}

void take_trace() { _Unwind_Backtrace(note_frame, nullptr); }

GOFER_APART int traced_callee(int n) { return n + 1; }
GOFER_APART int traced_variadic(int n, ...) { return n + 1; }
GOFER_APART int traced_caller(int n) {
  internal::prologue_probe = take_trace;
  GOFER_RAISE();
  const int sum = traced_callee(n);
  GOFER_RAISE();
  return sum + traced_variadic(n, 1);
}

TEST(PrologueCalls, TracesLeadThroughAPause) {
  std::vector<void*> frames;
  frames.reserve(1000);
  trace = &frames;
  traced_caller(1);
  internal::prologue_probe = nullptr;
  const auto callee =
      std::find(frames.begin(), frames.end(), reinterpret_cast<void*>(traced_callee));
  ASSERT_LT(callee - frames.begin(), frames.end() - frames.begin() - 1);
  EXPECT_EQ(callee[1], reinterpret_cast<void*>(traced_caller));
  const auto variadic = std::find(callee, frames.end(), reinterpret_cast<void*>(traced_variadic));
  ASSERT_LT(variadic - frames.begin(), frames.end() - frames.begin() - 1);
  EXPECT_EQ(variadic[1], reinterpret_cast<void*>(traced_caller));
}

// The long run: GOFER_PROLOGUE_CALLS calls with a pause at every 20th or so; by default two seconds
// of calls with 100 pauses, or as long as the kernel takes to give the firing thread a core for
// them.

int64_t calls = 0;
[[gnu::noinline]] int counted_fib(int n) {
  ++calls;
  return n < 2 ? n : counted_fib(n - 1) + counted_fib(n - 2);
}

TEST(PrologueCalls, LongUnderFire) {
  const char* wish = getenv("GOFER_PROLOGUE_CALLS");
  const int64_t goal = wish == nullptr ? 0 : atoll(wish);
  const auto pauses_wanted = static_cast<uint64_t>(wish == nullptr ? 100 : goal / 20);
  const auto begin = steady_clock::now();
  const auto soonest_end = begin + seconds(wish == nullptr ? 2 : 0);
  const auto latest_end = begin + seconds(180);
  Spoiler spoiler;
  run([=] {
    Fire fire;
    while (steady_clock::now() < soonest_end ||
           ((calls < goal || pauses() < pauses_wanted) && steady_clock::now() < latest_end))
      ASSERT_EQ(counted_fib(20), 6765);
  });
  printf("%lld calls, %llu pauses\n", static_cast<long long>(calls),
         static_cast<unsigned long long>(pauses()));
  EXPECT_GE(calls, goal);
  EXPECT_GE(pauses(), pauses_wanted);
}

}  // namespace
}  // namespace gofer
