// The scheduler's rules as a running program shows them: order, time slices, overflow, the 61st
// tick.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "runtime/procs/p_table.h"
#include "runtime/sched/global_queue.h"
#include "support/event.h"
#include "support/model_gm.h"
#include "support/procs.h"
#include "support/scheduler_state.h"
#include "support/unpaused.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using internal::global_queue;
using internal::P;
using internal::p_table;
using test::Event;
using test::expect_quiet;
using test::model_gm;
using test::my_p;
using test::Procs;
using test::put_off_look;
using test::unpaused;
using test::wait_until;

P* first_p() { return p_table.all[0].load(); }

TEST(Scheduler, GoroutineStartedLastRunsFirstAndTheOthersInOrder) {
  Procs one(1);
  std::vector<int> order;
  run(unpaused([&] {
    put_off_look();
    wait_group done;
    for (int i = 0; i < 6; ++i) done.go(unpaused([&order, i] { order.push_back(i); }));
    done.wait();
  }));
  const auto expected =
      model_gm() ? std::vector<int>{0, 1, 2, 3, 4, 5} : std::vector<int>{5, 0, 1, 2, 3, 4};
  EXPECT_EQ(order, expected);
}

TEST(Scheduler, YieldLetsEveryOtherOfTheQueueRunOnce) {
  Procs one(1);
  std::vector<int> order;
  run(unpaused([&] {
    put_off_look();
    wait_group done;
    for (int i = 0; i < 3; ++i) {
      done.go(unpaused([&order, i] {
        for (int k = 0; k < 3; ++k) {
          order.push_back(i);
          yield();
        }
      }));
    }
    done.wait();
  }));
  const auto expected = model_gm() ? std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1, 2}
                                   : std::vector<int>{2, 0, 1, 2, 0, 1, 2, 0, 1};
  EXPECT_EQ(order, expected);
}

TEST(Scheduler, ReadiedGoroutineRunsNext) {
  if (model_gm()) GTEST_SKIP() << "no runnext";
  Procs one(1);
  std::vector<char> order;
  run(unpaused([&] {
    Event event;
    wait_group done;
    done.go(unpaused([&] {
      event.wait();
      order.push_back('r');
    }));
    while (!event.has_waiter()) yield();
    put_off_look();
    done.go(unpaused([&] { order.push_back('a'); }));
    done.go(unpaused([&] { order.push_back('b'); }));
    event.set();
    done.wait();
  }));
  EXPECT_EQ(order, (std::vector<char>{'r', 'a', 'b'}));
}

TEST(TimeSlice, IsInheritedThroughRunnext) {
  if (model_gm()) GTEST_SKIP() << "no runnext";
  Procs one(1);
  uint32_t ticks = 0;
  uint64_t switches = 0;
  run(unpaused([&] {
    yield();
    P* p = my_p();
    const uint32_t ticks_before = p->schedtick.load();
    const uint64_t switches_before = p->switches.load();
    for (int i = 0; i < 200; ++i) {
      wait_group done;
      done.go(unpaused([] {}));  // runs next, and makes the waiter the next to run
      done.wait();
    }
    ticks = p->schedtick.load() - ticks_before;
    switches = p->switches.load() - switches_before;
  }));
  EXPECT_EQ(ticks, 0u);
  EXPECT_EQ(switches, 400u);
}

TEST(TimeSlice, BeginsAnewThroughTheQueue) {
  if (model_gm()) GTEST_SKIP() << "no runnext";
  Procs one(1);
  uint32_t ticks = 0;
  run(unpaused([&] {
    put_off_look();
    P* p = my_p();
    const uint32_t before = p->schedtick.load();
    wait_group done;
    for (int i = 0; i < 10; ++i) done.go(unpaused([] {}));
    done.wait();
    ticks = p->schedtick.load() - before;
  }));
  EXPECT_EQ(ticks, 9u);  // the first came through runnext, and so did the waiter
}

TEST(TimeSlice, BeginsAnewAfterAYield) {
  Procs one(1);
  uint32_t ticks = 0;
  run(unpaused([&] {
    P* p = my_p();
    wait_group done;
    std::atomic<bool> stop{false};
    done.go(unpaused([&] {
      while (!stop) yield();
    }));
    yield();
    yield();
    const uint32_t before = p->schedtick.load();
    for (int i = 0; i < 50; ++i) yield();
    ticks = p->schedtick.load() - before;
    stop = true;
    done.wait();
  }));
  EXPECT_EQ(ticks, 100u);
}

TEST(Overflow, MovesHalfOfTheQueueAndTheNewcomerToTheGlobalQueue) {
  if (model_gm()) GTEST_SKIP() << "no local queue";
  Procs one(1);
  size_t before = 1;
  size_t after = 0;
  uint32_t size_before = 1;
  uint32_t size_after = 0;
  uint32_t local_before = 0;
  uint32_t local_after = 0;
  std::vector<int> order;
  run(unpaused([&] {
    put_off_look();
    wait_group done;
    // The 257th fills the ring (and runnext); the 258th sends the 257th there, and finds it full.
    for (int i = 0; i < 257; ++i) done.go(unpaused([&order, i] { order.push_back(i); }));
    before = stats().global_queue;
    size_before = global_queue.size.load();
    local_before = stats().procs[0].queued;
    done.go(unpaused([&order] { order.push_back(257); }));
    after = stats().global_queue;
    size_after = global_queue.size.load();
    local_after = stats().procs[0].queued;
    done.wait();
  }));
  EXPECT_EQ(before, 0u);
  EXPECT_EQ(size_before, 0u);
  EXPECT_EQ(local_before, 257u);
  EXPECT_EQ(after, 129u);
  EXPECT_EQ(size_after, 129u);
  EXPECT_EQ(local_after, 129u);
  ASSERT_EQ(order.size(), 258u);
  EXPECT_EQ(order[0], 257);
  EXPECT_EQ(order[1], 128);  // the oldest of those that stayed
  std::vector<int> sorted(258, 0);
  for (const int i : order) ++sorted[static_cast<size_t>(i)];
  EXPECT_EQ(sorted, std::vector<int>(258, 1));
}

TEST(Overflow, LosesNoneOfMany) {
  constexpr int n = 20'000;
  std::vector<std::atomic<int>> ran(n);
  run([&] {
    wait_group done;
    for (int i = 0; i < n; ++i) {
      done.go([&ran, i] { ran[static_cast<size_t>(i)].fetch_add(1, std::memory_order_relaxed); });
    }
    done.wait();
  });
  int wrong = 0;
  for (auto& count : ran) wrong += count != 1;
  EXPECT_EQ(wrong, 0);
}

// A goroutine in the global queue, beside load that would keep the P busy for ever: how many
// switches pass from its being seen there to its run. The load calls see() at every switch.
class Stranger {
 public:
  void start() {
    coming_ = true;  // from now on the global queue has no other goroutine: the load is unpaused
    go(unpaused([this] {
      ran_at_ = first_p()->switches.load();
      ran_ = true;
    }));
  }
  void see() {
    if (coming_ && seen_at_ == 0 && global_queue.size.load() != 0)
      seen_at_ = first_p()->switches.load();
  }
  bool ran() const { return ran_; }
  uint64_t switches() const { return seen_at_ == 0 ? 0 : ran_at_ - seen_at_; }

 private:
  std::atomic<bool> coming_{false};
  std::atomic<bool> ran_{false};
  std::atomic<uint64_t> seen_at_{0};
  std::atomic<uint64_t> ran_at_{0};
};

TEST(GlobalQueue, IsLookedAtWithin61SwitchesWhileOthersYield) {
  if (model_gm()) GTEST_SKIP() << "everything is in the global queue";
  Procs one(1);
  for (int round = 0; round < 20; ++round) {
    Stranger stranger;
    std::atomic<int> running{0};
    wait_group load;
    for (int i = 0; i < 2; ++i) {
      load.go(unpaused([&] {
        running.fetch_add(1);
        for (uint64_t turns = 0; !stranger.ran() && turns < 100'000'000; ++turns) {
          stranger.see();
          yield();
        }
      }));
    }
    ASSERT_TRUE(wait_until([&] { return running == 2; }));
    stranger.start();
    load.wait();
    ASSERT_TRUE(stranger.ran());
    EXPECT_LE(stranger.switches(), 2u * 61);
  }
  expect_quiet();
}

// Two goroutines that wake each other until told to stop; each is always the next to run.
class Pair {
 public:
  template <class AtEachTurn>
  void start(wait_group& group, AtEachTurn at_each_turn) {
    group.go(unpaused([this, at_each_turn] {
      while (!stop_) {
        at_each_turn();
        b_.set();
        a_.wait();
      }
      b_.set();
    }));
    group.go(unpaused([this] {
      for (;;) {
        b_.wait();
        turns_.fetch_add(1);
        a_.set();
        if (stop_) return;
      }
    }));
  }
  void stop() { stop_ = true; }
  uint64_t turns() const { return turns_; }

 private:
  Event a_;
  Event b_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> turns_{0};
};

TEST(GlobalQueue, IsLookedAtWithin61SwitchesWhileOthersWakeEachOther) {
  if (model_gm()) GTEST_SKIP() << "everything is in the global queue";
  Procs one(1);
  for (int round = 0; round < 20; ++round) {
    Stranger stranger;
    Pair pair;
    wait_group load;
    pair.start(load, [&stranger] { stranger.see(); });
    ASSERT_TRUE(wait_until([&] { return pair.turns() > 10; }));
    stranger.start();
    EXPECT_TRUE(wait_until([&] { return stranger.ran(); }));
    pair.stop();
    load.wait();
    EXPECT_LE(stranger.switches(), 2u * 61);
  }
  expect_quiet();
}

TEST(LocalQueue, IsNotStarvedByTwoThatWakeEachOther) {
  if (model_gm()) GTEST_SKIP() << "no local queue";
  Procs one(1);
  Pair pair;
  wait_group load;
  std::atomic<bool> asked{false};
  std::atomic<bool> ran{false};
  uint64_t started_at = 0;
  uint64_t ran_at = 0;
  pair.start(load, [&] {
    if (!asked) return;
    asked = false;
    started_at = first_p()->switches.load();
    // Goes to the tail as soon as the partner is readied.
    go(unpaused([&] {
      ran_at = first_p()->switches.load();
      ran = true;
    }));
  });
  ASSERT_TRUE(wait_until([&] { return pair.turns() > 10; }));
  asked = true;
  EXPECT_TRUE(wait_until([&] { return ran.load(); }));
  pair.stop();
  load.wait();
  EXPECT_LE(ran_at - started_at, 3u * 61);
  expect_quiet();
}

}  // namespace
}  // namespace gofer
