// Channels: what each operation does, for every kind of element, in goroutines and in ordinary
// threads. Crowds and races are in chan_stress_test.cc.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "support/chan_waiters.h"
#include "support/error_of.h"
#include "support/goroutines_and_threads.h"
#include "support/report.h"
#include "support/scaled.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using test::error_of;
using test::in_goroutine_and_thread;
using test::scaled;
using test::wait_until;
using test::waiting_receivers;
using test::waiting_senders;

// ---- Order, room, the end

TEST(Channel, KeepsOrderAtEveryCapacity) {
  for (std::size_t capacity = 0; capacity < 200; ++capacity) {
    const int values = 3 * static_cast<int>(capacity) + 10;
    int wrong = 0;
    run([&] {
      chan<int> c(capacity);
      go([c, values] {
        for (int i = 0; i < values; ++i) c.send(i);
        c.close();
      });
      int expected = 0;
      for (int v : c) wrong += v != expected++;
      wrong += expected != values;
    });
    ASSERT_EQ(wrong, 0) << capacity;
  }
}

TEST(Channel, HasRoomForItsCapacityAndNoMore) {
  in_goroutine_and_thread([] {
    for (std::size_t capacity = 0; capacity < 200; ++capacity) {
      chan<int> c(capacity);
      ASSERT_EQ(c.cap(), capacity);
      for (std::size_t i = 0; i < capacity; ++i) {
        ASSERT_EQ(c.len(), i);
        ASSERT_TRUE(c.try_send(static_cast<int>(i)));
      }
      ASSERT_EQ(c.len(), capacity);
      ASSERT_FALSE(c.try_send(-1));
      for (std::size_t i = 0; i < capacity; ++i) {
        ASSERT_EQ(c.try_recv(), static_cast<int>(i));
        ASSERT_EQ(c.len(), capacity - i - 1);
      }
      ASSERT_FALSE(c.try_recv());
    }
  });
}

TEST(Channel, WithImpossibleCapacityIsNotMade) {
  EXPECT_THROW(static_cast<void>(make_chan<char>(std::numeric_limits<std::size_t>::max())),
               std::length_error);
  EXPECT_THROW(static_cast<void>(make_chan<double>(std::size_t{1} << 40)), std::length_error);
  EXPECT_EQ(make_chan<int>().cap(), 0u);
  EXPECT_EQ(make_chan<int>(7).cap(), 7u);
}

TEST(Channel, ReceiveFromClosedDrainsBufferFirst) {
  in_goroutine_and_thread([] {
    chan<std::string> c(3);
    c.send("a");
    c.send("b");
    c.close();
    EXPECT_FALSE(c.closed());
    EXPECT_EQ(c.recv(), "a");
    EXPECT_EQ(c.try_recv(), "b");
    EXPECT_TRUE(c.closed());
    EXPECT_EQ(c.recv(), std::nullopt);
    EXPECT_EQ(c.try_recv(), std::nullopt);
    EXPECT_EQ(c.recv_for(1h), std::nullopt);
    EXPECT_EQ(c.recv_until(std::chrono::steady_clock::now() + 1h), std::nullopt);
    for (const std::string& s : c) ADD_FAILURE() << s;
  });
}

TEST(Channel, RangeForMayBeLeftAndEnteredAgain) {
  chan<int> c(10);
  for (int i = 0; i < 10; ++i) c.send(i);
  c.close();
  std::vector<int> seen;
  for (int v : c) {
    seen.push_back(v);
    if (v == 3) break;
  }
  EXPECT_THROW(
      {
        for (int v : c) {
          seen.push_back(v);
          if (v == 5) throw std::runtime_error("enough");
        }
      },
      std::runtime_error);
  for (int v : recv_chan<int>(c)) seen.push_back(v);
  std::vector<int> all(10);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(seen, all);
}

TEST(Channel, OfClosedOrNilMisusedThrowsGosWords) {
  in_goroutine_and_thread([] {
    for (const std::size_t capacity : {0u, 1u, 5u}) {
      chan<int> c(capacity);
      c.close();
      EXPECT_EQ(error_of([&] { c.send(1); }), "send on closed channel");
      EXPECT_EQ(error_of([&] { static_cast<void>(c.try_send(1)); }), "send on closed channel");
      EXPECT_EQ(error_of([&] { static_cast<void>(c.send_for(1h, 1)); }), "send on closed channel");
      EXPECT_EQ(error_of([&] { static_cast<void>(c.send_for(0s, 1)); }), "send on closed channel");
      EXPECT_EQ(error_of([&] { c.close(); }), "close of closed channel");
    }
    EXPECT_EQ(error_of([] { chan<int>().close(); }), "close of nil channel");
    EXPECT_EQ(error_of([] { send_chan<int>().close(); }), "close of nil channel");
  });
}

TEST(Channel, NilIsNeverReady) {
  in_goroutine_and_thread([] {
    chan<std::string> c;
    EXPECT_FALSE(c);
    EXPECT_EQ(c.len(), 0u);
    EXPECT_EQ(c.cap(), 0u);
    EXPECT_FALSE(c.closed());
    EXPECT_FALSE(c.try_send("x"));
    EXPECT_FALSE(c.try_recv());
    EXPECT_FALSE(c.recv_for(0s));
    EXPECT_FALSE(c.recv_for(-1s));
    EXPECT_FALSE(c.recv_for(2ms));
    std::string kept = "a text that is too long to be kept inside of the string";
    const std::string copy = kept;
    EXPECT_FALSE(c.send_for(2ms, std::move(kept)));
    EXPECT_EQ(kept, copy);
    EXPECT_FALSE(c.recv_until(std::chrono::system_clock::now() + 2ms));
  });
}

// ---- Waiting

TEST(Channel, BlockedSenderGetsErrorWhenClosed) {
  for (const std::size_t capacity : {0u, 2u}) {
    chan<int> c(capacity);
    while (c.try_send(7)) {
    }
    std::atomic<int> errors{0};
    const auto sender = [&](auto&& send) { errors += error_of(send) == "send on closed channel"; };
    wait_group group;
    group.go([&] { sender([&] { c.send(1); }); });
    group.go([&] { sender([&] { static_cast<void>(c.send_for(1h, 1)); }); });
    std::thread thread([&] { sender([&] { c.send(1); }); });
    std::thread timed([&] { sender([&] { static_cast<void>(c.send_for(1h, 1)); }); });
    EXPECT_TRUE(wait_until([&] { return waiting_senders(c) == 4; }));
    EXPECT_EQ(errors, 0);
    c.close();
    group.wait();
    thread.join();
    timed.join();
    EXPECT_EQ(errors, 4);
    EXPECT_EQ(c.len(), capacity);
    int drained = 0;
    for (int v : c) drained += v == 7;
    EXPECT_EQ(drained, static_cast<int>(capacity));
  }
}

TEST(Channel, CloseWakesThousandsOfWaiters) {
  const int waiters = scaled(10'000);
  chan<int> in(0);
  chan<int> out(0);
  std::atomic<int> empty{0};
  std::atomic<int> errors{0};
  wait_group group;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { empty += !in.recv(); });
  for (int i = 0; i < waiters; ++i) {
    group.go([&, i] { empty += i % 3 == 0 ? !in.recv_for(1h) : !in.recv(); });
    group.go([&] { errors += error_of([&] { out.send(1); }) == "send on closed channel"; });
  }
  EXPECT_TRUE(wait_until([&] { return waiting_receivers(in) == waiters + 4; }));
  EXPECT_TRUE(wait_until([&] { return waiting_senders(out) == waiters; }));
  in.close();
  out.close();
  group.wait();
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(empty, waiters + 4);
  EXPECT_EQ(errors, waiters);
}

TEST(Channel, WaitingReceiversAreServedInTheOrderOfTheirComing) {
  chan<int> c(0);
  std::array<int, 12> got{};
  wait_group group;
  std::vector<std::thread> threads;
  for (int i = 0; i < 12; ++i) {
    const auto receive = [&, i] { got[static_cast<std::size_t>(i)] = c.recv().value_or(-1); };
    if (i % 3 == 2) {
      threads.emplace_back(receive);
    } else {
      group.go(receive);
    }
    ASSERT_TRUE(wait_until([&] { return waiting_receivers(c) == i + 1; }));
  }
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(c.try_send(100 + i));
  EXPECT_FALSE(c.try_send(0));
  group.wait();
  for (std::thread& t : threads) t.join();
  for (int i = 0; i < 12; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], 100 + i);
}

TEST(Channel, ValuesOfWaitingSendersComeInTheOrderOfTheirComing) {
  for (const std::size_t capacity : {0u, 1u, 4u}) {
    chan<int> c(capacity);
    const int buffered = static_cast<int>(capacity);
    for (int i = 0; i < buffered; ++i) c.send(i);
    wait_group group;
    std::vector<std::thread> threads;
    for (int i = 0; i < 10; ++i) {
      const auto send = [&, i] { c.send(buffered + i); };
      if (i % 3 == 2) {
        threads.emplace_back(send);
      } else {
        group.go(send);
      }
      ASSERT_TRUE(wait_until([&] { return waiting_senders(c) == i + 1; }));
    }
    for (int i = 0; i < buffered + 10; ++i) EXPECT_EQ(c.try_recv(), i);
    EXPECT_FALSE(c.try_recv());
    group.wait();
    for (std::thread& t : threads) t.join();
  }
}

TEST(Channel, TimeLimitLeavesTheQueueToTheOthers) {
  chan<int> c(0);
  std::optional<int> first, last;
  wait_group group;
  group.go([&] { first = c.recv(); });
  ASSERT_TRUE(wait_until([&] { return waiting_receivers(c) == 1; }));
  wait_group timed;
  for (int i = 0; i < 10; ++i) timed.go([&, i] { EXPECT_FALSE(c.recv_for(i * 300us)); });
  timed.wait();
  EXPECT_EQ(waiting_receivers(c), 1);
  group.go([&] { last = c.recv(); });
  ASSERT_TRUE(wait_until([&] { return waiting_receivers(c) == 2; }));
  EXPECT_TRUE(c.try_send(1));
  EXPECT_TRUE(c.try_send(2));
  EXPECT_FALSE(c.try_send(3));
  group.wait();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(last, 2);
}

// ---- Time limits

TEST(Channel, TimeLimitThatIsOverStillTakesWhatIsThere) {
  in_goroutine_and_thread([] {
    chan<int> c(1);
    const auto past = std::chrono::steady_clock::now() - 1h;
    for (const auto d : {0ns, -1ns, std::chrono::nanoseconds::min()}) {
      EXPECT_FALSE(c.recv_for(d));
      EXPECT_TRUE(c.send_for(d, 5));
      EXPECT_FALSE(c.send_for(d, 6));
      EXPECT_EQ(c.recv_for(d), 5);
    }
    EXPECT_FALSE(c.recv_until(past));
    EXPECT_TRUE(c.send_until(past, 7));
    EXPECT_FALSE(c.send_until(past, 8));
    EXPECT_EQ(c.recv_until(past), 7);
    EXPECT_FALSE(c.recv_until(std::chrono::steady_clock::time_point::min()));
    EXPECT_FALSE(c.recv_until(std::chrono::system_clock::now() - 1h));
    EXPECT_FALSE(c.recv_until(std::chrono::system_clock::time_point::min()));
    EXPECT_FALSE(c.recv_for(std::chrono::duration<double>(-1e300)));
  });
}

TEST(Channel, WaitsNoLessThanItsTime) {
  in_goroutine_and_thread([] {
    chan<int> c(0);
    const auto waits = [&](auto&& wait) {
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_FALSE(wait());
      EXPECT_GE(std::chrono::steady_clock::now() - begin, 3ms);
    };
    waits([&] { return c.recv_for(3ms).has_value(); });
    waits([&] { return c.send_for(3ms, 1); });
    waits([&] { return c.recv_for(std::chrono::duration<float, std::milli>(3.5f)).has_value(); });
    waits([&] { return c.recv_until(std::chrono::steady_clock::now() + 3ms).has_value(); });
    waits([&] { return c.send_until(std::chrono::steady_clock::now() + 3ms, 1); });
  });
}

TEST(Channel, HugeTimeLimitsDoNotOverflow) {
  const auto check = [](auto&& recv, auto&& send) {
    const auto pass = [&] {
      chan<int> c(0);
      go([recv, c] { recv(c); });
      EXPECT_TRUE(wait_until([&] { return waiting_receivers(c) == 1; }));
      EXPECT_TRUE(send(c));
    };
    in_goroutine_and_thread(pass);
    EXPECT_TRUE(wait_until([] { return num_goroutine() == 0; }));
  };
  const auto check_for = [&](auto d) {
    check([d](const chan<int>& c) { EXPECT_EQ(c.recv_for(d), 1); },
          [d](const chan<int>& c) { return c.send_for(d, 1); });
  };
  const auto check_until = [&](auto t) {
    check([t](const chan<int>& c) { EXPECT_EQ(c.recv_until(t), 1); },
          [t](const chan<int>& c) { return c.send_until(t, 1); });
  };
  check_for(std::chrono::nanoseconds::max());
  check_for(std::chrono::nanoseconds::max() - 1ns);
  check_for(std::chrono::hours::max());
  check_for(std::chrono::years(250));
  check_for(std::chrono::duration<double>(1e300));
  check_for(std::chrono::duration<double>(std::numeric_limits<double>::infinity()));
  check_until(std::chrono::steady_clock::time_point::max());
  check_until(std::chrono::system_clock::time_point::max());
}

// ---- Handles

static_assert(!std::is_convertible_v<recv_chan<int>, chan<int>>);
static_assert(!std::is_convertible_v<send_chan<int>, chan<int>>);
static_assert(!std::is_convertible_v<recv_chan<int>, send_chan<int>>);
static_assert(!std::is_convertible_v<chan<int>, recv_chan<long>>);
static_assert(std::is_nothrow_move_constructible_v<chan<int>>);
template <class C>
concept can_send = requires(C c) {
  c.send(1);
};
template <class C>
concept can_recv = requires(C c) {
  c.recv();
};
template <class C>
concept can_close = requires(C c) {
  c.close();
};
static_assert(can_send<chan<int>> && can_recv<chan<int>> && can_close<chan<int>>);
static_assert(can_send<send_chan<int>> && !can_recv<send_chan<int>> && can_close<send_chan<int>>);
static_assert(!can_send<recv_chan<int>> && can_recv<recv_chan<int>> && !can_close<recv_chan<int>>);

TEST(Channel, HandlesStandForOneChannel) {
  chan<int> a(1);
  chan<int> b = a;
  chan<int> other(1);
  EXPECT_TRUE(a == b);
  EXPECT_TRUE(a != other);
  EXPECT_TRUE(chan<int>() == chan<int>());
  b.send(4);
  EXPECT_EQ(a.len(), 1u);
  chan<int> c = std::move(b);
  EXPECT_FALSE(b);  // NOLINT(bugprone-use-after-move): nil is what a moved-from handle becomes
  EXPECT_TRUE(c == a);
  other = c;
  EXPECT_EQ(other.recv(), 4);
  c = chan<int>();
  EXPECT_FALSE(c);
  const chan<int>& same = a;
  a = same;
  EXPECT_TRUE(a && a == other);
}

TEST(Channel, SidesSendAndReceive) {
  chan<std::string> c(0);
  wait_group group;
  group.go(
      [](send_chan<std::string> out) {
        for (const char* text : {"one", "two"}) out.send(text);
        EXPECT_TRUE(out.send_for(1h, "three"));
        out.close();
      },
      c);
  std::string all;
  for (const std::string& text : recv_chan<std::string>(c)) all += text + " ";
  EXPECT_EQ(all, "one two three ");
  group.wait();
  EXPECT_TRUE(recv_chan<std::string>(c).closed());
  EXPECT_TRUE(send_chan<std::string>(c) == c);
}

TEST(Channel, OfChannelsCarriesTheWayBack) {
  struct Request {
    int value;
    chan<int> reply;
  };
  in_goroutine_and_thread([] {
    chan<Request> requests(0);
    go([requests] {
      for (const Request& r : requests) r.reply.send(r.value * r.value);
    });
    int sum = 0;
    for (int i = 0; i < 100; ++i) {
      const Request r{i, chan<int>(0)};
      requests.send(r);
      sum += r.reply.recv().value();
    }
    requests.close();
    EXPECT_EQ(sum, 328'350);
  });
}

// ---- Reports

class ChannelDeadlock : public testing::Test {
 protected:
  void SetUp() override {
    if (test::under_tsan) GTEST_SKIP() << "silent under TSan";
  }
};

TEST_F(ChannelDeadlock, IsReportedWithWhatEachGoroutineWaitsFor) {
  const std::pair<const char*, const char*> cases[] = {
      {"receive", "[chan receive]"},
      {"send", "[chan send]"},
      {"receive_nil", "[chan receive (nil chan)]"},
      {"send_nil", "[chan send (nil chan)]"},
      {"range_over_nil", "[chan receive (nil chan)]"},
      {"receive_for_ever", "[chan receive]"}};
  for (const auto& [scenario, reason] : cases) {
    const test::ChildResult r = test::run_child("chan_deadlock_child", {scenario});
    EXPECT_TRUE(r.exited_with(2)) << scenario << ": " << r;
    EXPECT_EQ(r.err.find(std::string("fatal error: all goroutines are asleep - deadlock!\n\n"
                                     "goroutine 1 ") +
                         reason + ":\n"),
              0u)
        << scenario << ": " << r;
  }
}

TEST_F(ChannelDeadlock, OfManyKindsAtOnceIsReported) {
  const test::ChildResult r = test::run_child("chan_deadlock_child", {"each_in_its_way"});
  EXPECT_TRUE(r.exited_with(2)) << r;
  for (const char* reason :
       {" [chan receive]:", " [chan send]:", " [chan send (nil chan)]:", " [select]:",
        " [select (no cases)]:", " [chan receive (nil chan)]:"}) {
    EXPECT_EQ(test::count_of(r.err, reason), 1) << reason << r;
  }
}

TEST(NoChannelDeadlock, WhileATimeLimitWillEndAWait) {
  for (const char* scenario : {"time_limit", "thread_with_time_limit"}) {
    const test::ChildResult r = test::run_child("chan_deadlock_child", {scenario});
    EXPECT_TRUE(r.exited_with(0) && r.out_has("completed")) << scenario << ": " << r;
  }
}

}  // namespace
}  // namespace gofer
