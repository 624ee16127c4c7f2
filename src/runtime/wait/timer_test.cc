// gofer-test: once
// The heap of timers: order, removal in the middle, what is claimed and what is not, growth.
#include "runtime/wait/timer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "runtime/base/sanitizer.h"

namespace gofer::internal {
namespace {

bool claimed(Timer*) { return true; }
bool refused(Timer*) { return false; }

void prepare(Timer& t, int64_t when_ns, bool (*claim)(Timer*) = claimed) {
  t.when_ns = when_ns;
  t.claim = claim;
}

std::vector<Timer*> listed(Timer* t) {
  std::vector<Timer*> all;
  for (; t != nullptr; t = t->next) all.push_back(t);
  return all;
}

// The times of what is due, in the order in which it is taken.
std::vector<int64_t> due(TimerHeap& heap, int64_t now) {
  std::vector<int64_t> times;
  for (const Timer* t : listed(heap.take_due(now))) times.push_back(t->when_ns);
  return times;
}

TEST(TimerHeap, EmptyHasNothing) {
  TimerHeap heap;
  EXPECT_EQ(heap.count(), 0u);
  EXPECT_EQ(heap.next_ns(), no_timer);
  EXPECT_EQ(heap.take_due(no_timer), nullptr);
  Timer t;
  EXPECT_FALSE(heap.remove(&t));
  EXPECT_FALSE(stop_timer(&t));
}

TEST(TimerHeap, GivesWhatIsDueOldestFirst) {
  std::mt19937 random(1);
  for (std::size_t n = 1; n < 100; ++n) {
    TimerHeap heap;
    std::vector<Timer> timers(n);
    std::vector<int64_t> times;
    for (Timer& t : timers) {
      prepare(t, static_cast<int64_t>(random() % 50));
      times.push_back(t.when_ns);
      ASSERT_TRUE(heap.add(&t));
      ASSERT_EQ(heap.next_ns(), *std::min_element(times.begin(), times.end()));
    }
    ASSERT_EQ(heap.count(), n);
    std::sort(times.begin(), times.end());
    const auto half = std::upper_bound(times.begin(), times.end(), 24);
    ASSERT_EQ(due(heap, 24), std::vector<int64_t>(times.begin(), half));
    ASSERT_EQ(heap.next_ns(), half == times.end() ? no_timer : *half);
    ASSERT_EQ(due(heap, 24), std::vector<int64_t>());
    ASSERT_EQ(due(heap, 1000), std::vector<int64_t>(half, times.end()));
    ASSERT_EQ(heap.count(), 0u);
    ASSERT_EQ(heap.next_ns(), no_timer);
    for (Timer& t : timers) {
      ASSERT_EQ(t.heap.load(), nullptr);
      ASSERT_FALSE(heap.remove(&t));
    }
  }
}

TEST(TimerHeap, TimeItselfIsDue) {
  TimerHeap heap;
  std::array<Timer, 3> timers;
  prepare(timers[0], 100);
  prepare(timers[1], 0);
  prepare(timers[2], -5);
  for (Timer& t : timers) ASSERT_TRUE(heap.add(&t));
  EXPECT_EQ(due(heap, -6), std::vector<int64_t>());
  EXPECT_EQ(due(heap, -5), std::vector<int64_t>({-5}));
  EXPECT_EQ(due(heap, 99), std::vector<int64_t>({0}));
  EXPECT_EQ(due(heap, 100), std::vector<int64_t>({100}));
}

TEST(TimerHeap, EveryPlaceCanBeTakenOut) {
  for (const bool rising : {true, false}) {
    for (std::size_t victim = 0; victim < 40; ++victim) {
      TimerHeap heap;
      std::array<Timer, 40> timers;
      for (std::size_t i = 0; i < timers.size(); ++i) {
        prepare(timers[i], static_cast<int64_t>(rising ? i : timers.size() - i));
        ASSERT_TRUE(heap.add(&timers[i]));
      }
      ASSERT_TRUE(stop_timer(&timers[victim]));
      ASSERT_FALSE(stop_timer(&timers[victim]));
      ASSERT_EQ(heap.count(), timers.size() - 1);
      const std::vector<int64_t> times = due(heap, 1000);
      ASSERT_EQ(times.size(), timers.size() - 1);
      ASSERT_TRUE(std::is_sorted(times.begin(), times.end()));
      ASSERT_EQ(std::count(times.begin(), times.end(), timers[victim].when_ns), 0);
    }
  }
}

TEST(TimerHeap, EveryTimerCanBeGivenAnotherTime) {
  std::mt19937 random(2);
  TimerHeap heap;
  std::array<Timer, 60> timers;
  for (Timer& t : timers) {
    prepare(t, static_cast<int64_t>(random() % 1000));
    ASSERT_TRUE(heap.add(&t));
  }
  for (int i = 0; i < 2000; ++i) {
    Timer& t = timers[random() % timers.size()];
    const auto when = static_cast<int64_t>(random() % 1000);
    const int64_t before = heap.next_ns();
    bool first = false;
    ASSERT_TRUE(heap.move(&t, when, &first));
    ASSERT_EQ(first, when < before);
    int64_t least = no_timer;
    for (const Timer& each : timers) least = std::min(least, each.when_ns);
    ASSERT_EQ(heap.next_ns(), least);
  }
  std::vector<int64_t> times;
  for (const Timer& t : timers) times.push_back(t.when_ns);
  std::sort(times.begin(), times.end());
  EXPECT_EQ(due(heap, 1000), times);
  EXPECT_FALSE(heap.move(&timers[0], 5));
  EXPECT_FALSE(move_timer(&timers[0], 5));
}

TEST(TimerHeap, KnowsItsOwnTimersOnly) {
  TimerHeap heap, other;
  Timer t;
  prepare(t, 1);
  ASSERT_TRUE(heap.add(&t));
  EXPECT_FALSE(other.remove(&t));
  EXPECT_EQ(heap.count(), 1u);
  EXPECT_TRUE(heap.remove(&t));
  ASSERT_TRUE(other.add(&t));
  EXPECT_FALSE(heap.remove(&t));
  EXPECT_TRUE(stop_timer(&t));
  EXPECT_EQ(other.next_ns(), no_timer);
}

TEST(TimerHeap, DropsWhatRefusesToBeClaimed) {
  TimerHeap heap;
  std::array<Timer, 20> timers;
  for (std::size_t i = 0; i < timers.size(); ++i) {
    prepare(timers[i], static_cast<int64_t>(i), i % 3 == 0 ? refused : claimed);
    timers[i].next = &timers[i];  // what was there before does not matter
    ASSERT_TRUE(heap.add(&timers[i]));
  }
  const std::vector<Timer*> taken = listed(heap.take_due(9));
  ASSERT_EQ(taken.size(), 6u);
  for (const Timer* t : taken) EXPECT_NE(t->when_ns % 3, 0);
  EXPECT_EQ(heap.count(), 10u);
  EXPECT_EQ(heap.next_ns(), 10);
  for (std::size_t i = 10; i < timers.size(); ++i) timers[i].claim = refused;
  EXPECT_EQ(heap.take_due(no_timer - 1), nullptr);
  EXPECT_EQ(heap.count(), 0u);
}

TEST(TimerHeap, AsksEachTimerOnceForItsClaim) {
  TimerHeap heap;
  std::array<Timer, 50> timers;
  int asked = 0;
  for (std::size_t i = 0; i < timers.size(); ++i) {
    prepare(timers[i], 7, [](Timer* t) { return ++*static_cast<int*>(t->arg) % 2 == 0; });
    timers[i].arg = &asked;
    ASSERT_TRUE(heap.add(&timers[i]));
  }
  EXPECT_EQ(listed(heap.take_due(7)).size(), 25u);
  EXPECT_EQ(asked, 50);
  EXPECT_EQ(heap.take_due(7), nullptr);
  EXPECT_EQ(asked, 50);
}

TEST(TimerHeap, AgreesWithASortedSetWhateverHappens) {
  const int steps = sanitizers_enabled ? 20'000 : 300'000;
  std::mt19937 random(7);
  TimerHeap heap;
  std::multiset<int64_t> model;
  std::vector<std::unique_ptr<Timer>> timers;
  for (int i = 0; i < 500; ++i) {
    timers.push_back(std::make_unique<Timer>());
    prepare(*timers.back(), 0);
  }
  int64_t now = 0;
  for (int step = 0; step < steps; ++step) {
    Timer& t = *timers[random() % timers.size()];
    // More come than go for a while, and then the other way round.
    const bool grows = step / 5000 % 2 == 0;
    const unsigned what = random() % 100;
    if (what < (grows ? 60u : 20u)) {
      if (t.heap.load() == nullptr) {
        t.when_ns = now + static_cast<int64_t>(random() % 1000);
        ASSERT_TRUE(heap.add(&t));
        model.insert(t.when_ns);
      }
    } else if (what < 95) {
      const bool was_there = t.heap.load() != nullptr;
      ASSERT_EQ(heap.remove(&t), was_there);
      if (was_there) model.erase(model.find(t.when_ns));
    } else {
      now += static_cast<int64_t>(random() % 20);
      const auto end = model.upper_bound(now);
      ASSERT_EQ(due(heap, now), std::vector<int64_t>(model.begin(), end));
      model.erase(model.begin(), end);
    }
    ASSERT_EQ(heap.count(), model.size());
    ASSERT_EQ(heap.next_ns(), model.empty() ? no_timer : *model.begin());
  }
}

TEST(TimerHeap, MovesEverythingToAnother) {
  std::mt19937 random(3);
  for (const std::size_t n : {0u, 1u, 5u, 300u, 3000u}) {
    for (const std::size_t there : {0u, 1u, 200u, 700u}) {
      TimerHeap from, to;
      std::vector<Timer> timers(n + there);
      std::vector<int64_t> times;
      for (std::size_t i = 0; i < timers.size(); ++i) {
        prepare(timers[i], static_cast<int64_t>(random() % 10'000));
        times.push_back(timers[i].when_ns);
        ASSERT_TRUE((i < n ? from : to).add(&timers[i]));
      }
      ASSERT_TRUE(from.move_all(to));
      EXPECT_EQ(from.count(), 0u);
      EXPECT_EQ(from.next_ns(), no_timer);
      EXPECT_EQ(to.count(), n + there);
      for (Timer& t : timers) ASSERT_EQ(t.heap.load(), &to);
      std::sort(times.begin(), times.end());
      if (n > 100) {
        ASSERT_TRUE(stop_timer(&timers[n / 2]));
        ASSERT_FALSE(from.remove(&timers[n / 3]));
        times.erase(std::find(times.begin(), times.end(), timers[n / 2].when_ns));
      }
      EXPECT_EQ(to.next_ns(), times.empty() ? no_timer : times.front());
      EXPECT_EQ(due(to, 10'000), times);
      if (n != 0) {  // it can be used again
        prepare(timers[0], 4);
        ASSERT_TRUE(from.add(&timers[0]));
        EXPECT_EQ(due(from, 4), std::vector<int64_t>({4}));
      }
    }
  }
}

TEST(TimerHeap, GrowsToAHundredThousand) {
  constexpr std::size_t count = 100'000;
  TimerHeap heap;
  std::vector<Timer> timers(count);
  std::mt19937_64 random(5);
  for (Timer& t : timers) {
    prepare(t, static_cast<int64_t>(random() % 1'000'000'007));
    ASSERT_TRUE(heap.add(&t));
  }
  EXPECT_EQ(heap.count(), count);
  int64_t removed = 0;
  for (std::size_t i = 0; i < count; i += 3) removed += heap.remove(&timers[i]) ? 1 : 0;
  EXPECT_EQ(removed, (static_cast<int64_t>(count) + 2) / 3);
  const std::vector<int64_t> times = due(heap, no_timer - 1);
  EXPECT_EQ(static_cast<int64_t>(times.size()), static_cast<int64_t>(count) - removed);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  EXPECT_EQ(heap.count(), 0u);
}

// Some add and stop their timers while others take what is due: each is either stopped or claimed.
TEST(TimerHeap, StopsOrClaimsEachTimerAmongManyThreads) {
  const int rounds = sanitizers_enabled ? 2'000 : 50'000;
  struct Counted {
    Timer timer;
    std::atomic<int> claims{0};
    std::atomic<int> runs{0};
  };
  TimerHeap heap;
  std::atomic<int> users{2};
  std::atomic<int> wrong{0};
  const auto user = [&] {
    Counted c;
    c.timer.arg = &c;
    prepare(c.timer, 0, [](Timer* t) { return ++static_cast<Counted*>(t->arg)->claims, true; });
    int claimed_before = 0;
    for (int i = 0; i < rounds; ++i) {
      c.timer.when_ns = i % 5;
      wrong += !heap.add(&c.timer);
      for (int spin = i % 40; spin > 0; --spin) std::atomic_signal_fence(std::memory_order_seq_cst);
      if (!stop_timer(&c.timer)) {
        ++claimed_before;
        while (c.runs.load() != claimed_before) std::this_thread::yield();
      }
      wrong += c.claims.load() != claimed_before;
    }
    --users;
  };
  const auto taker = [&] {
    while (users.load() != 0) {
      Timer* t = heap.take_due(4);
      if (t == nullptr) std::this_thread::yield();
      while (t != nullptr) {
        Timer* next = t->next;
        ++static_cast<Counted*>(t->arg)->runs;
        t = next;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back(user);
  for (int i = 0; i < 2; ++i) threads.emplace_back(taker);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(heap.count(), 0u);
}

// A timer that lost against another end of the wait goes away, with the waiter, as soon as
// stop_timer returns.
TEST(TimerHeap, StopDoesNotReturnWhileTheClaimIsAsked) {
  struct Probe {
    Timer timer;
    std::atomic<bool> asked{false};
    std::atomic<bool> gone{false};
    bool gone_too_early = false;
  };
  TimerHeap heap;
  Probe probe;
  probe.timer.arg = &probe;
  prepare(probe.timer, 1, [](Timer* t) {
    auto* p = static_cast<Probe*>(t->arg);
    p->asked = true;
    for (int i = 0; i < 1000 && !p->gone; ++i) std::this_thread::yield();
    p->gone_too_early = p->gone;
    return false;
  });
  ASSERT_TRUE(heap.add(&probe.timer));
  std::thread taker([&] { heap.take_due(1); });
  while (!probe.asked) std::this_thread::yield();
  stop_timer(&probe.timer);
  probe.gone = true;
  taker.join();
  EXPECT_FALSE(probe.gone_too_early);
}

}  // namespace
}  // namespace gofer::internal
