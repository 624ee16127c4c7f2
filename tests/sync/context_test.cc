// Contexts: how they end, what they carry, and that everything which waits with one ends too.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/scaled.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using test::scaled;
using test::wait_until;

constexpr context_key<std::string> user;
constexpr context_key<std::string> place;
constexpr context_key<int> number;

TEST(Context, BackgroundIsNeverDone) {
  const context ctx = background();
  EXPECT_FALSE(ctx.done());
  EXPECT_FALSE(ctx.err());
  EXPECT_EQ(ctx.cause(), nullptr);
  EXPECT_FALSE(ctx.deadline());
  EXPECT_EQ(ctx.value(user), nullptr);
  EXPECT_FALSE(ctx.stop_token().stop_possible());
}

TEST(Context, CancelEndsItAndEverythingBelow) {
  auto [top, cancel_top] = with_cancel(background());
  auto [middle, cancel_middle] = with_cancel(with_value(top, number, 1));
  auto [bottom, cancel_bottom] = with_timeout(middle, 1h);
  auto [sibling, cancel_sibling] = with_cancel(top);
  cancel_middle();
  EXPECT_TRUE(middle.done().closed());
  EXPECT_TRUE(bottom.done().closed());
  EXPECT_EQ(bottom.err(), std::errc::operation_canceled);
  EXPECT_FALSE(top.err());
  EXPECT_FALSE(sibling.err());
  cancel_middle();
  cancel_top();
  EXPECT_TRUE(sibling.err());
  EXPECT_TRUE(with_cancel(top).ctx.err()) << "of a cancelled parent";
  EXPECT_FALSE(with_value(top, number, 2).done().recv());
}

TEST(Context, CauseIsWhatTheFirstCancelSaid) {
  auto [ctx, cancel] = with_cancel(background());
  auto [below, unused] = with_cancel(ctx);
  cancel(std::make_exception_ptr(std::runtime_error("first")));
  cancel(std::make_exception_ptr(std::runtime_error("second")));
  for (const context& c : {ctx, below}) {
    try {
      std::rethrow_exception(c.cause());
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "first");
    }
  }
  auto [plain, cancel_plain] = with_cancel(background());
  cancel_plain();
  EXPECT_THROW(std::rethrow_exception(plain.cause()), std::system_error);
}

TEST(Context, DeadlineEndsItInTime) {
  const auto then = std::chrono::steady_clock::now() + 5ms;
  auto [ctx, cancel] = with_deadline(background(), then);
  EXPECT_EQ(ctx.deadline(), then);
  EXPECT_FALSE(ctx.err());
  EXPECT_FALSE(ctx.done().recv());
  EXPECT_GE(std::chrono::steady_clock::now(), then);
  EXPECT_EQ(ctx.err(), std::errc::timed_out);
}

TEST(Context, DeadlineOfTheParentStaysIfItIsEarlier) {
  auto [parent, cancel] = with_timeout(background(), 2ms);
  auto [child, cancel_child] = with_timeout(parent, 1h);
  EXPECT_EQ(child.deadline(), parent.deadline());
  child.done().recv();
  EXPECT_EQ(child.err(), std::errc::timed_out);
}

TEST(Context, DeadlineInThePastIsDoneAtOnce) {
  for (auto d : {0s, -1s}) {
    const auto before = std::chrono::steady_clock::now();
    auto [ctx, cancel] = with_timeout(background(), d);
    EXPECT_EQ(ctx.err(), std::errc::timed_out);
    EXPECT_GE(ctx.deadline(), before) << "not the beginning of the clock";
    EXPECT_LE(ctx.deadline(), std::chrono::steady_clock::now());
  }
  auto [ctx, cancel] = with_timeout(background(), std::chrono::hours::max());
  EXPECT_FALSE(ctx.err());
  EXPECT_FALSE(ctx.deadline());
}

TEST(Context, CancelBeforeTheDeadlineCountsAsCancel) {
  auto [ctx, cancel] = with_timeout(background(), 1h);
  cancel();
  EXPECT_EQ(ctx.err(), std::errc::operation_canceled);
}

TEST(Context, ValuesAreFoundFromBelowTheNearestFirst) {
  const context a = with_value(background(), user, "a");
  const context b = with_value(with_cancel(a).ctx, place, "b");
  const context c = with_value(b, user, "c");
  EXPECT_EQ(*a.value(user), "a");
  EXPECT_EQ(*b.value(user), "a");
  EXPECT_EQ(*c.value(user), "c");
  EXPECT_EQ(*c.value(place), "b");
  EXPECT_EQ(a.value(place), nullptr);
  EXPECT_EQ(c.value(number), nullptr);
}

TEST(Context, WithoutCancelKeepsTheValuesOnly) {
  auto [parent, cancel] = with_timeout(with_value(background(), user, "x"), 1h);
  const context ctx = without_cancel(parent);
  cancel();
  EXPECT_FALSE(ctx.err());
  EXPECT_FALSE(ctx.deadline());
  EXPECT_EQ(*ctx.value(user), "x");
}

TEST(Context, AfterFuncIsCalledOnceWhenItIsDone) {
  auto [ctx, cancel] = with_cancel(background());
  chan<int> called(10);
  auto stop_first = after_func(ctx, [=] { called.send(1); });
  auto stop_second = after_func(ctx, [=] { called.send(2); });
  EXPECT_TRUE(stop_second());
  EXPECT_FALSE(stop_second());
  cancel();
  cancel();
  EXPECT_EQ(called.recv(), 1);
  EXPECT_FALSE(stop_first());
  auto late = after_func(ctx, [=] { called.send(3); });
  EXPECT_EQ(called.recv(), 3);
  EXPECT_FALSE(late());
  EXPECT_EQ(called.len(), 0u);
  EXPECT_TRUE(after_func(background(), [] { ADD_FAILURE(); })());
}

TEST(Context, GoesToAStopTokenAndBack) {
  auto [ctx, cancel] = with_cancel(background());
  const std::stop_token token = ctx.stop_token();
  EXPECT_TRUE(token.stop_possible());
  EXPECT_FALSE(token.stop_requested());
  cancel();
  EXPECT_TRUE(token.stop_requested());
  EXPECT_TRUE(ctx.stop_token().stop_requested());

  std::stop_source source;
  const context from = with_stop_token(background(), source.get_token());
  EXPECT_FALSE(from.err());
  source.request_stop();
  EXPECT_EQ(from.err(), std::errc::operation_canceled);
  EXPECT_TRUE(with_stop_token(background(), source.get_token()).err());

  std::jthread thread([](std::stop_token t) {
    const context mine = with_stop_token(background(), t);
    EXPECT_FALSE(sleep_for(mine, 1h));
  });
}

// Every call that takes a context: false or empty when it is done, before or while it waits.
void expect_all_end(const context& ctx) {
  chan<int> c(0);
  EXPECT_FALSE(c.recv(ctx));
  EXPECT_FALSE(c.send(ctx, 1));
  mutex m;
  m.lock();
  EXPECT_FALSE(m.lock(ctx));
  rw_mutex rw;
  rw.lock();
  EXPECT_FALSE(rw.lock(ctx));
  EXPECT_FALSE(rw.lock_shared(ctx));
  rw.unlock();
  semaphore s(0);
  EXPECT_FALSE(s.acquire(ctx));
  wait_group wg;
  wg.add(1);
  EXPECT_FALSE(wg.wait(ctx));
  wg.done();
  cond changed;
  {
    std::unique_lock lock(m, std::adopt_lock);
    EXPECT_FALSE(changed.wait(ctx, lock));
    EXPECT_TRUE(lock.owns_lock());
  }
  EXPECT_FALSE(sleep_for(ctx, 1h));
  EXPECT_TRUE(m.try_lock()) << "nothing is left locked";
  EXPECT_TRUE(rw.try_lock());
  EXPECT_TRUE(s.available() == 0);
}

TEST(Context, ThatIsDoneEndsEveryWaitAtOnce) {
  auto [ctx, cancel] = with_cancel(background());
  cancel();
  expect_all_end(ctx);
  wait_group wg;
  wg.go([ctx = ctx] { expect_all_end(ctx); });
  wg.wait();
}

// Nothing of that would have to wait.
void expect_all_refuse(const context& ctx) {
  chan<int> c(2);
  c.send(1);
  EXPECT_FALSE(c.recv(ctx));
  EXPECT_FALSE(c.send(ctx, 1));
  EXPECT_EQ(c.len(), 1u);
  mutex m;
  EXPECT_FALSE(m.lock(ctx));
  EXPECT_TRUE(m.try_lock()) << "nothing was locked";
  rw_mutex rw;
  EXPECT_FALSE(rw.lock(ctx));
  EXPECT_FALSE(rw.lock_shared(ctx));
  EXPECT_TRUE(rw.try_lock());
  semaphore s(5);
  EXPECT_FALSE(s.acquire(ctx));
  EXPECT_FALSE(s.acquire(ctx, 0));
  EXPECT_EQ(s.available(), 5);
  wait_group wg;
  EXPECT_FALSE(wg.wait(ctx));
  latch open(0);
  EXPECT_FALSE(open.wait(ctx));
  auto result = async([] {});
  result.wait();
  EXPECT_FALSE(result.wait(ctx));
  EXPECT_TRUE(result.ready());
  EXPECT_FALSE(sleep_for(ctx, 0s));
  EXPECT_FALSE(sleep_for(ctx, 1ns));
  EXPECT_FALSE(sleep_until(ctx, std::chrono::steady_clock::time_point{}));
  rate_limiter limiter(1, 1);
  EXPECT_FALSE(limiter.wait(ctx));
  EXPECT_TRUE(limiter.allow());
  cond changed;
  struct Watched {
    int unlocked = 0;
    void lock() {}
    void unlock() { ++unlocked; }
  } lock;
  EXPECT_FALSE(changed.wait(ctx, lock));
  EXPECT_EQ(lock.unlocked, 0);
}

TEST(Context, ThatIsDoneRefusesWhatWouldNotHaveToWait) {
  auto [ctx, cancel] = with_cancel(background());
  cancel();
  expect_all_refuse(ctx);
  wait_group wg;
  wg.go([ctx = ctx] { expect_all_refuse(ctx); });
  wg.wait();
}

TEST(Context, EndsWaitsThatHaveBegun) {
  for (int round = 0; round < scaled(100) + 1; ++round) {
    const cancellable made_ctx = with_timeout(background(), std::chrono::microseconds(round * 3));
    const context& ctx = made_ctx.ctx;
    chan<int> c(0);
    mutex m;
    rw_mutex rw;
    cond changed;
    mutex cond_mutex;
    semaphore s(0);
    wait_group never;
    wait_group wg;
    m.lock();
    rw.lock();
    never.add(1);
    wg.go([&] { EXPECT_FALSE(c.recv(ctx)); });
    wg.go([&] { EXPECT_FALSE(m.lock(ctx)); });
    wg.go([&] { EXPECT_FALSE(rw.lock(ctx)); });
    wg.go([&] { EXPECT_FALSE(rw.lock_shared(ctx)); });
    wg.go([&] { EXPECT_FALSE(s.acquire(ctx)); });
    wg.go([&] { EXPECT_FALSE(never.wait(ctx)); });
    wg.go([&] { EXPECT_FALSE(sleep_for(ctx, 1h)); });
    wg.go([&] {
      std::unique_lock lock(cond_mutex);
      EXPECT_FALSE(changed.wait(ctx, lock));
    });
    std::thread thread([&] { EXPECT_FALSE(s.acquire(ctx)); });
    wg.wait();
    thread.join();
    m.unlock();
    rw.unlock();
    never.done();
  }
}

TEST(Context, CancelRacesWithWhatIsWaitedForAndNothingIsLost) {
  for (int round = 0; round < scaled(3000); ++round) {
    const cancellable made_ctx = with_cancel(background());
    const context& ctx = made_ctx.ctx;
    const cancel_func& cancel = made_ctx.cancel;
    semaphore s(0);
    mutex m;
    m.lock();
    bool got_permit = false;
    bool got_lock = false;
    wait_group wg;
    wg.go([&] { got_permit = s.acquire(ctx); });
    wg.go([&] { got_lock = m.lock(ctx); });
    wg.go([&] { cancel(); });
    wg.go([&] { s.release(); });
    wg.go([&] { m.unlock(); });
    wg.wait();
    ASSERT_EQ(s.available(), got_permit ? 0 : 1);
    ASSERT_EQ(m.try_lock(), !got_lock);
  }
}

TEST(Context, TreeOfAThousandEndsFromTheTopWhileBranchesAreCut) {
  for (int round = 0; round < 5; ++round) {
    auto [root, cancel_root] = with_cancel(background());
    std::vector<cancellable> nodes{{root, cancel_root}};
    const std::size_t n = static_cast<std::size_t>(scaled(1000));
    for (std::size_t i = 1; i < n; ++i) nodes.push_back(with_cancel(nodes[(i - 1) / 3].ctx));
    wait_group wg;
    for (auto& node : nodes) {
      wg.go([&node] { EXPECT_FALSE(node.ctx.done().recv()); });
    }
    for (std::size_t i = 1; i < n; i += 7) wg.go([&nodes, i] { nodes[i].cancel(); });
    wg.go([&] { nodes[0].cancel(); });
    wg.wait();
    for (auto& node : nodes) ASSERT_TRUE(node.ctx.err());
  }
}

TEST(Context, ThatIsDroppedLeavesNothingBehind) {
  auto token = std::make_shared<int>(0);
  constexpr static context_key<std::shared_ptr<int>> key;
  auto [parent, cancel] = with_cancel(background());
  for (int i = 0; i < 100; ++i) {
    auto [child, unused] = with_timeout(with_value(parent, key, token), 1h);
    EXPECT_EQ(*child.value(key), token);
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST(Context, MayBeMadeDroppedAndCancelledByManyAtOnce) {
  const cancellable made_parent = with_cancel(background());
  const context& parent = made_parent.ctx;
  const cancel_func& cancel = made_parent.cancel;
  wait_group wg;
  for (int i = 0; i < 8; ++i) {
    wg.go([&] {
      for (int k = 0; k < scaled(2000); ++k) {
        const cancellable made_child = with_timeout(parent, std::chrono::microseconds(k % 100));
        const context& child = made_child.ctx;
        const cancel_func& cancel_child = made_child.cancel;
        if (k % 3 == 0) cancel_child();
        if (k % 5 == 0) child.done().recv();
      }
    });
  }
  wg.go([&] {
    sleep_for(5ms);
    cancel();
  });
  wg.wait();
}

}  // namespace
}  // namespace gofer
