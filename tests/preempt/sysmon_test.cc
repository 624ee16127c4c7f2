// The scheduler's other duties while goroutines hold all Ps, block and are paused: timers, stopping
// the world, gomaxprocs; and that nothing is done when there is nothing to do.
// gofer-test: stress
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

#include "runtime/base/sanitizer.h"
#include "runtime/procs/current.h"
#include "runtime/procs/lost.h"
#include "runtime/procs/procs.h"
#include "runtime/procs/retake.h"
#include "runtime/procs/spinning.h"
#include "runtime/procs/thread_gate.h"
#include "runtime/sched/verify.h"
#include "runtime/watch/sysmon.h"
#include "support/beside.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using internal::taking;
using internal::thread_gate;
using internal::wake_state;
using namespace test;

using Sysmon = PausingTest;

// Goroutines that compute, and some that block unannounced, until the end of the scope.
class Hogs {
 public:
  explicit Hogs(int spinners, int sleepers = 0) {
    for (int i = 0; i < spinners; ++i) {
      group_.go([this] {
        while (!stop_) compute(1000);
      });
    }
    for (int i = 0; i < sleepers; ++i) {
      group_.go([this] {
        while (!stop_) {
          usleep(500);
          compute(20'000);
        }
      });
    }
  }
  ~Hogs() {
    stop_ = true;
    group_.wait();
  }
  Hogs(const Hogs&) = delete;
  Hogs& operator=(const Hogs&) = delete;

 private:
  std::atomic<bool> stop_{false};
  wait_group group_;
};

TEST_F(Sysmon, SleeperIsWokenSoonBesideSpinners) {
  Procs two(2);
  Hogs hogs(4);
  std::vector<std::chrono::nanoseconds> late;
  wait_group wg;
  wg.go([&] {
    for (int i = 0; i < 100; ++i) {
      const auto then = clock::now() + 1ms;
      sleep_for(1ms);
      late.push_back(clock::now() - then);
    }
  });
  wg.wait();
  std::sort(late.begin(), late.end());
  // Behind the spinners in a queue it would wait for 20 ms and more.
  EXPECT_LT(late[late.size() / 2], 15ms);
}

TEST_F(Sysmon, FunctionsAndTickersRunBesideSpinners) {
  Hogs hogs(gomaxprocs(0) + 2);
  std::atomic<int> called{0};
  for (int i = 0; i < 10; ++i) {
    after_func(std::chrono::milliseconds(i), [&] { ++called; });
  }
  EXPECT_TRUE(wait_until([&] { return called == 10; }));
  ticker t(1ms);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(t.c().recv().has_value());
  wait_group wg;
  wg.go([&] {
    for (int i = 0; i < 10; ++i) t.c().recv();
  });
  wg.wait();
}

TEST_F(Sysmon, TheWorldIsStoppedWhileGoroutinesSpinBlockAndArePaused) {
  Procs restore(2);
  Hogs hogs(4, 6);
  Light light;
  const uint64_t before = pauses();
  int round = 0;
  EXPECT_TRUE(go_on_until([&] {
    gomaxprocs(1 + round++ % 4);
    internal::verify_scheduler();
    std::this_thread::sleep_for(2ms);  // a world that never runs pauses no goroutine
    return round >= 50 && pauses() - before >= 20 && light.woken() >= 20;
  })) << "rounds: "
      << round << ", pauses: " << pauses() - before << ", woken: " << light.woken();
}

TEST_F(Sysmon, TheWorldIsStoppedByAGoroutineAmongSpinners) {
  Procs restore(2);
  Hogs hogs(4, 4);
  wait_group wg;
  wg.go([] {
    for (int i = 0; i < 20; ++i) {
      gomaxprocs(1 + i % 4);
      internal::verify_scheduler();
    }
  });
  wg.wait();
}

int64_t process_cpu_ns() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

TEST_F(Sysmon, NothingIsDoneWhenAllIsIdle) {
  if (internal::sanitizers_enabled) GTEST_SKIP() << "a sanitizer has threads of its own";
  constexpr int goroutines = 10'000;
  wait_group end;
  end.add(1);
  std::atomic<int> there{0};
  wait_group all;
  for (int i = 0; i < goroutines; ++i) {
    all.go([&] {
      ++there;
      end.wait();
    });
  }
  ASSERT_TRUE(wait_until([&] { return there == goroutines; }));
  ASSERT_TRUE(wait_until([] {
    return wake_state.sysmon_sleeps.load() == static_cast<uint32_t>(internal::SysmonSleep::deep);
  }));
  const int64_t before = process_cpu_ns();
  usleep(300'000);
  EXPECT_LT(process_cpu_ns() - before, 10'000'000);
  // And it wakes when it is needed.
  {
    Hogs hogs(gomaxprocs(0) + 1);
    Light light;
    EXPECT_TRUE(wait_until([&] { return light.woken() >= 5; }));
  }
  end.done();
  all.wait();
}

// A thread that sysmon took for one that sleeps.
TEST_F(Sysmon, AThreadThatComputesWithoutAProcessorGetsAnIdleOne) {
  if (!taking.has_membarrier) GTEST_SKIP() << "no membarrier";
  const Procs two(2);
  std::atomic<bool> stop{false};
  std::atomic<internal::M*> m{nullptr};
  wait_group all;
  for (int i = 0; i < 2; ++i) {
    all.go([&] {
      m = internal::current_m();
      while (!stop) asm volatile("");
    });
  }
  ASSERT_TRUE(wait_until([&] { return m != nullptr && wake_state.idle_p_count == 0; }));
  internal::M* computes = m;
  internal::P* p = computes->p;
  internal::note_lost(computes, -1, internal::call_crowd);
  if (internal::take_p(p, internal::PWord(p->word.load()))) {
    internal::hand_off(p);
    EXPECT_TRUE(wait_until(
        [&] { return computes->lost_in == internal::no_crowd && wake_state.idle_p_count == 0; }));
  } else {
    internal::forget_lost(computes);  // it was in the runtime just then
  }
  stop = true;
  all.wait();
}

}  // namespace
}  // namespace gofer
