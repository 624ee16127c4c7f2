// debug::metrics(): each number moves when what it counts happens.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "runtime/procs/retake.h"
#include "runtime/report/dump_signals.h"
#include "runtime/threads/threads.h"
#include "runtime/watch/preempt.h"
#include "runtime/watch/prologue.h"
#include "support/beside.h"
#include "support/model_gm.h"
#include "support/pipe.h"
#include "support/procs.h"
#include "support/quiescent.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using debug::metrics;
using debug::metrics_snapshot;
using test::compute;
using test::model_gm;
using test::Pipe;
using test::Procs;
using test::wait_until;

using Metrics = test::QuiescentTest;
using Field = std::uint64_t metrics_snapshot::*;

// Repeats step() until the counter has grown by `enough`.
template <class Step>
[[nodiscard]] bool grows(Field field, std::uint64_t enough, Step step) {
  const std::uint64_t before = metrics().*field;
  return wait_until([&] {
    step();
    return metrics().*field >= before + enough;
  });
}

[[nodiscard]] bool becomes(Field field, std::uint64_t value) {
  return wait_until([=] { return metrics().*field == value; });
}

TEST_F(Metrics, AtRestSayThatAllIsIdle) {
  run([] {});
  // sysmon, the template thread, and one for dumps.
  const auto own = static_cast<std::uint64_t>(internal::own_threads + internal::dump_threads());
  EXPECT_TRUE(wait_until([=] {
    const metrics_snapshot m = metrics();
    return m.procs_idle == m.gomaxprocs && m.threads_idle + own == m.threads &&
           m.threads_spinning == 0 && m.procs_running == 0;
  }));
  const metrics_snapshot m = metrics();
  EXPECT_EQ(m.gomaxprocs, static_cast<std::uint64_t>(gomaxprocs(0)));
  EXPECT_EQ(m.goroutines, 0u);
  EXPECT_EQ(m.goroutines_running + m.goroutines_runnable + m.goroutines_waiting, 0u);
  EXPECT_EQ(m.goroutines_not_in_go, 0u);
  EXPECT_EQ(m.global_queue + m.local_queues, 0u);
  EXPECT_GT(m.record_bytes, 0u);
  EXPECT_GE(m.threads_started, m.threads);
}

TEST_F(Metrics, CountEveryGoroutineThatIsCreated) {
  const std::uint64_t before = metrics().goroutines_created;
  run([] {
    wait_group group;
    for (int i = 0; i < 1000; ++i) group.go([] {});
    group.wait();
  });
  std::thread([] {
    for (int i = 0; i < 100; ++i) test::started.go([] {});
  }).join();
  ASSERT_TRUE(test::quiescent());
  EXPECT_EQ(metrics().goroutines_created, before + 1101);
}

TEST_F(Metrics, TellWaitingFromRunnableAndRunningGoroutines) {
  const Procs one(1);
  wait_group gate;
  gate.add(1);
  for (int i = 0; i < 10; ++i) go([&] { gate.wait(); });
  EXPECT_TRUE(becomes(&metrics_snapshot::goroutines_waiting, 10));
  const metrics_snapshot m = run([] {
    const no_preempt whole;
    for (int i = 0; i < 300; ++i) go([] {});
    return metrics();
  });
  gate.done();
  EXPECT_EQ(m.goroutines_running, 1u);
  EXPECT_EQ(m.goroutines_runnable, 300u);
  EXPECT_EQ(m.goroutines_waiting, 10u);
  EXPECT_EQ(m.goroutines, 311u);
  EXPECT_EQ(m.global_queue + m.local_queues, 300u);
  EXPECT_EQ(m.procs_running, 1u);
  EXPECT_EQ(m.threads_with_processor, 1u);
  EXPECT_EQ(m.local_queue_longest, m.local_queues);
  if (model_gm()) {
    EXPECT_EQ(m.local_queues, 0u);
  }
}

TEST_F(Metrics, CountGoroutinesAndThreadsInCalls) {
  Pipe pipe;
  wait_group done;
  for (int i = 0; i < 3; ++i) {
    done.go([&] { EXPECT_TRUE(blocking(handoff, [&] { return pipe.read_one(); })); });
  }
  EXPECT_TRUE(becomes(&metrics_snapshot::goroutines_not_in_go, 3));
  EXPECT_TRUE(becomes(&metrics_snapshot::threads_in_calls, 3));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pipe.write_one());
  done.wait();
  EXPECT_EQ(metrics().goroutines_not_in_go, 0u);
}

TEST_F(Metrics, CountBoundThreads) {
  wait_group gate;
  gate.add(1);
  for (int i = 0; i < 2; ++i) {
    go([&] {
      lock_os_thread();
      gate.wait();
      unlock_os_thread();
    });
  }
  EXPECT_TRUE(becomes(&metrics_snapshot::threads_bound, 2));
  gate.done();
  EXPECT_TRUE(becomes(&metrics_snapshot::threads_bound, 0));
}

TEST_F(Metrics, CountSteals) {
  const auto work_by_one = [] {
    run([] {
      wait_group group;
      for (int i = 0; i < 200; ++i) group.go([] { compute(20'000); });
      group.wait();
    });
  };
  if (gomaxprocs(0) == 1 || model_gm()) {
    const metrics_snapshot before = metrics();
    work_by_one();
    EXPECT_EQ(metrics().steals, before.steals);
    EXPECT_EQ(metrics().stolen, before.stolen);
    return;
  }
  EXPECT_TRUE(grows(&metrics_snapshot::steals, 3, work_by_one));
  EXPECT_GE(metrics().stolen, metrics().steals);
}

TEST_F(Metrics, CountHandOffs) {
  EXPECT_TRUE(
      grows(&metrics_snapshot::hand_offs, 10, [] { run([] { blocking(handoff, [] {}); }); }));
}

// With one processor, the second goroutine runs only when the first has lost it.
template <class Read>
void block_beside_another(Read read) {
  const Procs one(1);
  Pipe pipe;
  wait_group done;
  std::atomic<bool> reads{false};
  done.go([&] {
    reads = true;
    EXPECT_TRUE(read(pipe));
  });
  ASSERT_TRUE(wait_until([&] { return reads.load(); }));
  done.go([&] { EXPECT_TRUE(pipe.write_one()); });
  done.wait();
}

TEST_F(Metrics, CountProcessorsTakenFromThreadsInAnnouncedCalls) {
  EXPECT_TRUE(grows(&metrics_snapshot::retakes_announced, 3, [] {
    block_beside_another(
        [](const Pipe& pipe) { return blocking([&] { return pipe.read_one(); }); });
  }));
}

TEST_F(Metrics, CountProcessorsTakenFromThreadsThatSleep) {
  EXPECT_TRUE(grows(&metrics_snapshot::retakes_asleep, 3, [] {
    block_beside_another([](const Pipe& pipe) { return pipe.read_one(); });
  }));
}

// Goroutines that compute on every processor, and one more. step() is what they do meanwhile.
template <class Step>
[[nodiscard]] bool counts_preemptions(Field field, Step step) {
  std::atomic<bool> stop{false};
  wait_group all;
  for (int i = 0; i <= gomaxprocs(0); ++i) {
    all.go([&] {
      while (!stop) step();
    });
  }
  const bool grown = grows(field, 3, [] {});
  stop = true;
  all.wait();
  return grown;
}

TEST_F(Metrics, CountPreemptionsByTheFlag) {
  EXPECT_TRUE(counts_preemptions(&metrics_snapshot::preemptions_flag, [] {
    compute(100);
    checkpoint();
  }));
}

using PausedMetrics = test::PausingTest;

TEST_F(PausedMetrics, CountPreemptionsByTheSignal) {
  EXPECT_TRUE(
      counts_preemptions(&metrics_snapshot::preemptions_signal, [] { compute(1'000'000); }));
}

// Without signals, which would often come first.
TEST_F(PausedMetrics, CountPreemptionsByPrologues) {
  internal::preemption.has_signal = false;
  EXPECT_TRUE(
      counts_preemptions(&metrics_snapshot::preemptions_prologue, [] { gofer_prologue_pause(); }));
  internal::preemption.has_signal = true;
}

TEST_F(PausedMetrics, CountPausedThreadsAsTied) {
  std::atomic<bool> stop{false};
  wait_group all;
  for (int i = 0; i < gomaxprocs(0) + 3; ++i) {
    all.go([&] {
      while (!stop) compute(1000);
    });
  }
  EXPECT_TRUE(wait_until([] { return metrics().threads_tied >= 1; }));
  EXPECT_TRUE(wait_until([] { return metrics().global_queue_tied >= 1; }));
  stop = true;
  all.wait();
}

TEST_F(Metrics, CountTimers) {
  const metrics_snapshot before = metrics();
  run([] {
    wait_group group;
    for (int i = 0; i < 100; ++i) group.go([] { sleep_for(1ms); });
    group.wait();
  });
  EXPECT_GE(metrics().timers_fired, before.timers_fired + 100);
  EXPECT_TRUE(becomes(&metrics_snapshot::timers, before.timers));
  run([&] {
    timer waits(1h);
    EXPECT_EQ(metrics().timers, before.timers + 1);
    waits.stop();
    EXPECT_EQ(metrics().timers, before.timers);
  });
}

TEST_F(Metrics, CountDescriptors) {
  run([] {
    const metrics_snapshot before = metrics();
    Pipe pipe;
    {
      const fd in(dup(pipe.ends[0]));
      EXPECT_EQ(metrics().poll_registered, before.poll_registered + 1);
      wait_group done;
      for (int i = 0; i < 10; ++i) {
        done.go([&] {
          char c;
          EXPECT_EQ(in.read({&c, 1}), 1u);
        });
        EXPECT_TRUE(wait_until([&] { return metrics().poll_waiting == before.poll_waiting + 1; }));
        EXPECT_TRUE(pipe.write_one());
        done.wait();
      }
    }
    const metrics_snapshot after = metrics();
    EXPECT_EQ(after.poll_registered, before.poll_registered);
    EXPECT_EQ(after.poll_wakeups, before.poll_wakeups + 10);
    EXPECT_GT(after.poll_visits, before.poll_visits);
    EXPECT_EQ(after.poll_waiting, before.poll_waiting);
  });
}

TEST_F(Metrics, CountStopsOfTheWorld) {
  const metrics_snapshot before = metrics();
  const int procs = gomaxprocs(0);
  gomaxprocs(procs + 1);
  gomaxprocs(procs);
  const metrics_snapshot after = metrics();
  EXPECT_EQ(after.pauses_stopping.count(), before.pauses_stopping.count() + 2);
  EXPECT_EQ(after.pauses_total.count(), before.pauses_total.count() + 2);
  EXPECT_GE(after.pauses_total.sum_ns - before.pauses_total.sum_ns,
            after.pauses_stopping.sum_ns - before.pauses_stopping.sum_ns);
}

TEST_F(Metrics, CountStacks) {
  ASSERT_TRUE(becomes(&metrics_snapshot::stacks_in_use, 0));  // the last one is on its way
  const metrics_snapshot before = metrics();
  wait_group gate;
  gate.add(1);
  constexpr std::uint64_t count = 500;
  for (std::uint64_t i = 0; i < count; ++i) go([&] { gate.wait(); });
  ASSERT_TRUE(becomes(&metrics_snapshot::stacks_in_use, before.stacks_in_use + count));
  const metrics_snapshot with = metrics();
  EXPECT_GE(with.stacks_reserved_bytes, with.stacks_in_use_bytes);
  EXPECT_GE(with.stacks_in_use_bytes, with.stacks_in_use * 128 * 1024);
  gate.done();
  EXPECT_TRUE(becomes(&metrics_snapshot::stacks_in_use, before.stacks_in_use));
  EXPECT_GE(metrics().stacks_cached, count / 2);
  EXPECT_GE(metrics().stacks_cached_bytes, count / 2 * 128 * 1024);
}

}  // namespace
}  // namespace gofer
