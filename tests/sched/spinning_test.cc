// Which Ms look for work, and for how long: spinning, stealing, the last look before sleep, and as
// many Ms at work as there are processors.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "os/thread.h"
#include "runtime/base/sanitizer.h"
#include "runtime/goroutines/transitions.h"
#include "runtime/procs/current.h"
#include "runtime/procs/retake.h"
#include "runtime/procs/spinning.h"
#include "runtime/sched/global_queue.h"
#include "support/event.h"
#include "support/model_gm.h"
#include "support/procs.h"
#include "support/scheduler_state.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using internal::G;
using internal::global_queue;
using internal::sched_lock;
using internal::taking;
using internal::wake_state;
using test::Event;
using test::expect_quiet;
using test::model_gm;
using test::Procs;
using test::wait_until;

TEST(Spinning, CountStaysBetweenZeroAndTheNumberOfThreads) {
  std::atomic<bool> stop{false};
  int32_t least = 0;
  int32_t most = 0;
  std::thread sampler([&] {
    while (!stop) {
      const int32_t now = wake_state.spinning_ms.load();
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
TEST(Spinning, NoThreadStealsWhileHalfOfTheBusyProcessorsSpin) {
  if (model_gm()) GTEST_SKIP() << "no stealing";
  Procs two(2);
  expect_quiet();
  Computing rich(64);
  Computing poor;
  wait_group done;
  done.go(std::ref(rich));
  done.go(std::ref(poor));
  EXPECT_TRUE(wait_until(
      [&] { return rich.thread != 0 && poor.thread != 0 && wake_state.spinning_ms.load() == 0; }));

  wake_state.spinning_ms.fetch_add(1);
  wake_state.need_spinning.store(0);
  const uint64_t steals_before = total_steals();
  const uint64_t stolen_before = total_stolen();
  rich.start = true;
  EXPECT_TRUE(wait_until([&] { return rich.started.load(); }));
  poor.end = true;
  EXPECT_TRUE(wait_until([] { return wake_state.idle_p_count.load() == 1; }));
  EXPECT_EQ(total_steals(), steals_before);
  EXPECT_EQ(rich.ran, 0);

  wake_state.spinning_ms.fetch_sub(1);
  internal::wake_p();
  EXPECT_TRUE(wait_until([&] { return rich.ran == 64; }));
  // Half of 63 in the ring, rounded up, again and again; runnext in the end.
  EXPECT_EQ(total_stolen() - stolen_before, 64u);
  EXPECT_EQ(total_steals() - steals_before, 7u);
  rich.end = true;
  done.wait();
  expect_quiet();
}

// As above, but a submitter of work found no idle P and set need_spinning.
TEST(Spinning, ThreadThatIsAskedToSpinsInSpiteOfTheLimit) {
  if (model_gm()) GTEST_SKIP() << "no stealing";
  Procs two(2);
  expect_quiet();
  Computing rich(10);
  Computing poor;
  wait_group done;
  done.go(std::ref(rich));
  done.go(std::ref(poor));
  EXPECT_TRUE(wait_until(
      [&] { return rich.thread != 0 && poor.thread != 0 && wake_state.spinning_ms.load() == 0; }));
  wake_state.spinning_ms.fetch_add(1);
  rich.start = true;
  EXPECT_TRUE(wait_until([&] { return rich.started.load(); }));
  wake_state.need_spinning.store(1);
  poor.end = true;
  EXPECT_TRUE(wait_until([&] { return rich.ran > 0; }, std::chrono::seconds(20)));
  wake_state.spinning_ms.fetch_sub(1);
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
// found nothing cannot give up its P; meanwhile another P gets work, and its M sees that an
// M spins.
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
      [&] { return rich.thread != 0 && poor.thread != 0 && wake_state.spinning_ms.load() == 0; }));
  sched_lock.lock();
  poor.end = true;
  EXPECT_TRUE(
      wait_until([&] { return wake_state.spinning_ms.load() == 1 && asleep(poor.thread); }));
  rich.start = true;
  EXPECT_TRUE(wait_until([&] { return rich.started.load(); }));
  EXPECT_EQ(rich.ran, 0);
  sched_lock.unlock();
  EXPECT_TRUE(wait_until([&] { return rich.ran == 1; }, std::chrono::seconds(20)));
  rich.end = true;
  done.wait();
  expect_quiet();
}

// The same for the global queue, and for an M that is not allowed to spin and that no thread wakes.
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
  EXPECT_TRUE(wait_until([&] { return last.thread != 0 && wake_state.spinning_ms.load() == 0; }));
  wake_state.spinning_ms.fetch_add(1);
  wake_state.need_spinning.store(0);
  sched_lock.lock();
  last.end = true;
  EXPECT_TRUE(wait_until([&] { return asleep(last.thread); }));
  internal::transition::readied(nullptr, sleeper);
  internal::put_global_locked(sleeper);
  sched_lock.unlock();
  std::atomic<bool> woken{false};
  std::thread waiter([&] {
    slept.wait();
    woken = true;
  });
  EXPECT_TRUE(wait_until([&] { return woken.load(); }, std::chrono::seconds(20)));
  wake_state.spinning_ms.fetch_sub(1);
  internal::wake_p();
  waiter.join();
  done.wait();
  expect_quiet();
}

TEST(Parallelism, NoMoreGoroutinesRunAtOnceThanProcessors) {
  const int procs = gomaxprocs(0);
  const uint64_t retaken = taking.retaken.load();
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
  // A thread that sleeps (in a page fault; under TSan in its atomics) loses its P, and goes on
  // without one until its next call of the runtime.
  const auto slept = static_cast<int>(taking.retaken.load() - retaken);
  EXPECT_LE(most, procs + slept) << slept << " Ps were taken from threads that slept";
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

}  // namespace
}  // namespace gofer
