// `go`: every kind of callable and argument that it takes, and how they are called.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <any>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/quiescent.h"
#include "support/tracked.h"

namespace gofer {
namespace {

using test::quiescent;
using test::Tracked;

using Go = test::QuiescentTest;

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

}  // namespace
}  // namespace gofer
