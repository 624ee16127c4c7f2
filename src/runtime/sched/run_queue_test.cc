// gofer-test: once
// The local run queue by itself: order, overflow, theft, wrap-around of its counters, and a crowd
// of thieves.
#include "runtime/sched/run_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/base/sanitizer.h"

namespace gofer::internal {
namespace {

struct Item {
  int number = 0;
  std::atomic<int> seen{0};
};

using SmallQueue = RunQueue<Item, 8>;
using Queue = RunQueue<Item>;

// The queue's counters, to begin just below their wrap-around: explicit instantiation may name what
// is private.
template <class Q, auto Head, auto Tail>
struct Counters {
  friend void set_counters(Q& queue, uint32_t value) {
    (queue.*Head).store(value);
    (queue.*Tail).store(value);
  }
};
template struct Counters<SmallQueue, &SmallQueue::head_, &SmallQueue::tail_>;
template struct Counters<Queue, &Queue::head_, &Queue::tail_>;
void set_counters(SmallQueue& queue, uint32_t value);
void set_counters(Queue& queue, uint32_t value);

std::vector<Item> numbered(int n) {
  std::vector<Item> items(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) items[static_cast<size_t>(i)].number = i;
  return items;
}

template <class Q>
std::vector<int> drain(Q& queue) {
  std::vector<int> numbers;
  while (Item* item = queue.get()) numbers.push_back(item->number);
  return numbers;
}

std::vector<int> range(int from, int to) {
  std::vector<int> numbers;
  for (int i = from; i < to; ++i) numbers.push_back(i);
  return numbers;
}

TEST(RunQueue, IsEmptyAtFirst) {
  Queue queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.has_next());
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(queue.get(), nullptr);
  EXPECT_EQ(queue.take_next(), nullptr);
}

TEST(RunQueue, IsFirstInFirstOut) {
  Queue queue;
  auto items = numbered(200);
  for (auto& item : items) ASSERT_TRUE(queue.put(&item));
  EXPECT_EQ(queue.size(), 200u);
  EXPECT_FALSE(queue.empty());
  EXPECT_EQ(drain(queue), range(0, 200));
  EXPECT_TRUE(queue.empty());
}

TEST(RunQueue, KeepsOrderWhileItGoesRoundTheRing) {
  SmallQueue queue;
  auto items = numbered(1000);
  int got = 0;
  for (int put = 0; put < 1000; ++put) {
    ASSERT_TRUE(queue.put(&items[static_cast<size_t>(put)]));
    // Leaves between zero and seven behind.
    while (static_cast<int>(queue.size()) > put % 8) {
      Item* item = queue.get();
      ASSERT_NE(item, nullptr);
      ASSERT_EQ(item->number, got++);
    }
  }
  const auto rest = drain(queue);
  EXPECT_EQ(rest, range(got, 1000));
}

TEST(RunQueue, RefusesWhenFullAndTakesAgainAfterOneGet) {
  SmallQueue queue;
  auto items = numbered(10);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(queue.put(&items[static_cast<size_t>(i)]));
  EXPECT_FALSE(queue.put(&items[8]));
  EXPECT_EQ(queue.size(), 8u);
  EXPECT_EQ(queue.get(), &items[0]);
  EXPECT_TRUE(queue.put(&items[8]));
  EXPECT_FALSE(queue.put(&items[9]));
  EXPECT_EQ(drain(queue), range(1, 9));
}

TEST(RunQueue, OverflowTakesExactlyTheOlderHalfOfAFullRing) {
  Queue queue;
  auto items = numbered(256);
  for (auto& item : items) ASSERT_TRUE(queue.put(&item));
  Item* batch[Queue::capacity / 2 + 1] = {};
  ASSERT_EQ(queue.take_half_of_full(batch), 128u);
  for (int i = 0; i < 128; ++i) EXPECT_EQ(batch[i]->number, i);
  EXPECT_EQ(batch[128], nullptr);  // the place for the newcomer
  EXPECT_EQ(queue.size(), 128u);
  EXPECT_EQ(drain(queue), range(128, 256));
}

TEST(RunQueue, OverflowTakesNothingUnlessTheRingIsFull) {
  Queue queue;
  auto items = numbered(256);
  Item* batch[Queue::capacity / 2 + 1] = {};
  EXPECT_EQ(queue.take_half_of_full(batch), 0u);
  for (int i = 0; i < 255; ++i) ASSERT_TRUE(queue.put(&items[static_cast<size_t>(i)]));
  EXPECT_EQ(queue.take_half_of_full(batch), 0u);
  EXPECT_EQ(queue.size(), 255u);
}

TEST(RunQueue, StealTakesHalfRoundedUpForEverySize) {
  for (int n = 1; n <= 256; ++n) {
    Queue victim;
    Queue thief;
    auto items = numbered(n);
    for (auto& item : items) ASSERT_TRUE(victim.put(&item));
    uint32_t moved = 0;
    Item* first = thief.steal_from(victim, false, moved);
    const int taken = n - n / 2;
    ASSERT_NE(first, nullptr);
    ASSERT_EQ(moved, static_cast<uint32_t>(taken)) << n;
    // The oldest half, in order; the last of it is the one to run at once.
    ASSERT_EQ(first->number, taken - 1);
    ASSERT_EQ(thief.size(), static_cast<uint32_t>(taken - 1));
    ASSERT_EQ(drain(thief), range(0, taken - 1));
    ASSERT_EQ(drain(victim), range(taken, n));
  }
}

TEST(RunQueue, StealFromAnEmptyQueueMovesNothing) {
  Queue victim;
  Queue thief;
  uint32_t moved = 99;
  EXPECT_EQ(thief.steal_from(victim, true, moved), nullptr);
  EXPECT_EQ(moved, 0u);
  EXPECT_TRUE(thief.empty());
}

TEST(RunQueue, RunnextIsStolenOnlyWhenAsked) {
  Queue victim;
  Queue thief;
  auto items = numbered(1);
  EXPECT_EQ(victim.exchange_next(&items[0]), nullptr);
  uint32_t moved = 99;
  EXPECT_EQ(thief.steal_from(victim, false, moved), nullptr);
  EXPECT_EQ(moved, 0u);
  EXPECT_TRUE(victim.has_next());
  EXPECT_EQ(thief.steal_from(victim, true, moved), &items[0]);
  EXPECT_EQ(moved, 1u);
  EXPECT_FALSE(victim.has_next());
  EXPECT_TRUE(victim.empty());
}

TEST(RunQueue, RunnextStaysWhileTheRingHasSomething) {
  Queue victim;
  Queue thief;
  auto items = numbered(2);
  ASSERT_TRUE(victim.put(&items[0]));
  victim.exchange_next(&items[1]);
  uint32_t moved = 0;
  EXPECT_EQ(thief.steal_from(victim, true, moved), &items[0]);
  EXPECT_EQ(moved, 1u);
  EXPECT_TRUE(victim.has_next());
  EXPECT_FALSE(victim.empty());
}

TEST(RunQueue, RunnextReturnsTheOneItHeld) {
  Queue queue;
  auto items = numbered(2);
  EXPECT_EQ(queue.exchange_next(&items[0]), nullptr);
  EXPECT_EQ(queue.exchange_next(&items[1]), &items[0]);
  EXPECT_FALSE(queue.empty());
  EXPECT_EQ(queue.size(), 0u);  // the ring alone
  EXPECT_EQ(queue.take_next(), &items[1]);
  EXPECT_EQ(queue.take_next(), nullptr);
}

TEST(RunQueue, CountersWrapAroundWithoutAnyoneNoticing) {
  for (uint32_t below = 0; below <= 20; ++below) {
    SmallQueue queue;
    SmallQueue thief;
    set_counters(queue, uint32_t{0} - below);
    set_counters(thief, uint32_t{0} - below / 2);
    auto items = numbered(64);
    int put = 0;
    int got = 0;
    while (put < 64) {
      // Full to the brim, refused, and every way of taking in turn.
      while (queue.size() < 8) ASSERT_TRUE(queue.put(&items[static_cast<size_t>(put++ % 64)]));
      ASSERT_FALSE(queue.put(&items[0]));
      ASSERT_FALSE(queue.empty());
      Item* batch[SmallQueue::capacity / 2 + 1] = {};
      ASSERT_EQ(queue.take_half_of_full(batch), 4u);
      for (int i = 0; i < 4; ++i) ASSERT_EQ(batch[i]->number, got++ % 64);
      uint32_t moved = 0;
      Item* stolen = thief.steal_from(queue, false, moved);
      ASSERT_EQ(moved, 2u);
      ASSERT_EQ(drain(thief), range(got, got + 1));
      ASSERT_EQ(stolen->number, got + 1);
      got += 2;
      ASSERT_EQ(queue.size(), 2u);
      ASSERT_EQ(queue.get()->number, got++ % 64);
    }
    ASSERT_EQ(drain(queue), range(got, put));
    ASSERT_TRUE(queue.empty());
  }
}

// The owner keeps at least one item in the queue at every instant, moving it between runnext and
// the ring; no thief may ever see the queue empty.
TEST(RunQueue, IsNeverSpuriouslyEmpty) {
  const int rounds = sanitizers_enabled ? 100'000 : 1'000'000;
  Queue queue;
  Item a;
  Item b;
  set_counters(queue, uint32_t{0} - static_cast<uint32_t>(rounds) / 2);
  ASSERT_TRUE(queue.put(&a));
  std::atomic<bool> stop{false};
  std::atomic<bool> looking{false};
  std::atomic<int> seen_empty{0};
  std::thread observer([&] {
    looking = true;
    while (!stop.load(std::memory_order_relaxed)) {
      if (queue.empty()) seen_empty.fetch_add(1);
    }
  });
  while (!looking) std::this_thread::yield();
  int wrong = 0;
  for (int i = 0; i < rounds; ++i) {
    wrong += queue.exchange_next(&b) != nullptr;  // ring a, next b
    wrong += queue.get() != &a;                   // ring empty, next b
    wrong += !queue.put(&a);                      // ring a, next b
    wrong += queue.take_next() != &b;             // ring a
  }
  stop = true;
  observer.join();
  EXPECT_EQ(seen_empty, 0);
  EXPECT_EQ(wrong, 0);
}

// One owner that puts, gets, uses runnext and overflows, and thieves that steal from each other,
// too: each item is seen exactly once.
template <class Q>
class Crowd {
 public:
  Crowd(int thieves, size_t items, uint32_t first_counter)
      : queues_(static_cast<size_t>(thieves) + 1),
        items_(std::make_unique<Item[]>(items)),
        n_(items) {
    for (auto& queue : queues_) set_counters(queue, first_counter);
  }

  void run() {
    std::vector<std::thread> threads;
    for (size_t i = 1; i < queues_.size(); ++i) threads.emplace_back([this, i] { steal(i); });
    own();
    for (auto& thread : threads) thread.join();
  }

  size_t seen_otherwise_than_once() const {
    size_t wrong = 0;
    for (size_t i = 0; i < n_; ++i) wrong += items_[i].seen.load() != 1;
    return wrong;
  }
  uint64_t stolen() const { return stolen_; }

 private:
  void see(Item* item) {
    item->seen.fetch_add(1, std::memory_order_relaxed);
    left_.fetch_sub(1, std::memory_order_relaxed);
  }

  void put(Item* item) {
    Q& queue = queues_[0];
    while (!queue.put(item)) {
      Item* batch[Q::capacity / 2 + 1];
      const uint32_t n = queue.take_half_of_full(batch);
      if (n == 0) continue;
      for (uint32_t i = 0; i < n; ++i) see(batch[i]);
      see(item);
      return;
    }
  }

  void own() {
    Q& queue = queues_[0];
    uint32_t random = 12345;
    left_ = static_cast<int64_t>(n_);
    started_ = true;
    for (size_t i = 0; i < n_; ++i) {
      if (i == n_ / 2) {  // the thieves must have had a turn, however busy the machine is
        put(&items_[i]);
        while (stolen_.load() == 0) std::this_thread::yield();
        continue;
      }
      random = random * 1664525u + 1013904223u;
      const uint32_t dice = random >> 24;
      if (dice < 128) {
        if (Item* old = queue.exchange_next(&items_[i]); old != nullptr) put(old);
      } else {
        put(&items_[i]);
      }
      if (dice % 4 == 0) {
        if (Item* item = queue.take_next(); item != nullptr) see(item);
      }
      // Bursts: now and then the ring runs empty, else it is near full.
      for (uint32_t k = dice % 16 == 1 ? 400 : dice % 2; k > 0; --k) {
        Item* item = queue.get();
        if (item == nullptr) break;
        see(item);
      }
    }
    while (left_.load(std::memory_order_relaxed) > 0) {
      if (Item* item = queue.get(); item != nullptr) see(item);
      if (Item* item = queue.take_next(); item != nullptr) see(item);
    }
  }

  void steal(size_t self) {
    Q& mine = queues_[self];
    while (!started_) std::this_thread::yield();
    for (uint32_t round = 0; left_.load(std::memory_order_relaxed) > 0; ++round) {
      Q& victim = queues_[(self + 1 + round % (queues_.size() - 1)) % queues_.size()];
      uint32_t moved = 0;
      Item* item = mine.steal_from(victim, round % 4 == 3, moved);
      if (item == nullptr) {
        std::this_thread::yield();
        continue;
      }
      stolen_.fetch_add(moved, std::memory_order_relaxed);
      see(item);
      while (Item* more = mine.get()) see(more);
    }
  }

  std::vector<Q> queues_;
  std::unique_ptr<Item[]> items_;
  size_t n_;
  std::atomic<int64_t> left_{0};
  std::atomic<bool> started_{false};
  std::atomic<uint64_t> stolen_{0};
};

constexpr size_t crowd_items = sanitizers_enabled ? 100'000 : 1'500'000;

TEST(RunQueue, EachItemGoesToExactlyOneOfOwnerAndThieves) {
  for (int thieves = 1; thieves <= 3; ++thieves) {
    Crowd<Queue> crowd(thieves, crowd_items, 0);
    crowd.run();
    EXPECT_EQ(crowd.seen_otherwise_than_once(), 0u) << thieves << " thieves";
    EXPECT_GT(crowd.stolen(), 0u) << thieves << " thieves";
  }
}

// A small ring is full or empty most of the time, and the counters wrap in the middle.
TEST(RunQueue, EachItemGoesToExactlyOneWithASmallRingAndWrappingCounters) {
  for (int thieves = 1; thieves <= 3; ++thieves) {
    Crowd<SmallQueue> crowd(thieves, crowd_items, uint32_t{0} - 5000u);
    crowd.run();
    EXPECT_EQ(crowd.seen_otherwise_than_once(), 0u) << thieves << " thieves";
    EXPECT_GT(crowd.stolen(), 0u) << thieves << " thieves";
  }
}

}  // namespace
}  // namespace gofer::internal
