// promise and future: what is given, what is taken, and the message about an exception that no
// caller takes.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/child.h"
#include "support/goroutines_and_threads.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using test::ChildResult;
using test::in_goroutine_and_thread;
using test::run_child;
using test::wait_until;

std::future_errc errc_of(const std::future_error& e) {
  return static_cast<std::future_errc>(e.code().value());
}

template <class F>
void expect_future_error(std::future_errc expected, F f) {
  try {
    f();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::future_error& e) {
    EXPECT_EQ(errc_of(e), expected);
  }
}

TEST(Promise, GivesItsFutureAValue) {
  in_goroutine_and_thread([] {
    promise<std::unique_ptr<int>> p;
    auto f = p.get_future();
    EXPECT_FALSE(f.ready());
    go([p = std::move(p)]() mutable { p.set_value(std::make_unique<int>(3)); });
    EXPECT_EQ(*f.get(), 3);

    promise<void> nothing;
    auto done = nothing.get_future();
    nothing.set_value();
    done.get();

    int x = 0;
    promise<int&> reference;
    auto r = reference.get_future();
    reference.set_value(x);
    EXPECT_EQ(&r.get(), &x);

    promise<const std::exception&> base;  // of a derived object, without a copy
    auto b = base.get_future();
    std::runtime_error derived("derived");
    base.set_value(derived);
    EXPECT_EQ(&b.get(), &derived);

    promise<std::string> text;
    auto t = text.get_future();
    text.set_value("converted");
    EXPECT_EQ(t.get(), "converted");
  });
}

TEST(Promise, TakesAValueInBraces) {
  promise<std::vector<int>> p;
  auto f = p.get_future();
  p.set_value({1, 2, 3});
  EXPECT_EQ(f.get(), (std::vector{1, 2, 3}));
  promise<std::string> text;
  auto g = text.get_future();
  text.set_value({});
  EXPECT_EQ(g.get(), "");
}

TEST(Promise, GivesItsFutureAnException) {
  promise<int> p;
  auto f = p.get_future();
  p.set_exception(std::make_exception_ptr(std::out_of_range("far")));
  EXPECT_THROW(f.get(), std::out_of_range);
}

TEST(Promise, ThatIsDroppedIsBroken) {
  future<int> f;
  {
    promise<int> p;
    f = p.get_future();
    promise<int> other;
    other = std::move(p);
    EXPECT_FALSE(f.ready()) << "a move does not break it";
  }
  expect_future_error(std::future_errc::broken_promise, [&] { f.get(); });
}

TEST(Promise, RefusesASecondResultAndASecondFuture) {
  promise<int> p;
  auto f = p.get_future();
  expect_future_error(std::future_errc::future_already_retrieved,
                      [&] { static_cast<void>(p.get_future()); });
  p.set_value(1);
  expect_future_error(std::future_errc::promise_already_satisfied, [&] { p.set_value(2); });
  expect_future_error(std::future_errc::promise_already_satisfied,
                      [&] { p.set_exception(std::make_exception_ptr(1)); });
  EXPECT_EQ(f.get(), 1);
  promise<int> q = std::move(p);
  expect_future_error(std::future_errc::no_state, [&] { p.set_value(3); });
}

struct ThrowsWhenMade {
  ThrowsWhenMade(bool now) {
    if (now) throw std::runtime_error("made");
  }
};

TEST(Promise, HasNoValueIfMakingItThrows) {
  promise<ThrowsWhenMade> p;
  auto f = p.get_future();
  EXPECT_THROW(p.set_value(true), std::runtime_error);
  EXPECT_FALSE(f.ready());
  p.set_value(false);
  f.get();
}

TEST(Async, TakesANameAndAStackSize) {
  EXPECT_EQ(
      async(
          {.name = "adder", .stack_size = 1 << 20},
          [](int a, int b) { return std::string(this_goroutine::name()) + char(a + b); }, 40, 25)
          .get(),
      "adderA");
}

TEST(Future, GetsWithAContext) {
  in_goroutine_and_thread([] {
    chan<int> gate(0);
    auto f = async([=] { return *gate.recv(); });
    auto [ctx, cancel] = with_cancel(background());
    go([cancel = cancel] { cancel(std::make_exception_ptr(std::domain_error("why"))); });
    EXPECT_THROW(f.get(ctx), std::domain_error);
    EXPECT_TRUE(f.valid()) << "it can be asked again";
    gate.send(8);
    EXPECT_EQ(f.get(background()), 8);
    EXPECT_FALSE(f.valid());
  });
}

TEST(Future, ThatIsReadyRefusesAContextThatIsDone) {
  auto f = async([] { return 1; });
  f.wait();
  auto [ctx, cancel] = with_timeout(background(), 0s);
  try {
    f.get(ctx);
    ADD_FAILURE();
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), std::errc::timed_out);
  }
  EXPECT_EQ(f.get(), 1);
}

// ---------------------------------------------------------------- exceptions that no caller takes

std::string said_by(const char* scenario) {
  const ChildResult r = run_child("untaken_child", {scenario});
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "ended\n") << r;
  return r.err;
}

TEST(Untaken, ExceptionOfADroppedFutureIsOneLine) {
  EXPECT_EQ(said_by("dropped_before"),
            "gofer: an exception was lost with its future: std::runtime_error: no disk\n");
  EXPECT_EQ(said_by("dropped_after"),
            "gofer: an exception was lost with its future: std::runtime_error: no disk\n");
  EXPECT_EQ(said_by("dropped_int"), "gofer: an exception was lost with its future: int\n");
}

TEST(Untaken, ExceptionWithoutATextHasItsTypeInTheLine) {
  EXPECT_EQ(said_by("no_text"), "gofer: an exception was lost with its future: NoText\n");
}

TEST(Untaken, ExceptionOfATaskGroupIsOneLine) {
  EXPECT_EQ(said_by("group_without_wait"),
            "gofer: an exception was lost with its task_group: std::runtime_error: no disk\n");
}

TEST(Untaken, NothingIsSaidOfWhatWasTakenOrNeverThrown) {
  EXPECT_EQ(said_by("taken"), "");
  EXPECT_EQ(said_by("dropped_value"), "");
  EXPECT_EQ(said_by("dropped_goexit"), "");
  EXPECT_EQ(said_by("group_left_by_exception"), "");
}

}  // namespace
}  // namespace gofer
