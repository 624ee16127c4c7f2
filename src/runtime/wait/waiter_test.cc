// Waiters in a queue of the test's own: goroutines and foreign threads side by side, in order,
// each woken once.
#include "runtime/wait/waiter.h"
#include "runtime/base/sanitizer.h"
#include "runtime/process/settings.h"
#include "runtime/procs/current.h"
#include "runtime/wait/park.h"
#include "support/scheduler_state.h"
#include "support/unpaused.h"
#include "support/wait_until.h"

#include <gofer/go.h>
#include <gofer/wait_group.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

namespace gofer::internal {
namespace {

using test::unpaused;
using test::wait_until;

// The least that a primitive can be: a lock and a list, oldest first.
class Gate {
 public:
  void wait() {
    Inside inside;
    lock_.lock();
    Waiter w(inside.m());
    (tail_ != nullptr ? tail_->next : head_) = &w;
    tail_ = &w;
    ++count_;
    park(inside.m(), w, WaitReason::wait_group_wait, {unlock, this});
  }

  /// Wakes all waiters, the oldest first. Returns how many.
  int open() {
    Inside inside;
    lock_.lock();
    Waiter* all = head_;
    const int n = count_;
    head_ = tail_ = nullptr;
    count_ = 0;
    lock_.unlock();
    wake_list(inside.m(), all);
    return n;
  }

  int count() {
    Inside inside;
    LockGuard guard(lock_);
    return count_;
  }

  /// 'g' for a goroutine, 't' for a thread, in the order of the queue.
  std::string kinds() {
    Inside inside;
    LockGuard guard(lock_);
    std::string text;
    for (Waiter* w = head_; w != nullptr; w = w->next) {
      if ((w->g != nullptr) == (w->thread != nullptr)) return "neither or both";
      text += w->g != nullptr ? 'g' : 't';
    }
    return text;
  }

 private:
  static void unlock(void* self) { static_cast<Gate*>(self)->lock_.unlock(); }

  Lock lock_{LockRank::primitive};
  Waiter* head_ = nullptr;
  Waiter* tail_ = nullptr;
  int count_ = 0;
};

TEST(Waiter, GoroutinesAndThreadsStandInOneQueue) {
  Gate gate;
  wait_group goroutines;
  std::vector<std::thread> threads;
  const int parked_before = parked_threads.load();
  for (int i = 0; i < 6; ++i) {
    if (i % 2 == 0) {
      goroutines.go([&] { gate.wait(); });
    } else {
      threads.emplace_back([&] { gate.wait(); });
    }
    ASSERT_TRUE(wait_until([&] { return gate.count() == i + 1; }));
  }
  EXPECT_EQ(gate.kinds(), "gtgtgt");
  EXPECT_EQ(parked_threads.load(), parked_before + 3);
  EXPECT_EQ(gate.open(), 6);
  EXPECT_EQ(parked_threads.load(), parked_before);
  goroutines.wait();
  for (auto& thread : threads) thread.join();
}

TEST(Waiter, ParkedGoroutineShowsItsStateAndReason) {
  Gate gate;
  std::atomic<G*> g{nullptr};
  wait_group done;
  done.go([&] {
    g = current_m()->curg;
    gate.wait();
  });
  ASSERT_TRUE(wait_until([&] { return gate.count() == 1; }));
  EXPECT_EQ(g.load()->status.load(), GStatus::waiting);
  EXPECT_EQ(g.load()->head->m.load(), nullptr);
  EXPECT_STREQ(wait_reason_text(g.load()->wait_reason), "sync.WaitGroup.Wait");
  gate.open();
  done.wait();
}

TEST(Waiter, GoroutinesAreWokenInTheOrderOfTheQueue) {
  constexpr int waiters = 10;
  const int procs = gomaxprocs(1);
  std::vector<int> order;
  run(unpaused([&] {
    Gate gate;
    wait_group done;
    for (int i = 0; i < waiters; ++i) {
      done.go(unpaused([&, i] {
        gate.wait();
        order.push_back(i);
      }));
      while (gate.count() != i + 1) yield();
    }
    test::put_off_look();
    gate.open();
    done.wait();
  }));
  gomaxprocs(procs);
  // Each becomes the next to run and sends the one before to the tail: the last runs first.
  std::vector<int> expected = {waiters - 1};
  for (int i = 0; i < waiters - 1; ++i) expected.push_back(i);
  if (settings.gm) {
    expected.erase(expected.begin());
    expected.push_back(waiters - 1);
  }
  EXPECT_EQ(order, expected);
}

TEST(Waiter, CrowdIsWokenByGoroutinesAndThreads) {
  constexpr int goroutines = 8;
  constexpr int threads = 4;
  const int rounds = sanitizers_enabled ? 50 : 500;
  Gate gate;
  std::atomic<int> returned{0};
  wait_group crowd;
  std::vector<std::thread> plain;
  const auto member = [&] {
    for (int i = 0; i < rounds; ++i) gate.wait();
    returned.fetch_add(1);
  };
  for (int i = 0; i < goroutines; ++i) crowd.go(member);
  for (int i = 0; i < threads; ++i) plain.emplace_back(member);
  std::atomic<int64_t> woken{0};
  const auto all_back = [&] { return returned.load() == goroutines + threads; };
  const auto waker = [&] {
    static_cast<void>(wait_until([&] {
      woken.fetch_add(gate.open());
      return all_back();
    }));
  };
  wait_group waking;
  waking.go(waker);
  std::thread plain_waker(waker);
  plain_waker.join();
  waking.wait();
  ASSERT_TRUE(all_back());
  EXPECT_EQ(woken, int64_t{goroutines + threads} * rounds);
  crowd.wait();
  for (auto& thread : plain) thread.join();
  EXPECT_EQ(parked_threads.load(), 0);
}

TEST(Parker, BelongsToOneThreadAndThenToTheNext) {
  Parker* mine = Waiter(nullptr).thread;
  ASSERT_NE(mine, nullptr);
  EXPECT_EQ(Waiter(nullptr).thread, mine);
  std::set<Parker*> others;
  for (int i = 0; i < 20; ++i) {
    std::thread([&] { others.insert(Waiter(nullptr).thread); }).join();
  }
  EXPECT_EQ(others.size(), 1u);  // each ended before the next began
  EXPECT_EQ(others.count(mine), 0u);
}

TEST(Note, SignalBeforeWaitIsNotLostAndTimeoutForgetsNothing) {
  Note note;
  EXPECT_FALSE(note.wait(0));
  EXPECT_FALSE(note.wait(1'000'000));
  note.signal();
  EXPECT_TRUE(note.wait(0));
  EXPECT_FALSE(note.wait(0));
  note.signal();
  note.signal();  // said once is said
  EXPECT_TRUE(note.wait(-1));
  EXPECT_FALSE(note.wait(0));
}

TEST(Note, EverySignalIsHeardInSpiteOfTimeouts) {
  const int rounds = sanitizers_enabled ? 500 : 5'000;
  Note ping;
  Note pong;
  std::atomic<int> timeouts{0};
  std::thread other([&] {
    for (int i = 0; i < rounds; ++i) {
      while (!ping.wait(i % 3 == 0 ? -1 : 1'000 * (i % 50))) timeouts.fetch_add(1);
      pong.signal();
    }
  });
  for (int i = 0; i < rounds; ++i) {
    ping.signal();
    while (!pong.wait(i % 2 == 0 ? -1 : 500 * (i % 70))) timeouts.fetch_add(1);
  }
  other.join();
  EXPECT_FALSE(ping.wait(0));
  EXPECT_FALSE(pong.wait(0));
}

}  // namespace
}  // namespace gofer::internal
