// select under load: many that meet in both directions, time limits and closes that race. Exactly
// one case happens each time, and what lost leaves nothing behind.
// gofer-test: stress
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/base/sanitizer.h"
#include "runtime/procs/current.h"
#include "runtime/procs/p_table.h"
#include "support/chan_waiters.h"
#include "support/quiescent.h"
#include "support/scaled.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using test::scaled;
using test::wait_until;
using test::waiting_receivers;
using test::waiting_senders;

using SelectStress = test::QuiescentTest;

template <class... Chans>
int waiting(const Chans&... c) {
  return ((waiting_receivers(c) + waiting_senders(c)) + ...);
}

// ---- Meeting

// Four channels; on each one goroutine that sends and one that receives, and one of each that takes
// whichever channel is ready. All do the same number of operations, so all come to an end.
TEST_F(SelectStress, FourChannelsTenGoroutines) {
  const int rounds = scaled(100'000);
  for (const std::size_t capacity : {0u, 1u}) {
    std::array<chan<int>, 4> c;
    for (auto& one : c) one = chan<int>(capacity);
    std::atomic<int> received{0};
    wait_group group;
    for (std::size_t i = 0; i < 4; ++i) {
      group.go([&, i] {
        for (int r = 0; r < rounds; ++r) c[i].send(r);
      });
      group.go([&, i] {
        for (int r = 0; r < rounds; ++r) received += c[i].recv().has_value();
      });
    }
    // A channel from which enough was sent or received becomes nil.
    group.go([&] {
      std::array<chan<int>, 4> mine = c;
      std::array<int, 4> left;
      left.fill(rounds);
      for (int r = 0; r < 4 * rounds; ++r) {
        const std::size_t i = select(on_send(mine[0], r), on_send(mine[1], r), on_send(mine[2], r),
                                     on_send(mine[3], r));
        if (--left[i] == 0) mine[i] = {};
      }
    });
    group.go([&] {
      std::array<chan<int>, 4> mine = c;
      std::array<int, 4> left;
      left.fill(rounds);
      for (int r = 0; r < 4 * rounds; ++r) {
        const std::size_t i =
            select(on_recv(mine[0]), on_recv(mine[1]), on_recv(mine[2]), on_recv(mine[3]));
        ++received;
        if (--left[i] == 0) mine[i] = {};
      }
    });
    group.wait();
    EXPECT_EQ(received, 8 * rounds);
    EXPECT_EQ(waiting(c[0], c[1], c[2], c[3]), 0);
  }
}

// Two that each offer and accept on both channels: every round one sends and the other receives.
TEST_F(SelectStress, TwoSelectAgainstEachOtherInBothDirections) {
  const int rounds = scaled(100'000);
  for (const bool with_thread : {false, true}) {
    chan<int> a(0);
    chan<int> b(0);
    std::atomic<std::int64_t> balance{0};
    std::atomic<int> sends{0};
    const int n = with_thread ? rounds / 20 : rounds;
    const auto partner = [&](bool swapped) {
      const chan<int>& first = swapped ? b : a;
      const chan<int>& second = swapped ? a : b;
      for (int r = 0; r < n; ++r) {
        std::optional<int> v;
        const std::size_t i =
            select(on_send(first, r), on_recv(second, v), on_send(second, r), on_recv(first, v));
        if (i == 0 || i == 2) {
          balance += r;
          ++sends;
        } else {
          balance -= v.value();
        }
      }
    };
    wait_group group;
    group.go([&] { partner(true); });
    if (with_thread) {
      std::thread([&] { partner(false); }).join();
    } else {
      group.go([&] { partner(false); });
    }
    group.wait();
    EXPECT_EQ(sends, n);
    EXPECT_EQ(balance, 0);
    EXPECT_EQ(waiting(a, b), 0);
  }
}

// All members of a crowd send and receive on one channel. Any two may meet, but none meets itself,
// and the two sides of each meeting agree.
TEST_F(SelectStress, CrowdMeetsOnOneChannel) {
  const int members = 10;
  const int rounds = scaled(20'000);
  chan<int> c(0);
  std::atomic<int> sent{0};
  std::atomic<int> received{0};
  std::atomic<int> met_oneself{0};
  std::atomic<std::int64_t> balance{0};
  std::atomic<int> left{members * rounds};
  chan<int> quit(0);
  wait_group group;
  for (int m = 0; m < members; ++m) {
    group.go([&, m] {
      for (;;) {
        std::optional<int> v;
        const std::size_t i = select(on_recv(c, v), on_send(c, m), on_recv(quit));
        if (i == 2) break;
        if (i == 0) {
          ++received;
          balance -= v.value();
          met_oneself += v.value() == m;
        } else {
          ++sent;
          balance += m;
        }
        if (--left == 0) quit.close();
      }
    });
  }
  group.wait();
  EXPECT_EQ(sent, received);
  EXPECT_EQ(met_oneself, 0);
  EXPECT_EQ(balance, 0);
  EXPECT_EQ(waiting(c, quit), 0);
}

// Foreign threads and goroutines, fixed cases and a vector of them, all on the same channels.
TEST_F(SelectStress, ThreadsAndGoroutinesShareTheWork) {
  const int each = scaled(4'000);
  for (const std::size_t capacity : {0u, 2u}) {
    std::vector<chan<int>> c;
    for (int i = 0; i < 12; ++i) c.emplace_back(capacity);
    chan<int> quit(0);
    std::vector<std::atomic<int>> seen(static_cast<std::size_t>(6 * each));
    const auto receive = [&] {
      bool ended = false;
      std::vector<any_case> cases;
      for (const auto& one : c) {
        cases.emplace_back(on_recv(one, [&](int v) { ++seen[static_cast<std::size_t>(v)]; }));
      }
      cases.emplace_back(on_recv(quit, [&] { ended = true; }));
      while (!ended) select(cases);
    };
    const auto send = [&](int s) {
      for (int i = 0; i < each; ++i) {
        const int v = s * each + i;
        const auto at = static_cast<std::size_t>(v);
        select(on_send(c[at % 12], v), on_send(c[(at + 1) % 12], v), on_send(c[(at + 7) % 12], v));
      }
    };
    wait_group senders;
    wait_group receivers;
    std::vector<std::thread> receiving;
    std::vector<std::thread> sending;
    for (int i = 0; i < 4; ++i) senders.go([&, i] { send(i); });
    for (int i = 4; i < 6; ++i) sending.emplace_back([&, i] { send(i); });
    for (int i = 0; i < 3; ++i) receivers.go(receive);
    for (int i = 0; i < 2; ++i) receiving.emplace_back(receive);
    senders.wait();
    for (std::thread& t : sending) t.join();
    EXPECT_TRUE(wait_until([&] {
      for (const auto& one : c) {
        if (one.len() != 0) return false;
      }
      return true;
    }));
    quit.close();
    receivers.wait();
    for (std::thread& t : receiving) t.join();
    int wrong = 0;
    for (const auto& n : seen) wrong += n != 1;
    EXPECT_EQ(wrong, 0);
    for (const auto& one : c) EXPECT_EQ(waiting(one), 0);
  }
}

// ---- Default

// GOFER_STRESS_SECONDS, or a moment.
std::chrono::steady_clock::time_point end_of_stress() {
  const char* seconds = std::getenv("GOFER_STRESS_SECONDS");
  const auto now = std::chrono::steady_clock::now();
  return seconds == nullptr ? now + 300ms : now + std::chrono::seconds(std::atoi(seconds));
}

using FourChans = std::array<chan<int>, 4>;

// Something that makes one of four channels ready. `add` makes channel i ready and returns when it
// is, or when another goroutine has made use of it; `take` undoes that if channel i is ready.
struct Opening {
  std::function<void(std::size_t i)> add;
  std::function<bool(std::size_t i)> take;
  std::function<bool()> look;  // a select over the four; false: default
};

// One thread adds an opening to the next channel and then takes one away from another, again and
// again, so there is at least one at every moment. The caller takes one by a select with a default
// and adds it again before it looks the next time.
void expect_no_default(const Opening& opening) {
  opening.add(0);
  std::atomic<bool> stop{false};
  std::thread juggler([&] {
    for (std::size_t i = 1; !stop; ++i) {
      opening.add(i % 4);
      std::size_t from = i + 3;
      while (!opening.take(from % 4)) ++from;
    }
  });
  long looks = 0;
  long defaults = 0;
  for (const auto end = end_of_stress(); std::chrono::steady_clock::now() < end; ++looks) {
    if (!opening.look()) {
      ++defaults;
    } else {
      opening.add(static_cast<std::size_t>(looks) % 4);
    }
  }
  stop = true;
  juggler.join();
  EXPECT_EQ(defaults, 0) << "of " << looks;
  for (std::size_t i = 0; !opening.take(i % 4); ++i) continue;
}

bool receive_or_default(const FourChans& c) {
  return select(on_recv(c[0]), on_recv(c[1]), on_recv(c[2]), on_recv(c[3]), on_default()) != 4;
}

bool send_or_default(const FourChans& c) {
  return select(on_send(c[0], 1), on_send(c[1], 1), on_send(c[2], 1), on_send(c[3], 1),
                on_default()) != 4;
}

FourChans four_chans(std::size_t capacity) {
  FourChans c;
  for (auto& one : c) one = chan<int>(capacity);
  return c;
}

TEST_F(SelectStress, DefaultIsNotTakenWhileAValueMovesBetweenBuffers) {
  const FourChans c = four_chans(8);
  expect_no_default({[&](std::size_t i) { c[i].send(1); },
                     [&](std::size_t i) { return c[i].try_recv().has_value(); },
                     [&] { return receive_or_default(c); }});
}

TEST_F(SelectStress, DefaultIsNotTakenWhileAFreePlaceMovesBetweenBuffers) {
  const FourChans c = four_chans(4);
  for (const auto& one : c) {
    while (one.try_send(1)) continue;
  }
  expect_no_default({[&](std::size_t i) { EXPECT_EQ(c[i].recv(), 1); },
                     [&](std::size_t i) { return c[i].try_send(1); },
                     [&] { return send_or_default(c); }});
}

// Starts a goroutine that waits on a channel, and returns when it does or did.
template <class Wait>
void start_waiter(wait_group& group, const chan<int>& c,
                  internal::WaitQueue detail::chan_core::*queue, Wait wait) {
  struct State {
    std::atomic<internal::G*> g{nullptr};
    std::atomic<bool> over{false};
  };
  const auto state = std::make_shared<State>();
  group.go([c, state, wait] {
    {
      internal::Inside inside;
      state->g = inside.m()->curg;
    }
    wait(c);
    state->over = true;
  });
  ASSERT_TRUE(wait_until([&] { return state->over || test::waits(c, queue, state->g.load()); }));
}

TEST_F(SelectStress, DefaultIsNotTakenWhileASenderWaitsHereOrThere) {
  const FourChans c = four_chans(0);
  wait_group group;
  const auto wait = [](const chan<int>& one) { one.send(1); };
  expect_no_default(
      {[&](std::size_t i) { start_waiter(group, c[i], &detail::chan_core::senders, wait); },
       [&](std::size_t i) { return c[i].try_recv().has_value(); },
       [&] { return receive_or_default(c); }});
  group.wait();
}

TEST_F(SelectStress, DefaultIsNotTakenWhileAReceiverWaitsHereOrThere) {
  const FourChans c = four_chans(0);
  wait_group group;
  const auto wait = [](const chan<int>& one) { one.recv(); };
  expect_no_default(
      {[&](std::size_t i) { start_waiter(group, c[i], &detail::chan_core::receivers, wait); },
       [&](std::size_t i) { return c[i].try_send(1); }, [&] { return send_or_default(c); }});
  group.wait();
}

// ---- Time

TEST_F(SelectStress, TimeLimitAndPartnerHaveOneOutcome) {
  const int each = scaled(8'000);
  for (const bool threads : {false, true}) {
    chan<int> a(0);
    chan<int> b(1);
    std::vector<std::atomic<int>> outcome(static_cast<std::size_t>(2 * each));
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0};
    const auto send = [&](int s) {
      for (int i = 0; i < each; ++i) {
        const int v = s * each + i;
        bool sent = false;
        const auto note = [&] { sent = true; };
        const auto limit = std::chrono::nanoseconds(i * 31 % 6000);
        const std::size_t k = select(on_send(a, v, note), on_timeout(limit), on_send(b, v, note));
        wrong += sent != (k != 1);
        if (sent) outcome[static_cast<std::size_t>(v)] += 1;
      }
    };
    const auto receive = [&] {
      for (int i = 0; !stop; ++i) {
        const auto take = [&](int v) { outcome[static_cast<std::size_t>(v)] += 2; };
        const auto limit = std::chrono::nanoseconds(i * 43 % 6000);
        select(on_recv(a, take), on_recv(b, take), on_timeout(limit));
      }
    };
    wait_group senders;
    wait_group receivers;
    std::vector<std::thread> plain;
    senders.go([&] { send(0); });
    receivers.go(receive);
    if (threads) {
      plain.emplace_back([&] { send(1); });
      plain.emplace_back(receive);
      plain[0].join();
    } else {
      senders.go([&] { send(1); });
      receivers.go(receive);
    }
    senders.wait();
    stop = true;
    receivers.wait();
    if (threads) plain[1].join();
    while (const auto v = b.try_recv()) outcome[static_cast<std::size_t>(*v)] += 2;
    for (const auto& o : outcome) wrong += o != 0 && o != 3;
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(waiting(a, b), 0);
  }
}

TEST_F(SelectStress, ThousandsTimeOutOnTheSameChannels) {
  const int waiters = scaled(20'000);
  chan<int> a(0);
  chan<int> b(0);
  std::atomic<int> timed_out{0};
  std::atomic<int> received{0};
  std::atomic<int> sent{0};
  wait_group group;
  for (int i = 0; i < waiters; ++i) {
    group.go([&, i] {
      const auto limit = std::chrono::microseconds(1000 + i * 7919 % 20'000);
      select(on_recv(a, [&] { ++received; }), on_recv(b, [&] { ++received; }),
             on_timeout(limit, [&] { ++timed_out; }));
    });
  }
  group.go([&] {
    for (int i = 0; i < waiters / 10; ++i) sent += (i % 2 == 0 ? a : b).send_for(20us, i);
  });
  group.wait();
  EXPECT_EQ(received + timed_out, waiters);
  EXPECT_EQ(received, sent);
  EXPECT_EQ(waiting(a, b), 0);
}

// ---- The end

TEST_F(SelectStress, CloseEndsEveryWaitOnce) {
  const int rounds = scaled(2'000);
  int wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    chan<int> a(0);
    chan<int> b(0);
    std::atomic<int> ended{0};
    std::atomic<int> errors{0};
    wait_group group;
    for (int i = 0; i < 4; ++i) {
      group.go([&, i] {
        std::optional<int> v = 1;
        select(on_recv(a, v), on_recv(b, v), on_timeout(i % 2 == 0 ? 1h : 2h));
        ended += !v;
      });
    }
    for (int i = 0; i < 2; ++i) {
      group.go([&] {
        chan<int> never(0);
        try {
          for (;;) select(on_send(a, 1), on_recv(never));
        } catch (const channel_error&) {
          ++errors;
        }
      });
    }
    group.go([&, round] {
      for (int i = round % 5; i > 0; --i) yield();
      b.close();
    });
    group.go([&, round] {
      for (int i = round % 3; i > 0; --i) yield();
      a.close();
    });
    group.wait();
    wrong += errors != 2 || waiting(a, b) != 0;
  }
  EXPECT_EQ(wrong, 0);
}

// ---- What is left behind

std::size_t heap_in_use() { return mallinfo2().uordblks; }

TEST_F(SelectStress, LosingCasesLeaveNothingBehind) {
  const int rounds = scaled(100'000);
  chan<int> silent(0);
  chan<std::array<char, 500>> large(0);
  chan<int> busy(0);
  const auto batch = [&](int n) {
    run([&] {
      wait_group group;
      group.go([&] {
        for (int i = 0; i < n; ++i) busy.send(i);
      });
      const std::array<char, 500> value{};
      for (int i = 0; i < n; ++i) {
        EXPECT_EQ(select(on_recv(silent), on_send(silent, i), on_recv(busy), on_recv(large),
                         on_send(large, value)),
                  2u);
        if (i % 100 == 0) {
          EXPECT_EQ(waiting(silent, large), 0);
        }
      }
      group.wait();
    });
  };
  batch(rounds / 10);
  const std::size_t before = heap_in_use();
  batch(rounds);
  EXPECT_EQ(waiting(silent, large, busy), 0);
  if (internal::sanitizers_enabled) return;  // malloc is not the one that was asked
  EXPECT_LT(heap_in_use(), before + (std::size_t{1} << 20));
}

TEST_F(SelectStress, WithTimeLimitsLeavesNoTimersBehind) {
  const int rounds = scaled(100'000);
  const auto timers = [] {
    std::size_t n = 0;
    for (int i = 0; i < gomaxprocs(0); ++i) n += internal::p_table.all[i].load()->timers.count();
    return n;
  };
  chan<int> c(0);
  chan<int> silent(0);
  run([&] {
    wait_group group;
    group.go([&] {
      for (int i = 0; i < rounds; ++i) c.send(i);
    });
    std::size_t most = 0;
    for (int i = 0; i < rounds; ++i) {
      EXPECT_EQ(select(on_recv(silent), on_timeout(1h), on_recv(c)), 2u);
      if (i % 1000 == 0) most = std::max(most, timers());
    }
    group.wait();
    EXPECT_LE(most, 2u);
  });
  EXPECT_EQ(timers(), 0u);
  EXPECT_EQ(waiting(c, silent), 0);
}

}  // namespace
}  // namespace gofer
