// How contexts end: in which order a cancel is seen, that an end reaches the holders of a channel,
// a function or a token of a context whose handles are gone, and that nothing else is kept.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "runtime/procs/p_table.h"
#include "support/quiescent.h"
#include "support/scaled.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using test::scaled;
using test::wait_until;

constexpr context_key<int> number;

using ContextEnd = test::QuiescentTest;
using done_chan = recv_chan<std::monostate>;

std::size_t timers() {
  std::size_t n = 0;
  for (int i = 0; i < gomaxprocs(0); ++i) n += internal::p_table.all[i].load()->timers.count();
  return n;
}

// Closed, and not because of the hour.
bool ends(const done_chan& done) { return !done.recv_for(1h) && done.closed(); }

// ---- Order

// Spins first, so as to be there at the moment.
template <class Condition>
void spin_until(Condition&& condition) {
  for (int spins = 0; !condition(); ++spins) {
    if (spins > 1000) std::this_thread::yield();
  }
}

// A thread looks at one context after the other, another one cancels them.
TEST_F(ContextEnd, HasAnErrorOnlyWhenItIsDone) {
  std::vector<cancellable> all(static_cast<std::size_t>(scaled(50'000)));
  for (auto& one : all) one = with_cancel(background());
  int wrong = 0;
  std::thread looker([&] {
    for (const auto& one : all) {
      spin_until([&] { return static_cast<bool>(one.ctx.err()); });
      wrong += !one.ctx.done().closed();
    }
  });
  for (const auto& one : all) one.cancel();
  looker.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(ContextEnd, ComesFromAboveWhileAStopTokenIsAdded) {
  std::vector<cancellable> all(static_cast<std::size_t>(scaled(20'000)));
  for (auto& one : all) one = with_cancel(background());
  const std::stop_source source;
  std::thread canceller([&] {
    for (const auto& one : all) one.cancel();
  });
  for (const auto& one : all) {
    const context ctx = with_stop_token(one.ctx, source.get_token());
    spin_until([&] { return static_cast<bool>(ctx.err()); });
    EXPECT_EQ(ctx.err(), context_errc::canceled);
  }
  canceller.join();
}

TEST_F(ContextEnd, ASecondCancelReturnsWhenAllBelowAreDone) {
  constexpr std::size_t children = 20;
  std::atomic<int> wrong{0};
  struct Family {
    cancellable parent = with_cancel(background());
    std::vector<cancellable> below;
    Family() {
      for (std::size_t i = 0; i < children; ++i) below.push_back(with_cancel(parent.ctx));
      below.push_back(with_cancel(below.back().ctx));
    }
    int not_done() const {
      int n = 0;
      for (const auto& one : below) n += !one.ctx.done().closed() || !one.ctx.err();
      return n;
    }
  };
  std::vector<Family> families(static_cast<std::size_t>(scaled(2'000)));
  std::thread second([&] {
    for (const Family& family : families) {
      spin_until([&] { return family.parent.ctx.done().closed(); });
      family.parent.cancel();
      wrong += family.not_done();
    }
  });
  for (const Family& family : families) {
    family.parent.cancel();
    wrong += family.not_done();
  }
  second.join();
  EXPECT_EQ(wrong, 0);
}

// What a callback may do: ask the context that is just ending, and those above.
TEST_F(ContextEnd, CallbacksOfStopTokensMayAskTheContext) {
  auto [parent, cancel] = with_cancel(background());
  auto [child, unused] = with_cancel(parent);
  std::atomic<int> asked{0};
  const auto ask = [&, p = parent, c = child] { asked += p.err() && c.err(); };
  std::stop_callback above(parent.stop_token(), ask);
  std::stop_callback below(child.stop_token(), ask);
  cancel();
  EXPECT_EQ(asked, 2);
}

TEST_F(ContextEnd, OfALongChainDoesNotNeedALongStack) {
  std::vector<cancellable> chain{with_cancel(background())};
  for (int i = 0; i < scaled(50'000); ++i) chain.push_back(with_cancel(chain.back().ctx));
  run([&] { chain.front().cancel(); });
  EXPECT_TRUE(chain.back().ctx.err());
  while (!chain.empty()) chain.pop_back();
}

// ---- Without handles

TEST_F(ContextEnd, ClosesTheChannelInTimeAfterItsHandlesAreGone) {
  const auto begin = std::chrono::steady_clock::now();
  const done_chan by_time = with_timeout(background(), 5ms).ctx.done();
  EXPECT_TRUE(ends(by_time));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 5ms);

  auto [parent, cancel] = with_cancel(background());
  const done_chan child = with_cancel(parent).ctx.done();
  const done_chan with_limit = with_timeout(parent, 1h).ctx.done();
  const done_chan grandchild = with_cancel(with_timeout(parent, 1h).ctx).ctx.done();
  const done_chan in_time = with_cancel(with_timeout(parent, 5ms).ctx).ctx.done();
  EXPECT_TRUE(ends(in_time));
  EXPECT_FALSE(child.closed() || with_limit.closed() || grandchild.closed());
  cancel();
  EXPECT_TRUE(child.closed() && with_limit.closed() && grandchild.closed());
  EXPECT_TRUE(wait_until([] { return timers() == 0; }));
}

TEST_F(ContextEnd, EndsASelectOnTheChannelOfATemporary) {
  chan<int> c(0);
  EXPECT_EQ(select(on_recv(c), on_recv(with_timeout(background(), 2ms).ctx.done())), 1u);
}

TEST_F(ContextEnd, CallsFunctionsAfterItsHandlesAreGone) {
  chan<int> called(10);
  after_func(with_timeout(background(), 2ms).ctx, [=] { called.send(1); });
  EXPECT_EQ(called.recv_for(1h), 1);
  auto [parent, cancel] = with_cancel(background());
  after_func(with_cancel(parent).ctx, [=] { called.send(2); });
  const auto stop = after_func(with_timeout(parent, 1h).ctx, [=] { called.send(3); });
  EXPECT_EQ(timers(), 1u);
  EXPECT_TRUE(stop());
  EXPECT_EQ(timers(), 0u) << "nobody would notice the end any more";
  EXPECT_FALSE(stop());
  cancel();
  EXPECT_EQ(called.recv_for(1h), 2);
  EXPECT_FALSE(stop());
}

TEST_F(ContextEnd, StopsATokenAfterItsHandlesAreGone) {
  auto [parent, cancel] = with_cancel(background());
  const std::stop_token token = with_cancel(parent).ctx.stop_token();
  EXPECT_FALSE(token.stop_requested());
  cancel();
  EXPECT_TRUE(token.stop_requested());
}

TEST_F(ContextEnd, WithAStopTokenReachesTheChannelAfterTheHandlesAreGone) {
  std::stop_source source;
  auto [parent, cancel] = with_cancel(background());
  const done_chan alone = with_stop_token(background(), source.get_token()).done();
  const done_chan below = with_stop_token(parent, source.get_token()).done();
  const done_chan child = with_cancel(with_stop_token(background(), source.get_token())).ctx.done();
  EXPECT_FALSE(alone.closed() || below.closed() || child.closed());
  source.request_stop();
  EXPECT_TRUE(alone.closed() && below.closed() && child.closed());
  std::stop_source other;
  const done_chan by_parent = with_stop_token(parent, other.get_token()).done();
  cancel();
  EXPECT_TRUE(by_parent.closed());
}

// ---- What is not kept

// Beside these looks: ASan's leak checker.
TEST_F(ContextEnd, ThatWouldGoUnnoticedStopsItsTimer) {
  auto [parent, cancel] = with_cancel(background());
  for (int i = 0; i < 100; ++i) {
    with_timeout(parent, 1h).ctx.done();
    with_timeout(background(), 1h).ctx.err();
    with_cancel(with_timeout(parent, 1h).ctx).ctx.done();
  }
  EXPECT_EQ(timers(), 0u);
}

TEST_F(ContextEnd, OfAChildLetsAParentGoThatHasNoHandles) {
  auto [top, cancel] = with_cancel(background());
  const done_chan below = with_cancel(with_timeout(top, 1h).ctx).ctx.done();
  EXPECT_EQ(timers(), 1u) << "the channel below would end with the hour";
  cancel();
  EXPECT_TRUE(below.closed());
  const done_chan in_time = with_timeout(with_timeout(background(), 1h).ctx, 2ms).ctx.done();
  EXPECT_TRUE(ends(in_time));
  EXPECT_TRUE(wait_until([] { return timers() == 0; }));
}

TEST_F(ContextEnd, ThatCanNeverComeLeavesNothingBehind) {
  done_chan never;
  {
    auto [parent, unused] = with_cancel(background());
    never = with_cancel(with_value(parent, number, 1)).ctx.done();
    after_func(with_cancel(parent).ctx, [] { ADD_FAILURE(); });
  }
  EXPECT_FALSE(never.closed());
  never = {};
  for (int i = 0; i < 10; ++i) {
    std::stop_source source;
    never = with_stop_token(background(), source.get_token()).done();
  }
  EXPECT_FALSE(never.closed());
}

TEST_F(ContextEnd, RacesWithTheEndOfHandlesAndReachesAll) {
  auto made = with_cancel(background());
  std::atomic<int> called{0};
  std::atomic<int> expected{0};
  wait_group wg;
  for (int i = 0; i < 8; ++i) {
    wg.go([&, i] {
      for (int k = 0; k < scaled(1000); ++k) {
        const auto limit = std::chrono::microseconds((k * 7 + i) % 100);
        const done_chan one = with_timeout(made.ctx, limit).ctx.done();
        auto middle = with_timeout(made.ctx, limit * 2).ctx;
        const auto stop = after_func(with_cancel(middle).ctx, [&] { ++called; });
        middle = {};
        if (k % 4 == 0 && stop()) continue;
        ++expected;
        if (k % 3 == 0 && !ends(one)) ADD_FAILURE();
      }
    });
  }
  wg.go([&] {
    sleep_for(5ms);
    made.cancel();
  });
  wg.wait();
  EXPECT_TRUE(wait_until([&] { return called == expected; }));
  EXPECT_TRUE(wait_until([] { return timers() == 0; }));
}

TEST(AfterFunc, OfAContextThatNeverEndsIsStoppedOnce) {
  for (const context& ctx : {background(), without_cancel(with_cancel(background()).ctx)}) {
    const auto stop = after_func(ctx, [] { ADD_FAILURE(); });
    const auto copy = stop;
    EXPECT_TRUE(stop());
    EXPECT_FALSE(stop());
    EXPECT_FALSE(copy());
  }
}

// The function holds the last handle of its own context.
TEST(AfterFunc, MayHoldTheContext) {
  auto made = std::make_unique<cancellable>(with_timeout(background(), 1h));
  const auto stop = after_func(made->ctx, [ctx = made->ctx] { ADD_FAILURE() << ctx.err(); });
  made.reset();
  EXPECT_TRUE(stop());
  EXPECT_EQ(timers(), 0u);
}

}  // namespace
}  // namespace gofer
