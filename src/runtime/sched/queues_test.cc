// gofer-test: once
// The moves between runnext, a P's ring and the global queue, on a P of the test's own: the runtime
// is not started, so the scheduler's state is the test's, too.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "os/thread.h"
#include "runtime/process/process_state.h"
#include "runtime/process/settings.h"
#include "runtime/procs/current.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/thread_gate.h"
#include "runtime/sched/global_queue.h"
#include "runtime/sched/queues.h"
#include "support/one_core.h"

namespace gofer::internal {
namespace {

class Queues : public testing::Test {
 protected:
  Queues() : gs_(std::make_unique<G[]>(max_gs)), p_(std::make_unique<P>()) {
    for (size_t i = 0; i < max_gs; ++i) gs_[i].id = i;
  }

  void SetUp() override {
    ASSERT_FALSE(process.started.load());
    p_table.in_use.store(1);
    settings.gm = false;
  }

  void TearDown() override {
    for (GQueue* queue : {&global_queue.ordinary, &global_queue.urgent, &global_queue.untried,
                          &global_queue.tied}) {
      while (queue->pop_front() != nullptr) {
      }
    }
    global_queue.size.store(0);
    global_queue.urgent_size.store(0);
    global_queue.untried_size.store(0);
    thread_gate.tied.store(0);
    global_queue.turns = 0;
    global_queue.untrieds_turn = false;
    global_queue.urgent_since_ns = 0;
    p_table.in_use.store(0);
    settings.gm = false;
  }

  G* g(size_t i) { return &gs_[i]; }

  void fill_global(size_t n) {
    for (size_t i = 0; i < n; ++i) put_global(g(i));
  }

  void put_urgent(G* g) {
    LockGuard guard(sched_lock);
    g->status.store(GStatus::waiting);
    GQueue one;
    one.push_back(g);
    put_global_locked(nullptr, one, true);
  }

  // The urgent have been preferred for as long as they may be.
  void urgent_for_long() {
    LockGuard guard(sched_lock);
    global_queue.urgent_since_ns = os::now_ns() - 1'000'000'000;
  }

  G* take(uint32_t max) {
    LockGuard guard(sched_lock);
    return take_global(p_.get(), max);
  }

  std::vector<size_t> drain_ring() {
    std::vector<size_t> ids;
    while (G* next = p_->queue.get()) ids.push_back(next->id);
    return ids;
  }

  std::vector<size_t> drain_global() {
    std::vector<size_t> ids;
    while (G* next = global_queue.ordinary.pop_front()) ids.push_back(next->id);
    while (G* next = global_queue.tied.pop_front()) ids.push_back(next->id);
    global_queue.size.store(0);
    return ids;
  }

  static std::vector<size_t> range(size_t from, size_t to) {
    std::vector<size_t> ids;
    for (size_t i = from; i < to; ++i) ids.push_back(i);
    return ids;
  }

  static constexpr size_t max_gs = 2000;
  std::unique_ptr<G[]> gs_;
  std::unique_ptr<P> p_;
};

TEST_F(Queues, NextKicksTheOneBeforeToTheTail) {
  for (size_t i = 0; i < 5; ++i) put_local(p_.get(), g(i), true);
  bool inherits = false;
  EXPECT_EQ(take_local(p_.get(), inherits), g(4));
  EXPECT_TRUE(inherits);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(take_local(p_.get(), inherits), g(i));
    EXPECT_FALSE(inherits);
  }
  EXPECT_EQ(take_local(p_.get(), inherits), nullptr);
}

TEST_F(Queues, TailLeavesRunnextAlone) {
  put_local(p_.get(), g(0), true);
  put_local(p_.get(), g(1), false);
  put_local(p_.get(), g(2), false);
  bool inherits = false;
  EXPECT_EQ(take_local(p_.get(), inherits), g(0));
  EXPECT_EQ(drain_ring(), range(1, 3));
}

TEST_F(Queues, OverflowMovesExactlyHalfAndTheNewcomer) {
  for (size_t i = 0; i < 256; ++i) put_local(p_.get(), g(i), false);
  EXPECT_EQ(global_queue.ordinary.count(), 0u);
  put_local(p_.get(), g(256), false);
  EXPECT_EQ(global_queue.ordinary.count(), 129u);
  EXPECT_EQ(global_queue.size.load(), 129u);
  EXPECT_EQ(p_->queue.size(), 128u);
  auto expected = range(0, 128);
  expected.push_back(256);
  EXPECT_EQ(drain_global(), expected);
  EXPECT_EQ(drain_ring(), range(128, 256));
}

TEST_F(Queues, OverflowThroughRunnextMovesTheOneThatWasKickedOut) {
  for (size_t i = 0; i < 257; ++i) put_local(p_.get(), g(i), true);  // ring 0..255, next 256
  EXPECT_EQ(global_queue.ordinary.count(), 0u);
  EXPECT_EQ(p_->queue.size(), 256u);
  put_local(p_.get(), g(257), true);
  auto expected = range(0, 128);
  expected.push_back(256);
  EXPECT_EQ(drain_global(), expected);
  EXPECT_EQ(p_->queue.take_next(), g(257));
  EXPECT_EQ(drain_ring(), range(128, 256));
}

TEST_F(Queues, OverflowAppendsToWhatIsThere) {
  put_global(g(1000));
  for (size_t i = 0; i < 257; ++i) put_local(p_.get(), g(i), false);
  EXPECT_EQ(global_queue.size.load(), 130u);
  const auto ids = drain_global();
  EXPECT_EQ(ids.front(), 1000u);
  EXPECT_EQ(ids.back(), 256u);
}

TEST_F(Queues, BatchIsAFairShareOfTheGlobalQueueAndAtMostHalfARing) {
  for (const int procs : {1, 2, 3, 7, 8, 16, 64, 4096}) {
    p_table.in_use.store(procs);
    for (const size_t length : {0u,   1u,   2u,   3u,   7u,   8u,   9u,   63u,  64u,   126u,
                                127u, 128u, 129u, 253u, 254u, 255u, 256u, 257u, 1000u, 1999u}) {
      fill_global(length);
      G* first = take(0);
      const size_t share = length / static_cast<size_t>(procs) + 1;
      const size_t n = std::min({share, length, size_t{128}});
      if (length == 0) {
        ASSERT_EQ(first, nullptr);
        ASSERT_EQ(p_->queue.size(), 0u);
        continue;
      }
      ASSERT_EQ(first, g(0)) << length << " at " << procs;
      ASSERT_EQ(global_queue.size.load(), length - n) << length << " at " << procs;
      ASSERT_EQ(drain_ring(), range(1, n)) << length << " at " << procs;
      ASSERT_EQ(drain_global(), range(n, length)) << length << " at " << procs;
    }
  }
}

TEST_F(Queues, BatchObeysALimit) {
  fill_global(100);
  EXPECT_EQ(take(1), g(0));
  EXPECT_EQ(p_->queue.size(), 0u);
  EXPECT_EQ(take(3), g(1));
  EXPECT_EQ(drain_ring(), range(2, 4));
  EXPECT_EQ(global_queue.size.load(), 96u);
}

TEST_F(Queues, FrontOfTheGlobalQueueComesFirst) {
  fill_global(3);
  put_global_front(g(10));
  EXPECT_EQ(global_queue.size.load(), 4u);
  EXPECT_EQ(drain_global(), (std::vector<size_t>{10, 0, 1, 2}));
  put_global_front(g(11));
  put_global(g(12));
  EXPECT_EQ(drain_global(), (std::vector<size_t>{11, 12}));
}

TEST_F(Queues, DrainGivesRunnextThenTheRing) {
  put_global(g(100));
  for (size_t i = 0; i < 4; ++i) put_local(p_.get(), g(i), true);
  {
    LockGuard guard(sched_lock);
    drain_local_locked(p_.get());
  }
  EXPECT_TRUE(p_->queue.empty());
  EXPECT_EQ(global_queue.size.load(), 5u);
  EXPECT_EQ(drain_global(), (std::vector<size_t>{100, 3, 0, 1, 2}));
}

TEST_F(Queues, ModelGmKeepsEverythingInTheGlobalQueue) {
  settings.gm = true;
  for (size_t i = 0; i < 10; ++i) put_local(p_.get(), g(i), i % 2 == 0);
  EXPECT_TRUE(p_->queue.empty());
  EXPECT_EQ(global_queue.size.load(), 10u);
  EXPECT_EQ(take(0), g(0));
  EXPECT_TRUE(p_->queue.empty());
  EXPECT_EQ(drain_global(), range(1, 10));
}

TEST_F(Queues, AppendJoinsListsAndEmptiesTheOther) {
  GQueue a;
  GQueue b;
  a.append(b);
  EXPECT_EQ(a.count(), 0u);
  EXPECT_EQ(a.front(), nullptr);
  b.push_back(g(1));
  b.push_back(g(2));
  a.append(b);
  EXPECT_EQ(a.count(), 2u);
  EXPECT_EQ(b.count(), 0u);
  EXPECT_EQ(b.pop_front(), nullptr);
  b.push_back(g(3));
  a.append(b);
  a.push_back(g(4));
  for (size_t i = 1; i <= 4; ++i) EXPECT_EQ(a.pop_front(), g(i));
  EXPECT_EQ(a.pop_front(), nullptr);
  EXPECT_EQ(a.count(), 0u);
  a.push_front(g(5));
  a.push_back(g(6));
  EXPECT_EQ(a.pop_front(), g(5));
  EXPECT_EQ(a.pop_front(), g(6));
}

// ---------------------------------------------------------------- the urgent

TEST_F(Queues, UrgentOnesGoFirst) {
  fill_global(3);
  put_urgent(g(10));
  put_urgent(g(11));
  EXPECT_EQ(take(1), g(10));
  EXPECT_EQ(take(1), g(11));
  EXPECT_EQ(take(1), g(0));
}

TEST_F(Queues, OthersGetATurnAfterSomeTimeOfUrgentOnes) {
  fill_global(3);
  put_urgent(g(10));
  put_urgent(g(11));
  urgent_for_long();
  EXPECT_EQ(take(1), g(0));
  EXPECT_EQ(take(1), g(10)) << "one turn, and then as before";
  urgent_for_long();
  EXPECT_EQ(take(1), g(1));
  EXPECT_EQ(take(1), g(11));
}

TEST_F(Queues, AmongUrgentOnesTheShortGoFirst) {
  StackHead head;
  head.short_runs = enough_short_runs;
  put_urgent(g(10));
  g(11)->head = &head;
  put_urgent(g(11));
  EXPECT_EQ(take(1), g(11));
  EXPECT_EQ(take(1), g(10));
}

TEST_F(Queues, OthersGetTheirTurnsAfterSomeTimeOfShortUrgentOnes) {
  StackHead heads[4];
  fill_global(2);
  for (size_t i = 0; i < 4; ++i) {
    heads[i].short_runs = most_short_runs;
    g(20 + i)->head = &heads[i];
    put_urgent(g(20 + i));
  }
  put_urgent(g(10));
  put_urgent(g(11));
  urgent_for_long();
  EXPECT_EQ(take(1), g(0));
  urgent_for_long();
  EXPECT_EQ(take(1), g(10)) << "the untried and the ordinary ones by turns";
  urgent_for_long();
  EXPECT_EQ(take(1), g(1));
  EXPECT_EQ(take(1), g(20));
}

// Goroutines whose threads are paused, each on some core; the test is on `here`.
class Tied : public Queues {
 protected:
  static constexpr int procs = 2;

  void SetUp() override {
    Queues::SetUp();
    p_table.in_use.store(procs);
    global_queue.passes_left = procs;
  }

  void TearDown() override {
    global_queue.passes_left = 0;
    Queues::TearDown();
  }

  int here() const { return core_.here(); }
  int elsewhere() const { return core_.elsewhere(); }

  G* pause_on(int cpu) {
    G* g = this->g(paused_.size());
    paused_.push_back(std::make_unique<Paused>());
    Paused& paused = *paused_.back();
    g->head = &paused.head;
    paused.head.tied = true;
    paused.head.own_m = &paused.m;
    paused.m.last_cpu = cpu;
    return g;
  }
  void put(G* g, bool front) {
    LockGuard guard(sched_lock);
    put_tied_locked(g, front);
  }
  G* put_paused_on(int cpu) {
    G* g = pause_on(cpu);
    put(g, false);
    return g;
  }
  void crowd() { thread_gate.tied.store(thread_gate.tied_room.load()); }

  G* take_tied() {
    LockGuard guard(sched_lock);
    return take_tied_locked();
  }

 private:
  struct Paused {
    StackHead head;
    M m;
  };
  std::vector<std::unique_ptr<Paused>> paused_;
  test::OneCore core_;
};

TEST_F(Tied, FirstComesFirst) {
  G* a = put_paused_on(elsewhere());
  G* b = put_paused_on(elsewhere());
  EXPECT_EQ(take_tied(), a);
  EXPECT_EQ(take_tied(), b);
  EXPECT_EQ(take_tied(), nullptr);
}

TEST_F(Tied, WhoWasPausedOnThisCoreComesBefore) {
  G* a = put_paused_on(elsewhere());
  G* b = put_paused_on(here());
  EXPECT_EQ(take_tied(), b);
  EXPECT_EQ(take_tied(), a);
}

TEST_F(Tied, OthersInTheQueueStayWhereTheyAre) {
  G* other = g(50);
  put_global(other);
  put_paused_on(elsewhere());
  G* b = put_paused_on(here());
  EXPECT_EQ(take_tied(), b);
  EXPECT_EQ(drain_global(), (std::vector<size_t>{50, 0}));
}

// A goroutine that is paused is in the queue already when its M passes the P on.
TEST_F(Tied, TheCallerDoesNotChooseHimself) {
  G* a = put_paused_on(elsewhere());
  G* own = put_paused_on(here());
  gofer_current_m = own->head->own_m;
  G* chosen = take_tied();
  gofer_current_m = nullptr;
  EXPECT_EQ(chosen, a);
}

TEST_F(Tied, NobodyComesFromFarBehind) {
  G* a = put_paused_on(elsewhere());
  for (int i = 1; i < procs; ++i) put_paused_on(elsewhere());
  put_paused_on(here());
  EXPECT_EQ(take_tied(), a);
}

TEST_F(Tied, TheFirstIsPassedOverSoOftenAndNoMore) {
  G* a = put_paused_on(elsewhere());
  for (int i = 0; i < procs; ++i) {
    G* b = put_paused_on(here());
    EXPECT_EQ(take_tied(), b);
  }
  G* b = put_paused_on(here());
  EXPECT_EQ(take_tied(), a);
  put_paused_on(elsewhere());
  EXPECT_EQ(take_tied(), b);
}

TEST_F(Tied, WhoWasPutInFrontIsNotPassedOver) {
  put_paused_on(here());
  G* a = pause_on(elsewhere());
  put(a, true);
  EXPECT_EQ(take_tied(), a);
}

TEST_F(Tied, TheyComeInTurnWithTheOthers) {
  put_global(g(50));
  G* a = put_paused_on(elsewhere());
  put_global(g(51));
  EXPECT_EQ(take(1), g(50));
  EXPECT_EQ(take(1), a);
  EXPECT_EQ(take(1), g(51));
}

// A paused goroutine may be taken by an M that passes a P straight on to its thread. That was its
// turn: else all that pass a P on would go on like that, and no urgent one would ever run.
TEST_F(Tied, ATurnIsOverHoweverItWasTaken) {
  G* a = put_paused_on(elsewhere());
  G* b = put_paused_on(elsewhere());
  put_urgent(g(10));
  urgent_for_long();
  LockGuard guard(sched_lock);
  EXPECT_EQ(next_global_locked(), a);
  EXPECT_EQ(take_tied_if([](G* g, void* b) { return g == b; }, b), b);
  EXPECT_EQ(next_global_locked(), g(10));
}

TEST_F(Tied, WhileTheyCrowdTheQueueGivesFreshOnes) {
  G* a = put_paused_on(elsewhere());
  put_global(g(50));
  crowd();
  EXPECT_EQ(take(1), g(50));
  EXPECT_EQ(take(1), a) << "there is nobody else";
}

TEST_F(Tied, WhileTheyCrowdAndOthersAreUrgentTheirTurnIsNotAFreshOnes) {
  G* a = put_paused_on(elsewhere());
  put_global(g(50));
  put_urgent(g(10));
  crowd();
  urgent_for_long();
  EXPECT_EQ(take(1), a);
  EXPECT_EQ(take(1), g(10));
}

TEST_F(Tied, WhileTheyCrowdEveryOtherTurnIsTheOldestsOne) {
  G* a = put_paused_on(elsewhere());
  G* b = put_paused_on(elsewhere());
  G* c = put_paused_on(elsewhere());
  G* d = put_paused_on(elsewhere());
  c->id = 0;
  d->id = 1;
  a->id = 2;
  b->id = 3;
  crowd();
  EXPECT_EQ(take_tied(), c) << "the oldest";
  EXPECT_EQ(take_tied(), a) << "the first";
  EXPECT_EQ(take_tied(), d);
  EXPECT_EQ(take_tied(), b);
  for (size_t i = 0; i < 4; ++i) g(i)->id = i;
}

TEST_F(Tied, WhileTheyCrowdUntriedOnesWaitForAPlace) {
  G* a = put_paused_on(elsewhere());
  put_urgent(g(10));
  crowd();
  EXPECT_TRUE(urgent_waits());
  thread_gate.tied.fetch_add(places_for_untried());
  EXPECT_FALSE(urgent_waits());
  LockGuard guard(sched_lock);
  EXPECT_EQ(take_tied_locked(), a);
}

}  // namespace
}  // namespace gofer::internal
