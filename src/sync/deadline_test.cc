// gofer-test: once
// Time limits, functions and calls as the public headers have them, beside those of std.
#include <gofer/detail/deadline.h>
#include <gofer/detail/function.h>
#include <gofer/detail/invoke.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <ratio>
#include <string>
#include <utility>

namespace mine {

// Its name is that of std's clock, and its epoch is another.
struct steady_clock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<steady_clock>;
  static constexpr bool is_steady = true;
  static time_point now() { return time_point(std::chrono::hours(1)); }
};

}  // namespace mine

namespace gofer::detail {
namespace {

using std::chrono::ceil;
using std::chrono::duration;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

static_assert(is_steady_clock<steady_clock>());
static_assert(!is_steady_clock<std::chrono::system_clock>());
static_assert(!is_steady_clock<mine::steady_clock>());
static_assert(!duration_like<steady_clock::time_point> && !time_point_like<steady_clock::duration>);
static_assert(!duration_like<int> && !duration_like<std::string>);

template <class Rep, class Period>
void expect_as_std() {
  using limits = std::numeric_limits<Rep>;
  for (const Rep count : {Rep(0), Rep(1), Rep(2), Rep(3), Rep(7), Rep(59), Rep(100), Rep(127)}) {
    const duration<Rep, Period> d(count);
    EXPECT_EQ(to_ns(d), ceil<nanoseconds>(d).count()) << count;
    if constexpr (limits::is_signed) {
      EXPECT_EQ(to_ns(-d), ceil<nanoseconds>(-d).count()) << count;
    }
  }
}

template <class Rep>
void expect_as_std_in_all_units() {
  expect_as_std<Rep, std::pico>();
  expect_as_std<Rep, std::nano>();
  expect_as_std<Rep, std::ratio<1, 1'001>>();
  expect_as_std<Rep, std::ratio<1, 90'000>>();  // video
  expect_as_std<Rep, std::ratio<1, 3>>();
  expect_as_std<Rep, std::ratio<7, 3>>();
  expect_as_std<Rep, std::milli>();
  expect_as_std<Rep, std::ratio<1>>();
  expect_as_std<Rep, std::ratio<3600>>();
}

TEST(ToNs, IsWhatStdRoundsUpTo) {
  expect_as_std_in_all_units<signed char>();
  expect_as_std_in_all_units<int>();
  expect_as_std_in_all_units<unsigned>();
  expect_as_std_in_all_units<std::int64_t>();
  expect_as_std_in_all_units<std::uint64_t>();
  expect_as_std_in_all_units<double>();
  expect_as_std_in_all_units<long double>();
}

TEST(ToNs, IsCutToWhatTheTypeHolds) {
  EXPECT_EQ(to_ns(std::chrono::hours::max()), no_deadline);
  EXPECT_EQ(to_ns(std::chrono::hours::min()), -no_deadline);
  EXPECT_EQ(to_ns(duration<std::uint64_t>(~std::uint64_t{0})), no_deadline);
  EXPECT_EQ(to_ns(duration<std::uint64_t, std::pico>(~std::uint64_t{0})), 18'446'744'073'709'552);
  EXPECT_EQ(to_ns(duration<double>(1e300)), no_deadline);
  EXPECT_EQ(to_ns(duration<double>(-1e300)), -no_deadline);
  EXPECT_EQ(to_ns(duration<float, std::milli>(0.5F)), 500'000);
  EXPECT_EQ(to_ns(duration<double, std::nano>(0.1)), 1);
  EXPECT_EQ(to_ns(duration<double, std::nano>(-0.1)), 0);
  EXPECT_EQ(to_ns(duration<double>(std::numeric_limits<double>::quiet_NaN())), 0);
  EXPECT_EQ(to_ns(std::chrono::seconds(9'199'999'999)), 9'199'999'999'000'000'000);
}

TEST(Deadline, IsOnTheSteadyClock) {
  const auto before = steady_clock::now();
  const std::int64_t ns = now_ns();
  const auto after = steady_clock::now();
  EXPECT_LE(before.time_since_epoch().count(), ns);
  EXPECT_LE(ns, after.time_since_epoch().count());
  EXPECT_EQ(deadline_at(after), after.time_since_epoch().count());
}

TEST(Deadline, OfAnotherClockIsTheTimeThatRemains) {
  using clock = mine::steady_clock;
  EXPECT_EQ(deadline_at(clock::now()), 0);
  const std::int64_t before = now_ns();
  const std::int64_t at = deadline_at(clock::now() + std::chrono::seconds(5));
  EXPECT_GE(at, before + 5'000'000'000);
  EXPECT_LE(at, now_ns() + 5'000'000'000);
}

struct Counter {
  int count = 0;
  int add(int n) { return count += n; }
};

TEST(Call, CallsWhatStdInvokeCalls) {
  Counter c;
  EXPECT_EQ(call(&Counter::add, c, 2), 2);
  EXPECT_EQ(call(&Counter::add, &c, 2), 4);
  EXPECT_EQ(call(&Counter::add, std::ref(c), 2), 6);
  EXPECT_EQ(call(&Counter::add, std::make_unique<Counter>(), 2), 2);
  call(&Counter::count, c) = 9;
  EXPECT_EQ(c.count, 9);
  EXPECT_EQ(call([](std::unique_ptr<int> p) { return *p; }, std::make_unique<int>(3)), 3);
}

TEST(SharedFunction, IsEmptyIfMadeOfNothing) {
  EXPECT_FALSE(shared_function<void()>());
  EXPECT_FALSE(shared_function<void()>(nullptr));
  EXPECT_FALSE(shared_function<void()>(std::function<void()>()));
  EXPECT_FALSE(shared_function<void()>(static_cast<void (*)()>(nullptr)));
  EXPECT_TRUE(shared_function<void()>([] {}));
  EXPECT_THROW(shared_function<int()>()(), std::bad_function_call);
}

int twice(int n) { return 2 * n; }

TEST(SharedFunction, CallsFunctionsOfEveryKind) {
  EXPECT_EQ(shared_function<int(int)>(twice)(4), 8);
  EXPECT_EQ(shared_function<int(int)>(std::function<long(int)>(twice))(4), 8);
  EXPECT_EQ(shared_function<int(Counter&)>(&Counter::count)(*std::make_unique<Counter>()), 0);
  const shared_function<void(int)> dropped = twice;
  dropped(1);
  const std::function<int(int)> back = shared_function<int(int)>(twice);
  EXPECT_EQ(back(4), 8);
  shared_function<std::string(std::unique_ptr<int>, std::string&)> moves =
      [](std::unique_ptr<int> p, std::string& s) { return s + std::to_string(*p); };
  std::string s = "a";
  EXPECT_EQ(moves(std::make_unique<int>(1), s), "a1");
}

TEST(SharedFunction, CopiesShareWhatTheyCall) {
  const auto alive = std::make_shared<int>(0);
  {
    shared_function<int()> first = [alive, n = 0, only = std::make_unique<int>(1)]() mutable {
      return n += *only;
    };
    shared_function<int()> second = first;
    EXPECT_EQ(first(), 1);
    EXPECT_EQ(second(), 2);
    first = nullptr;
    EXPECT_EQ(alive.use_count(), 2);
    EXPECT_EQ(second(), 3);
    first = std::move(second);
    EXPECT_EQ(first(), 4);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

}  // namespace
}  // namespace gofer::detail
