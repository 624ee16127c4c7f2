// The scheduler's rules as a running program shows them: order, time slices, overflow, the 61st
// tick, spinning, stealing, records, and the states of a goroutine's life.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "os/thread.h"
#include "runtime/queues.h"
#include "runtime/sanitizer.h"
#include "runtime/sched.h"
#include "support/model_gm.h"
#include "support/procs.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using internal::G;
using internal::GStatus;
using internal::Inside;
using internal::M;
using internal::P;
using internal::sched;
using test::model_gm;
using test::Procs;
using test::wait_until;

P* first_p() { return sched.all_ps[0].load(); }

// The P of the calling goroutine, which stays there as long as nobody else is about.
P* my_p() {
  Inside inside;
  return inside.m()->p;
}

// One goroutine waits, anyone sets: park() and ready() and nothing else.
class Event {
 public:
  void wait() {
    Inside inside;
    internal::park(inside.m(), internal::WaitReason::none, announce, this);
    word_.store(nullptr);
  }
  void set() {
    Inside inside;
    G* waiter = word_.exchange(is_set());
    if (waiter != nullptr && waiter != is_set()) internal::ready(inside.m(), waiter);
  }
  bool has_waiter() const { return word_.load() != nullptr && word_.load() != is_set(); }

 private:
  static G* is_set() { return reinterpret_cast<G*>(1); }
  static bool announce(G* g, void* self) {
    G* nobody = nullptr;
    return static_cast<Event*>(self)->word_.compare_exchange_strong(nobody, g);
  }
  std::atomic<G*> word_{nullptr};
};

// Everything that earlier tests started has ended, down to the last switch.
void expect_quiet() {
  ASSERT_TRUE(wait_until([] {
    return num_goroutine() == 0 && sched.idle_p_count.load() == sched.procs.load() &&
           sched.spinning_ms.load() == 0;
  }));
}

TEST(Scheduler, GoroutineStartedLastRunsFirstAndTheOthersInOrder) {
  Procs one(1);
  std::vector<int> order;
  run([&] {
    wait_group done;
    for (int i = 0; i < 6; ++i) done.go([&order, i] { order.push_back(i); });
    done.wait();
  });
  const auto expected =
      model_gm() ? std::vector<int>{0, 1, 2, 3, 4, 5} : std::vector<int>{5, 0, 1, 2, 3, 4};
  EXPECT_EQ(order, expected);
}

TEST(Scheduler, YieldLetsEveryOtherOfTheQueueRunOnce) {
  Procs one(1);
  std::vector<int> order;
  run([&] {
    wait_group done;
    for (int i = 0; i < 3; ++i) {
      done.go([&order, i] {
        for (int k = 0; k < 3; ++k) {
          order.push_back(i);
          yield();
        }
      });
    }
    done.wait();
  });
  const auto expected = model_gm() ? std::vector<int>{0, 1, 2, 0, 1, 2, 0, 1, 2}
                                   : std::vector<int>{2, 0, 1, 2, 0, 1, 2, 0, 1};
  EXPECT_EQ(order, expected);
}

TEST(Scheduler, ReadiedGoroutineRunsNext) {
  if (model_gm()) GTEST_SKIP() << "no runnext";
  Procs one(1);
  std::vector<char> order;
  run([&] {
    Event event;
    wait_group done;
    done.go([&] {
      event.wait();
      order.push_back('r');
    });
    while (!event.has_waiter()) yield();
    done.go([&] { order.push_back('a'); });
    done.go([&] { order.push_back('b'); });
    event.set();
    done.wait();
  });
  EXPECT_EQ(order, (std::vector<char>{'r', 'a', 'b'}));
}

TEST(TimeSlice, IsInheritedThroughRunnext) {
  if (model_gm()) GTEST_SKIP() << "no runnext";
  Procs one(1);
  uint32_t ticks = 0;
  uint64_t switches = 0;
  run([&] {
    yield();
    P* p = my_p();
    const uint32_t ticks_before = p->schedtick.load();
    const uint64_t switches_before = p->switches.load();
    for (int i = 0; i < 200; ++i) {
      wait_group done;
      done.go([] {});  // runs next, and makes the waiter the next to run
      done.wait();
    }
    ticks = p->schedtick.load() - ticks_before;
    switches = p->switches.load() - switches_before;
  });
  EXPECT_EQ(ticks, 0u);
  EXPECT_EQ(switches, 400u);
}

TEST(TimeSlice, BeginsAnewThroughTheQueue) {
  if (model_gm()) GTEST_SKIP() << "no runnext";
  Procs one(1);
  uint32_t ticks = 0;
  run([&] {
    P* p = my_p();
    const uint32_t before = p->schedtick.load();
    wait_group done;
    for (int i = 0; i < 10; ++i) done.go([] {});
    done.wait();
    ticks = p->schedtick.load() - before;
  });
  EXPECT_EQ(ticks, 9u);  // the first came through runnext, and so did the waiter
}

TEST(TimeSlice, BeginsAnewAfterAYield) {
  Procs one(1);
  uint32_t ticks = 0;
  run([&] {
    P* p = my_p();
    wait_group done;
    std::atomic<bool> stop{false};
    done.go([&] {
      while (!stop) yield();
    });
    yield();
    yield();
    const uint32_t before = p->schedtick.load();
    for (int i = 0; i < 50; ++i) yield();
    ticks = p->schedtick.load() - before;
    stop = true;
    done.wait();
  });
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
  run([&] {
    wait_group done;
    // The 257th fills the ring (and runnext); the 258th sends the 257th there, and finds it full.
    for (int i = 0; i < 257; ++i) done.go([&order, i] { order.push_back(i); });
    before = stats().global_queue;
    size_before = sched.queue_size.load();
    local_before = stats().procs[0].queued;
    done.go([&order] { order.push_back(257); });
    after = stats().global_queue;
    size_after = sched.queue_size.load();
    local_after = stats().procs[0].queued;
    done.wait();
  });
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
    coming_ = true;  // from now on, nobody else can be in the global queue
    go([this] {
      ran_at_ = first_p()->switches.load();
      ran_ = true;
    });
  }
  void see() {
    if (coming_ && seen_at_ == 0 && sched.queue_size.load() != 0)
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
      load.go([&] {
        running.fetch_add(1);
        for (uint64_t turns = 0; !stranger.ran() && turns < 100'000'000; ++turns) {
          stranger.see();
          yield();
        }
      });
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
    group.go([this, at_each_turn] {
      while (!stop_) {
        at_each_turn();
        b_.set();
        a_.wait();
      }
      b_.set();
    });
    group.go([this] {
      for (;;) {
        b_.wait();
        turns_.fetch_add(1);
        a_.set();
        if (stop_) return;
      }
    });
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
    go([&] {
      ran_at = first_p()->switches.load();
      ran = true;
    });
  });
  ASSERT_TRUE(wait_until([&] { return pair.turns() > 10; }));
  asked = true;
  EXPECT_TRUE(wait_until([&] { return ran.load(); }));
  pair.stop();
  load.wait();
  EXPECT_LE(ran_at - started_at, 3u * 61);
  expect_quiet();
}

TEST(Spinning, CountStaysBetweenZeroAndTheNumberOfThreads) {
  std::atomic<bool> stop{false};
  int32_t least = 0;
  int32_t most = 0;
  std::thread sampler([&] {
    while (!stop) {
      const int32_t now = sched.spinning_ms.load();
      if (now < least) least = now;
      if (now > most) most = now;
    }
  });
  for (int round = 0; round < (internal::sanitizers_enabled ? 20 : 200); ++round) {
    // Bursts, and calm in between.
    wait_group burst;
    for (int i = 0; i < 20; ++i) {
      burst.go([] {
        wait_group inner;
        for (int k = 0; k < 20; ++k) inner.go([] { yield(); });
        inner.wait();
      });
    }
    burst.wait();
  }
  stop = true;
  sampler.join();
  EXPECT_EQ(least, 0);
  EXPECT_LE(most, stats().threads);
  expect_quiet();
}

uint64_t total_steals() {
  uint64_t n = 0;
  for (const auto& p : stats().procs) n += p.steals;
  return n;
}

uint64_t total_stolen() {
  uint64_t n = 0;
  for (const auto& p : stats().procs) n += p.stolen;
  return n;
}

// A goroutine that computes, starts others when told to, and computes on, until it is told to end.
struct Computing {
  explicit Computing(int n = 0) : children(n) {}
  void operator()() {
    const no_preempt until_told;
    thread = internal::os::thread_id();
    while (!end) {
      if (start && !started) {
        for (int i = 0; i < children; ++i) go([this] { ran.fetch_add(1); });
        started = true;
      }
      internal::cpu_relax();
    }
  }
  int children;
  std::atomic<int> thread{0};
  std::atomic<bool> start{false};
  std::atomic<bool> started{false};
  std::atomic<bool> end{false};
  std::atomic<int> ran{0};
};

// Two Ps: on one, a goroutine computes beside a queue of 64; the other's M finds nothing of its
// own. The test pretends that an M spins, half of the busy Ps, and then that it does not.
TEST(Spinning, NobodyStealsWhileHalfOfTheBusyProcessorsSpin) {
  if (model_gm()) GTEST_SKIP() << "no stealing";
  Procs two(2);
  expect_quiet();
  Computing rich(64);
  Computing poor;
  wait_group done;
  done.go(std::ref(rich));
  done.go(std::ref(poor));
  EXPECT_TRUE(wait_until(
      [&] { return rich.thread != 0 && poor.thread != 0 && sched.spinning_ms.load() == 0; }));

  sched.spinning_ms.fetch_add(1);
  sched.need_spinning.store(0);
  const uint64_t steals_before = total_steals();
  const uint64_t stolen_before = total_stolen();
  rich.start = true;
  EXPECT_TRUE(wait_until([&] { return rich.started.load(); }));
  poor.end = true;
  EXPECT_TRUE(wait_until([] { return sched.idle_p_count.load() == 1; }));
  EXPECT_EQ(total_steals(), steals_before);
  EXPECT_EQ(rich.ran, 0);

  sched.spinning_ms.fetch_sub(1);
  internal::wake_p();
  EXPECT_TRUE(wait_until([&] { return rich.ran == 64; }));
  // Half of 63 in the ring, rounded up, again and again; runnext in the end.
  EXPECT_EQ(total_stolen() - stolen_before, 64u);
  EXPECT_EQ(total_steals() - steals_before, 7u);
  rich.end = true;
  done.wait();
  expect_quiet();
}

// As above, but somebody submitted work, found no idle P, and left word of it.
TEST(Spinning, WhoIsAskedToSpinsInSpiteOfTheLimit) {
  if (model_gm()) GTEST_SKIP() << "no stealing";
  Procs two(2);
  expect_quiet();
  Computing rich(10);
  Computing poor;
  wait_group done;
  done.go(std::ref(rich));
  done.go(std::ref(poor));
  EXPECT_TRUE(wait_until(
      [&] { return rich.thread != 0 && poor.thread != 0 && sched.spinning_ms.load() == 0; }));
  sched.spinning_ms.fetch_add(1);
  rich.start = true;
  EXPECT_TRUE(wait_until([&] { return rich.started.load(); }));
  sched.need_spinning.store(1);
  poor.end = true;
  EXPECT_TRUE(wait_until([&] { return rich.ran > 0; }, std::chrono::seconds(20)));
  sched.spinning_ms.fetch_sub(1);
  internal::wake_p();
  EXPECT_TRUE(wait_until([&] { return rich.ran == 10; }));
  rich.end = true;
  done.wait();
  expect_quiet();
}

bool asleep(int thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string pid;
  std::string name;  // gtest's programs have no blanks in it
  std::string state;
  file >> pid >> name >> state;
  return state == "S";
}

// Between "found nothing" and "asleep". The test holds the scheduler's lock, so the M that has
// found nothing cannot give up its P; meanwhile another P gets work, and its M sees that somebody
// spins.
TEST(GoingToSleep, LooksAtTheQueuesAgainAfterSpinning) {
  if (model_gm()) GTEST_SKIP() << "no local queue";
  Procs two(2);
  expect_quiet();
  Computing rich(1);
  Computing poor;
  wait_group done;
  done.go(std::ref(rich));
  done.go(std::ref(poor));
  EXPECT_TRUE(wait_until(
      [&] { return rich.thread != 0 && poor.thread != 0 && sched.spinning_ms.load() == 0; }));
  sched.lock.lock();
  poor.end = true;
  EXPECT_TRUE(wait_until([&] { return sched.spinning_ms.load() == 1 && asleep(poor.thread); }));
  rich.start = true;
  EXPECT_TRUE(wait_until([&] { return rich.started.load(); }));
  EXPECT_EQ(rich.ran, 0);
  sched.lock.unlock();
  EXPECT_TRUE(wait_until([&] { return rich.ran == 1; }, std::chrono::seconds(20)));
  rich.end = true;
  done.wait();
  expect_quiet();
}

// The same for the global queue, and for an M that is not allowed to spin, with nobody to wake it.
TEST(GoingToSleep, LooksAtTheGlobalQueueUnderTheLock) {
  Procs one(1);
  expect_quiet();
  Event event;
  std::atomic<G*> sleeper{nullptr};
  Computing last;
  wait_group slept;
  wait_group done;
  slept.go([&] {
    sleeper = internal::current_m()->curg;
    event.wait();
  });
  EXPECT_TRUE(wait_until([&] { return event.has_waiter(); }));
  done.go(std::ref(last));
  EXPECT_TRUE(wait_until([&] { return last.thread != 0 && sched.spinning_ms.load() == 0; }));
  sched.spinning_ms.fetch_add(1);
  sched.need_spinning.store(0);
  sched.lock.lock();
  last.end = true;
  EXPECT_TRUE(wait_until([&] { return asleep(last.thread); }));
  internal::set_status(sleeper, GStatus::waiting, GStatus::runnable);
  internal::put_global_locked(sleeper);
  sched.lock.unlock();
  std::atomic<bool> woken{false};
  std::thread waiter([&] {
    slept.wait();
    woken = true;
  });
  EXPECT_TRUE(wait_until([&] { return woken.load(); }, std::chrono::seconds(20)));
  sched.spinning_ms.fetch_sub(1);
  internal::wake_p();
  waiter.join();
  done.wait();
  expect_quiet();
}

TEST(Parallelism, NoMoreGoroutinesRunAtOnceThanProcessors) {
  const int procs = gomaxprocs(0);
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  run([&] {
    wait_group done;
    for (int i = 0; i < 20; ++i) {
      done.go([&] {
        for (int k = 0; k < 200; ++k) {
          {
            const no_preempt running;  // one that is paused in between would count as running
            const int now = inside.fetch_add(1) + 1;
            for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
            }
            for (int spin = 0; spin < 500; ++spin) internal::cpu_relax();
            inside.fetch_sub(1);
          }
          yield();
        }
      });
    }
    done.wait();
  });
  EXPECT_LE(most, procs);
}

TEST(Parallelism, AsManyGoroutinesRunAtOnceAsProcessors) {
  const int procs = gomaxprocs(0);
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> met{0};
    run([&] {
      wait_group done;
      for (int i = 0; i < procs; ++i) {
        done.go([&] {
          met.fetch_add(1);
          while (met < procs) internal::cpu_relax();  // no call of the runtime: all must run
        });
      }
      // The starter's processor is needed, too.
      done.wait();
    });
    EXPECT_EQ(met, procs);
  }
}

TEST(Records, MoveBetweenProcessorAndGlobalListInThirtyTwos) {
  Procs one(1);
  int local = 0;
  int global = 0;
  int expected_local = 0;
  int expected_global = 0;
  bool always_below = true;
  run([&] {
    P* p = my_p();
    const auto count = [p] {
      Inside inside;
      return p->free_gs.count();
    };
    for (const int n : {1, 10, 31, 32, 33, 100, 200, 5}) {
      expected_local = count();
      expected_global = internal::count_free_gs();
      wait_group done;
      for (int i = 0; i < n; ++i) {
        if (expected_local == 0) {
          expected_local = internal::g_free_batch;
          expected_global -= std::min(expected_global, internal::g_free_batch);
        }
        --expected_local;
        done.go([&] { always_below = always_below && count() < internal::g_free_high; });
      }
      done.wait();
      while (num_goroutine() != 1) yield();
      for (int i = 0; i < n; ++i) {
        if (++expected_local < internal::g_free_high) continue;
        expected_local -= internal::g_free_batch;
        expected_global += internal::g_free_batch;
      }
      local = count();
      global = internal::count_free_gs();
      if (local != expected_local || global != expected_global) return;
    }
  });
  EXPECT_EQ(local, expected_local);
  EXPECT_EQ(global, expected_global);
  EXPECT_TRUE(always_below);
}

TEST(Life, OfAGoroutineGoesThroughTheStates) {
  Procs one(1);
  struct Closure {
    G* g;
    Event event;
    GStatus while_running = GStatus::idle;
    M* m_while_running = nullptr;
    M* its_m = nullptr;
  } closure;
  std::vector<GStatus> states;
  bool had_stack_while_runnable = true;
  bool has_stack_when_dead = true;
  run([&] {
    void* place = detail::new_goroutine(nullptr);
    G* g = internal::g_of_closure(place);
    closure.g = g;
    states.push_back(g->status);
    ::new (place)(Closure*)(&closure);
    detail::start_goroutine(place, [](void* p) {
      Closure* self = *static_cast<Closure**>(p);
      self->while_running = self->g->status;
      self->m_while_running = self->g->head->m;
      self->its_m = internal::current_m();
      self->event.wait();
    });
    states.push_back(g->status);
    had_stack_while_runnable = g->head != nullptr;
    while (!closure.event.has_waiter()) yield();
    states.push_back(g->status);
    closure.event.set();
    states.push_back(g->status);
    while (num_goroutine() != 1) yield();
    states.push_back(g->status);
    has_stack_when_dead = g->head != nullptr;
  });
  EXPECT_EQ(states, (std::vector<GStatus>{GStatus::idle, GStatus::runnable, GStatus::waiting,
                                          GStatus::runnable, GStatus::dead}));
  EXPECT_EQ(closure.while_running, GStatus::running);
  EXPECT_NE(closure.its_m, nullptr);
  EXPECT_EQ(closure.m_while_running, closure.its_m);
  EXPECT_FALSE(had_stack_while_runnable);
  EXPECT_FALSE(has_stack_when_dead);
}

TEST(Life, OfADiscardedGoroutineEndsBeforeItBegins) {
  void* place = detail::new_goroutine(nullptr);
  G* g = internal::g_of_closure(place);
  EXPECT_EQ(g->status, GStatus::idle);
  detail::discard_goroutine(place);
  EXPECT_EQ(g->status, GStatus::dead);
  EXPECT_EQ(num_goroutine(), 0u);
}

TEST(Life, BeginsWithTheDefaultFloatingPointControl) {
  Procs one(1);
  std::vector<int> modes;
  run([&] {
    wait_group done;
    for (int i = 0; i < 6; ++i) {
      done.go([&modes] {
        modes.push_back(std::fegetround());
        std::fesetround(FE_UPWARD);  // and ends: the next one may start on its very stack
      });
    }
    done.wait();
    modes.push_back(std::fegetround());
  });
  EXPECT_EQ(modes, std::vector<int>(7, FE_TONEAREST));
}

TEST(Life, KeepsItsOwnFloatingPointControlAcrossSwitches) {
  Procs one(1);
  int wrong = 0;
  run([&] {
    wait_group done;
    for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST}) {
      done.go([&wrong, mode] {
        std::fesetround(mode);
        for (int i = 0; i < 100; ++i) {
          yield();
          wrong += std::fegetround() != mode;
        }
      });
    }
    done.wait();
    wrong += std::fegetround() != FE_TONEAREST;
  });
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace gofer
