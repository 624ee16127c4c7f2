// select: which case is done, what its function gets, and what the cases that lost leave behind.
// Crowds and races are in select_stress_test.cc.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/sanitizer.h"
#include "support/chan_waiters.h"
#include "support/error_of.h"
#include "support/goroutines_and_threads.h"
#include "support/report.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using test::error_of;
using test::in_goroutine_and_thread;
using test::wait_until;
using test::waiting_receivers;
using test::waiting_senders;

template <class T>
chan<T> closed_chan() {
  chan<T> c(0);
  c.close();
  return c;
}

// ---- Which case

TEST(Select, DoesTheOnlyCaseThatCanBeDone) {
  in_goroutine_and_thread([] {
    chan<int> full(1);
    chan<int> empty(1);
    full.send(1);
    std::optional<int> v;
    EXPECT_EQ(select(on_recv(empty), on_send(full, 2), on_recv(full, v)), 2u);
    EXPECT_EQ(v, 1);
    EXPECT_EQ(select(on_recv(empty), on_send(empty, 3)), 1u);
    EXPECT_EQ(select(on_send(empty, 4), on_recv(empty, v)), 1u);
    EXPECT_EQ(v, 3);
    EXPECT_EQ(empty.len(), 0u);
  });
}

TEST(Select, WithDefaultDoesNotWait) {
  in_goroutine_and_thread([] {
    chan<int> c(0);
    chan<int> nil;
    bool called = false;
    EXPECT_EQ(select(on_recv(c), on_default([&] { called = true; })), 1u);
    EXPECT_TRUE(called);
    EXPECT_EQ(select(on_default(), on_send(c, 1)), 0u);
    EXPECT_EQ(select(on_recv(nil), on_send(nil, 1), on_default()), 2u);
    EXPECT_EQ(select(on_default()), 0u);
    EXPECT_EQ(select(on_timeout(1h), on_default(), on_recv(c)), 1u);
    EXPECT_EQ(select(on_timeout(0s), on_default(), on_recv(c)), 1u);
    EXPECT_EQ(select(on_default(), on_timeout(-1s), on_recv(c)), 0u);
    EXPECT_EQ(waiting_receivers(c), 0);
  });
}

TEST(Select, WithDefaultDoesWhatCanBeDone) {
  in_goroutine_and_thread([] {
    chan<int> c(1);
    EXPECT_EQ(select(on_default(), on_send(c, 1)), 1u);
    EXPECT_EQ(select(on_default(), on_send(c, 2), on_recv(c)), 2u);
    EXPECT_EQ(select(on_default(), on_recv(closed_chan<int>())), 1u);
  });
}

TEST(Select, TimesOut) {
  in_goroutine_and_thread([] {
    chan<int> c(0);
    chan<int> nil;
    const auto begin = std::chrono::steady_clock::now();
    bool called = false;
    EXPECT_EQ(select(on_recv(c), on_timeout(3ms, [&] { called = true; }), on_send(c, 1)), 1u);
    EXPECT_TRUE(called);
    EXPECT_EQ(select(on_timeout(std::chrono::steady_clock::now() + 3ms), on_recv(c)), 0u);
    EXPECT_EQ(select(on_recv(nil), on_timeout(3ms)), 1u);
    EXPECT_EQ(select(on_timeout(3ms)), 0u);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 12ms);
    EXPECT_EQ(select(on_recv(c), on_timeout(0s)), 1u);
    EXPECT_EQ(select(on_recv(c), on_timeout(-1h)), 1u);
    EXPECT_EQ(select(on_recv(c), on_timeout(std::chrono::system_clock::now() - 1h)), 1u);
    EXPECT_EQ(select(on_timeout(1h), on_recv(c), on_timeout(1ms), on_timeout(2h)), 2u);
    EXPECT_EQ(waiting_receivers(c) + waiting_senders(c), 0);
  });
}

TEST(Select, PrefersWhatCanBeDoneToATimeThatIsOver) {
  chan<int> c(1);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(select(on_timeout(0s), on_send(c, i)), 1u);
    EXPECT_EQ(select(on_recv(c), on_timeout(-1s)), 0u);
  }
}

TEST(Select, WithHugeTimeLimitsWaits) {
  const auto check = [](auto limit) {
    in_goroutine_and_thread([limit] {
      chan<int> c(0);
      wait_group group;
      group.go([c, limit] { EXPECT_EQ(select(on_timeout(limit), on_recv(c)), 1u); });
      EXPECT_TRUE(wait_until([&] { return waiting_receivers(c) == 1; }));
      EXPECT_EQ(select(on_send(c, 1), on_timeout(limit)), 0u);
      group.wait();
    });
  };
  check(std::chrono::nanoseconds::max());
  check(std::chrono::hours::max());
  check(std::chrono::steady_clock::time_point::max());
}

TEST(Select, NeverChoosesANilChannel) {
  in_goroutine_and_thread([] {
    chan<int> nil;
    chan<int> c(1);
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(select(on_recv(nil), on_send(nil, 1), on_send(c, 1), on_recv(nil)), 2u);
      EXPECT_EQ(select(on_recv(c), on_recv(nil)), 0u);
    }
    wait_group group;
    group.go([&] { EXPECT_EQ(select(on_recv(nil), on_recv(c), on_send(nil, 1)), 1u); });
    EXPECT_TRUE(wait_until([&] { return waiting_receivers(c) == 1; }));
    c.send(1);
    group.wait();
  });
}

// How often each of `ready` cases that can always be done is chosen.
template <class Choose>
void expect_uniform(std::size_t ready, Choose&& choose, int trials = 10'000) {
  std::array<int, 8> chosen{};
  for (int i = 0; i < trials; ++i) ++chosen.at(choose());
  const double p = 1.0 / static_cast<double>(ready);
  const double bound = 5 * std::sqrt(trials * p * (1 - p));
  int kinds = 0;
  for (const int n : chosen) {
    if (n == 0) continue;
    ++kinds;
    EXPECT_NEAR(n, trials * p, bound);
  }
  EXPECT_EQ(kinds, static_cast<int>(ready));
}

TEST(Select, ChoosesUniformlyAmongReadyCases) {
  in_goroutine_and_thread([] {
    const chan<int> closed = closed_chan<int>();
    const chan<int> closed2 = closed_chan<int>();
    chan<int> silent(0);
    chan<int> nil;
    chan<int> buffered(100'000);
    chan<int> filled(100'000);
    for (int i = 0; i < 100'000; ++i) filled.send(i);
    expect_uniform(2, [&] { return select(on_recv(closed), on_recv(closed2)); });
    expect_uniform(2, [&] { return select(on_send(buffered, 1), on_recv(closed)); });
    expect_uniform(3, [&] {
      return select(on_recv(silent), on_recv(closed), on_recv(filled), on_recv(nil),
                    on_send(buffered, 1), on_send(silent, 2));
    });
    expect_uniform(4, [&] {
      return select(on_recv(closed), on_recv(filled), on_send(buffered, 1), on_recv(closed),
                    on_default());
    });
    expect_uniform(4, [&] {
      return select(on_recv(closed), on_timeout(0s), on_recv(closed), on_recv(closed2),
                    on_send(buffered, 1));
    });
  });
}

TEST(Select, ThatWaitsChoosesUniformlyAmongCasesOfOneChannel) {
  chan<int> c(0);
  chan<int> other(0);
  const auto choose = [&](int waiting, auto meet, auto wait) {
    std::size_t chosen = 9;
    wait_group group;
    group.go([&] { chosen = wait(); });
    EXPECT_TRUE(wait_until([&] { return waiting_receivers(c) + waiting_senders(c) == waiting; }));
    meet();
    group.wait();
    return chosen;
  };
  const auto send = [&] { c.send(1); };
  const auto receive = [&] { c.recv(); };
  expect_uniform(
      2, [&] { return choose(2, send, [&] { return select(on_recv(c), on_recv(c)); }); }, 1000);
  expect_uniform(
      3,
      [&] {
        return choose(4, receive, [&] {
          return select(on_send(c, 1), on_recv(other), on_send(c, 2), on_recv(c), on_send(c, 3));
        });
      },
      1000);
  std::vector<any_case> many;
  for (int i = 0; i < 12; ++i) many.emplace_back(on_recv(i < 8 ? c : other));
  expect_uniform(
      8, [&] { return choose(8, send, [&] { return select(many); }); }, 1000);
}

// ---- What the functions get

TEST(Select, HandsTheValueToEveryFormOfFunction) {
  in_goroutine_and_thread([] {
    chan<std::string> c(1);
    std::string got;
    c.send("a");
    select(on_recv(c, [&](std::optional<std::string> v) { got += v.value(); }));
    c.send("b");
    select(on_recv(c, [&](std::string v) { got += v; }));
    c.send("c");
    select(on_recv(c, [&](const std::string& v) { got += v; }));
    c.send("d");
    select(on_recv(c, [&](std::string&& v) { got += v; }));
    c.send("e");
    select(on_recv(c, [&] { got += "(e)"; }));
    c.send("f");
    std::optional<std::string> place = "old";
    select(on_recv(c, place));
    got += *place;
    c.send("g");
    select(on_recv(c));
    c.send("h");
    select(on_recv(recv_chan<std::string>(c), [&](const auto& v) { got += v.value(); }));
    select(on_send(c, "i", [&] { got += "sent"; }));
    select(on_recv(c, [&](std::string v) { got += v; }));
    select(on_send(send_chan<std::string>(c), std::string("j")));
    const std::string lvalue = c.recv().value() + "k";
    select(on_send(c, lvalue));
    got += c.recv().value();
    EXPECT_EQ(got, "abcd(e)fhsentijk");
  });
}

TEST(Select, OnClosedChannelHandsOverTheEnd) {
  in_goroutine_and_thread([] {
    const chan<int> c = closed_chan<int>();
    bool optional_was_empty = false;
    int value = 5;
    bool called = false;
    std::optional<int> place = 7;
    EXPECT_EQ(select(on_recv(c, [&](std::optional<int> v) { optional_was_empty = !v; })), 0u);
    select(on_recv(c, [&](int v) { value = v; }));
    select(on_recv(c, [&] { called = true; }));
    select(on_recv(c, place));
    EXPECT_TRUE(optional_was_empty);
    EXPECT_EQ(value, 0);
    EXPECT_TRUE(called);
    EXPECT_FALSE(place);
  });
}

TEST(Select, ThatWaitsIsEndedByClose) {
  chan<int> c(0);
  chan<int> other(0);
  std::atomic<int> ended{0};
  const auto receive = [&] {
    std::optional<int> v = 1;
    ended += select(on_recv(other), on_recv(c, v)) == 1 && !v;
  };
  wait_group group;
  for (int i = 0; i < 5; ++i) group.go(receive);
  std::thread thread(receive);
  ASSERT_TRUE(wait_until([&] { return waiting_receivers(c) == 6; }));
  c.close();
  group.wait();
  thread.join();
  EXPECT_EQ(ended, 6);
  EXPECT_EQ(waiting_receivers(other), 0);
}

TEST(Select, ThatSendsToClosedThrows) {
  in_goroutine_and_thread([] {
    const chan<std::string> c = closed_chan<std::string>();
    chan<int> silent(0);
    bool called = false;
    std::string text = "some text that is too long to be kept inside of the string";
    const std::string copy = text;
    const auto send = [&] {
      select(on_recv(silent), on_send(c, std::move(text), [&] { called = true; }));
    };
    EXPECT_EQ(error_of(send), "send on closed channel");
    EXPECT_EQ(error_of([&] { select(on_send(c, copy), on_default()); }), "send on closed channel");
    EXPECT_FALSE(called);
    EXPECT_EQ(text, copy);
  });
  chan<int> c(0);
  chan<int> other(0);
  std::atomic<int> errors{0};
  const auto send = [&] {
    errors += error_of([&] { select(on_recv(other), on_send(c, 1)); }) == "send on closed channel";
  };
  wait_group group;
  group.go(send);
  std::thread thread(send);
  ASSERT_TRUE(wait_until([&] { return waiting_senders(c) == 2; }));
  c.close();
  group.wait();
  thread.join();
  EXPECT_EQ(errors, 2);
  EXPECT_EQ(waiting_receivers(other), 0);
}

TEST(Select, ExceptionOfAFunctionReachesTheCaller) {
  in_goroutine_and_thread([] {
    chan<int> c(2);
    c.send(1);
    EXPECT_THROW(select(on_recv(c, [](int) { throw std::runtime_error("no"); })),
                 std::runtime_error);
    EXPECT_EQ(c.len(), 0u);
    EXPECT_THROW(select(on_send(c, 2, [] { throw std::runtime_error("no"); })), std::runtime_error);
    EXPECT_EQ(c.recv(), 2);
    EXPECT_THROW(select(on_default([] { throw std::runtime_error("no"); })), std::runtime_error);
    EXPECT_THROW(select(on_timeout(1us, [] { throw std::runtime_error("no"); }), on_recv(c)),
                 std::runtime_error);
    EXPECT_EQ(waiting_receivers(c), 0);
  });
}

// ---- Values that are not sent

struct Large {
  explicit Large(int v) : value(std::make_unique<int>(v)) {}
  std::unique_ptr<int> value;
  std::array<char, 1000> ballast{};
};

TEST(Select, LeavesTheValueToTheCallerIfTheCaseIsNotChosen) {
  in_goroutine_and_thread([] {
    chan<std::unique_ptr<int>> c(0);
    chan<Large> large(0);
    auto small_value = std::make_unique<int>(1);
    Large large_value(2);
    const auto try_both = [&](auto&& last) {
      return select(on_send(c, std::move(small_value)), on_send(large, std::move(large_value)),
                    std::move(last));
    };
    EXPECT_EQ(try_both(on_default()), 2u);
    EXPECT_EQ(try_both(on_timeout(1ms)), 2u);
    chan<int> ready(1);
    ready.send(1);
    EXPECT_EQ(try_both(on_recv(ready)), 2u);
    ASSERT_TRUE(small_value && large_value.value);
    EXPECT_EQ(*small_value + *large_value.value, 3);
    go([large] { EXPECT_EQ(*large.recv()->value, 2); });
    EXPECT_EQ(try_both(on_timeout(1h)), 1u);
    EXPECT_TRUE(small_value && !large_value.value);
    go([c] { EXPECT_EQ(**c.recv(), 1); });
    EXPECT_EQ(select(on_send(c, std::move(small_value)), on_timeout(1h)), 0u);
    EXPECT_FALSE(small_value);
  });
  EXPECT_TRUE(wait_until([] { return num_goroutine() == 0; }));
}

// ---- Many cases, the same channel twice, oneself

TEST(Select, MayHaveTheSameChannelInManyCases) {
  chan<int> c(0);
  std::array<int, 4> chosen{};
  for (int i = 0; i < 100; ++i) {
    wait_group group;
    group.go([&] { ++chosen[select(on_recv(c), on_recv(c), on_recv(c), on_recv(c))]; });
    ASSERT_TRUE(wait_until([&] { return waiting_receivers(c) == 4; }));
    EXPECT_TRUE(c.try_send(1));
    EXPECT_FALSE(c.try_send(2)) << "one select receives once";
    group.wait();
    EXPECT_EQ(waiting_receivers(c), 0);
  }
  EXPECT_EQ(chosen[0] + chosen[1] + chosen[2] + chosen[3], 100);
}

TEST(Select, DoesNotMeetItself) {
  in_goroutine_and_thread([] {
    chan<int> c(0);
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(select(on_recv(c), on_send(c, 1), on_recv(c), on_default()), 3u);
      EXPECT_EQ(select(on_send(c, 1), on_recv(c), on_send(c, 2), on_timeout(500us)), 3u);
    }
    wait_group group;
    std::size_t chosen = 9;
    std::optional<int> v;
    group.go([&] { chosen = select(on_recv(c, v), on_send(c, 5)); });
    ASSERT_TRUE(wait_until([&] { return waiting_senders(c) + waiting_receivers(c) == 2; }));
    EXPECT_EQ(c.recv(), 5);
    group.wait();
    EXPECT_EQ(chosen, 1u);
    group.go([&] { chosen = select(on_recv(c, v), on_send(c, 5)); });
    c.send(6);
    group.wait();
    EXPECT_EQ(chosen, 0u);
    EXPECT_EQ(v, 6);
    EXPECT_EQ(waiting_senders(c) + waiting_receivers(c), 0);
  });
}

TEST(Select, OfALostCaseLeavesTheOthersInTheQueue) {
  chan<int> shared(0);
  chan<int> own(0);
  wait_group group;
  const auto wait_for = [&](int n) {
    ASSERT_TRUE(wait_until([&] { return waiting_receivers(shared) == n; }));
  };
  wait_group losers;
  std::array<std::optional<int>, 2> got;
  group.go([&] { got[0] = shared.recv(); });
  wait_for(1);
  losers.go([&] { EXPECT_EQ(select(on_recv(shared), on_recv(own)), 1u); });
  wait_for(2);
  group.go([&] { got[1] = shared.recv(); });
  wait_for(3);
  losers.go([&] { EXPECT_NE(select(on_recv(own), on_recv(shared), on_recv(own)), 1u); });
  wait_for(4);
  own.send(1);
  own.send(2);
  losers.wait();
  EXPECT_EQ(waiting_receivers(shared), 2);
  EXPECT_TRUE(shared.try_send(10));
  EXPECT_TRUE(shared.try_send(11));
  EXPECT_FALSE(shared.try_send(12));
  group.wait();
  EXPECT_EQ(got[0], 10);
  EXPECT_EQ(got[1], 11);
}

TEST(Select, MayHaveMoreThanEightCases) {
  in_goroutine_and_thread([] {
    std::array<chan<int>, 12> c;
    for (auto& one : c) one = chan<int>(0);
    wait_group group;
    for (std::size_t i = 0; i < c.size(); ++i) {
      group.go([&, i] { c[i].send(static_cast<int>(i)); });
      std::optional<int> v;
      const std::size_t chosen = select(
          on_recv(c[0], v), on_recv(c[1], v), on_recv(c[2], v), on_recv(c[3], v), on_recv(c[4], v),
          on_recv(c[5], v), on_recv(c[6], v), on_recv(c[7], v), on_recv(c[8], v), on_recv(c[9], v),
          on_recv(c[10], v), on_recv(c[11], v), on_timeout(1h));
      EXPECT_EQ(chosen, i);
      EXPECT_EQ(v, static_cast<int>(i));
      group.wait();
      for (const auto& one : c) EXPECT_EQ(waiting_receivers(one), 0);
    }
  });
}

// ---- Cases put together at run time

TEST(AnyCase, MayBeManyAndUsedAgain) {
  in_goroutine_and_thread([] {
    constexpr std::size_t count = 100;
    std::vector<chan<int>> c;
    std::vector<any_case> cases;
    std::vector<int> sums(count);
    for (std::size_t i = 0; i < count; ++i) {
      c.emplace_back(i % 3);
      cases.emplace_back(on_recv(c[i], [&sums, i](int v) { sums[i] += v; }));
    }
    cases.emplace_back(on_timeout(1h));
    wait_group group;
    for (const auto& one : c) {
      group.go([one] {
        for (int i = 1; i <= 4; ++i) one.send(i);
      });
    }
    for (std::size_t i = 0; i < 4 * count; ++i) EXPECT_LT(select(cases), count);
    group.wait();
    EXPECT_EQ(sums, std::vector<int>(count, 10));
    for (const auto& one : c) EXPECT_EQ(waiting_receivers(one), 0);
  });
}

TEST(AnyCase, KeepsItsChannelAlive) {
  std::vector<any_case> cases;
  {
    chan<std::string> c(1);
    c.send("left");
    std::string* text = new std::string;
    cases.emplace_back(on_recv(c, [text = std::unique_ptr<std::string>(text)](std::string v) {
      *text = std::move(v);
      EXPECT_EQ(*text, "left");
    }));
    cases.emplace_back(on_recv(chan<int>(0)));
    cases.emplace_back(on_recv(chan<int>()));
  }
  EXPECT_EQ(select(cases), 0u);
}

TEST(Select, SendsAValueInBraces) {
  run([] {
    chan<std::pair<int, std::string>> c(1);
    EXPECT_EQ(select(on_send(c, {1, "one"})), 0U);
    EXPECT_EQ(c.recv(), std::pair(1, std::string("one")));
  });
}

TEST(AnyCase, MayLieInATemporaryVector) {
  run([] {
    chan<int> c(1);
    c.send(7);
    int got = 0;
    const auto cases = [&] {
      std::vector<any_case> made;
      made.push_back(on_recv(chan<int>()));
      made.push_back(on_recv(c, [&](int v) { got = v; }));
      return made;
    };
    EXPECT_EQ(select(cases()), 1U);
    EXPECT_EQ(got, 7);
  });
}

TEST(AnyCase, DefaultsAndTimesOut) {
  in_goroutine_and_thread([] {
    chan<int> c(2);
    std::vector<any_case> cases;
    cases.emplace_back(on_recv(c));
    cases.emplace_back(on_timeout(2ms));
    EXPECT_EQ(select(cases), 1u);
    EXPECT_EQ(select(cases), 1u);  // its moment is over
    cases.emplace_back(on_default());
    EXPECT_EQ(select(cases), 2u);
    c.send(1);
    EXPECT_EQ(select(cases), 0u);
    EXPECT_EQ(select(std::span(cases).subspan(1)), 1u);
  });
}

TEST(AnyCase, SendsAgainAndAgain) {
  in_goroutine_and_thread([] {
    chan<int> c(2);
    chan<Large> large(1);
    Large value(8);
    const int seven = 7;
    int sent = 0;
    std::vector<any_case> cases;
    cases.emplace_back(on_send(c, seven, [&] { ++sent; }));
    cases.emplace_back(on_send(large, std::move(value)));
    cases.emplace_back(on_default());
    large.send(Large(9));
    EXPECT_EQ(select(cases), 0u);
    EXPECT_EQ(select(cases), 0u);
    EXPECT_EQ(select(cases), 2u);
    EXPECT_EQ(sent, 2);
    ASSERT_TRUE(value.value);
    EXPECT_EQ(*large.recv()->value, 9);
    EXPECT_EQ(select(std::span(cases).subspan(1)), 0u);
    EXPECT_FALSE(value.value);
    EXPECT_EQ(*large.recv()->value, 8);
    EXPECT_EQ(c.recv().value() + c.recv().value(), 14);
  });
}

// The case lives on, but what could not be sent is the caller's again.
TEST(Select, ThatThrowsLeavesTheValuesOfNamedCasesToTheCaller) {
  in_goroutine_and_thread([] {
    const chan<Large> c = closed_chan<Large>();
    chan<Large> other(0);
    Large one(1);
    Large two(2);
    auto first = on_send(other, std::move(one));
    auto second = on_send(c, std::move(two));
    EXPECT_EQ(error_of([&] { select(first, second); }), "send on closed channel");
    EXPECT_TRUE(one.value && two.value);
  });
}

TEST(AnyCase, ChoosesUniformly) {
  std::vector<any_case> cases;
  for (int i = 0; i < 4; ++i) cases.emplace_back(on_recv(closed_chan<int>()));
  in_goroutine_and_thread([&] { expect_uniform(4, [&] { return select(cases); }); });
}

// ---- Reports

TEST(SelectDeadlock, IsReportedWithItsReason) {
  if (test::under_tsan) GTEST_SKIP() << "silent under TSan";
  const std::pair<const char*, const char*> scenarios[] = {
      {"select_cases", "goroutine 1 [select]:\n"},
      {"select_itself", "goroutine 1 [select]:\n"},
      {"select_nothing", "goroutine 1 [select (no cases)]:\n"},
      {"select_nil_only", "goroutine 1 [select"},
      {"select_empty_vector", "goroutine 1 [select (no cases)]:\n"}};
  for (const auto& [scenario, text] : scenarios) {
    const test::ChildResult r = test::run_child("chan_deadlock_child", {scenario});
    EXPECT_TRUE(r.exited_with(2)) << scenario << ": " << r;
    EXPECT_TRUE(r.err_has("all goroutines are asleep - deadlock!")) << scenario << ": " << r;
    EXPECT_TRUE(r.err_has(text)) << scenario << ": " << r;
  }
}

}  // namespace
}  // namespace gofer
