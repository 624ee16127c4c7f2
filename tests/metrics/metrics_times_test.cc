// The histograms of debug::metrics(): samples say what happens to all goroutines, however many
// switches there are, and the times are those of the goroutines.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>

#include "support/model_gm.h"
#include "support/procs.h"
#include "support/quiescent.h"
#include "support/scaled.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;
using debug::metrics;
using debug::metrics_snapshot;
using debug::time_histogram;
using test::Procs;
using test::scaled;

constexpr double ms = 1e6;

using MetricsTimes = test::QuiescentTest;

struct Times {
  time_histogram latency;
  time_histogram slices;
};

// What f() adds to the histograms, when all of it has come to an end.
template <class F>
Times times_of(F f) {
  std::this_thread::sleep_for(200ms);  // after that, samples do not stand for what was before
  const metrics_snapshot before = metrics();
  f();
  EXPECT_TRUE(test::quiescent());
  const metrics_snapshot after = metrics();
  Times t{after.latency, after.slices};
  t.latency -= before.latency;
  t.slices -= before.slices;
  return t;
}

void compute_for(clock::duration time) {
  for (const auto end = clock::now() + time; clock::now() < end;) {
  }
}

// Each M has some hundreds of goroutines counted for its next sample. Samples of goroutines that
// lose their processors in the middle have no slice.
TEST_F(MetricsTimes, StandForAllSwitchesOfABusyProgram) {
  constexpr int yields = scaled(400'000);
  const Times t = times_of([] {
    run([] {
      wait_group group;
      for (int g = 0; g < 4; ++g) {
        group.go([] {
          for (int i = 0; i < yields; ++i) yield();
        });
      }
      group.wait();
    });
  });
  const std::uint64_t all = 4 * yields;
  const std::uint64_t counted = t.latency.count();
  EXPECT_LE(counted, all + all / 4);
  // A goroutine that yields alone goes on at once, without having been runnable.
  if (gomaxprocs(0) == 1) {
    EXPECT_GE(counted, all / 2);
  }
  EXPECT_LE(t.slices.count(), counted + all / 4);
  EXPECT_GE(t.slices.count(), counted / 4);
}

TEST_F(MetricsTimes, MeasureEachSwitchOfAQuietProgram) {
  const Procs one(1);
  constexpr int count = 60;
  const Times t = times_of([] {
    run([] {
      for (int i = 0; i < count; ++i) sleep_for(3ms);
    });
  });
  EXPECT_GE(t.latency.count(), std::uint64_t{count} / 2);
}

TEST_F(MetricsTimes, ShowThatGoroutinesWaitForASaturatedProcessor) {
  if (test::model_gm()) GTEST_SKIP() << "the first sample may stand for a thousand before it";
  const Procs one(1);
  constexpr int goroutines = 8;
  const Times t = times_of([] {
    run([] {
      wait_group group;
      for (int g = 0; g < goroutines; ++g) {
        group.go([] {
          for (int i = 0; i < 10; ++i) {
            compute_for(2ms);
            yield();
          }
        });
      }
      group.wait();
    });
  });
  // Seven others before it, 2 ms each; but one that was paused may go on at once.
  EXPECT_GE(t.latency.quantile_ns(0.95), 14 * ms / 10);
  EXPECT_GE(t.latency.mean_ns(), 14 * ms / 10);
  EXPECT_GE(t.slices.quantile_ns(0.5), 2 * ms / 10);
}

TEST_F(MetricsTimes, ShowThatGoroutinesDoNotWaitForAnIdleOne) {
  const Procs one(1);
  const Times t = times_of([] {
    run([] {
      chan<int> there(0);
      chan<int> back(0);
      wait_group group;
      group.go([&] {
        for (const int v : there) back.send(v);
      });
      for (int i = 0; i < scaled(20'000); ++i) {
        there.send(i);
        static_cast<void>(back.recv());
      }
      there.close();
      group.wait();
    });
  });
  ASSERT_GT(t.latency.count(), 0u);
  EXPECT_LE(t.latency.quantile_ns(0.5), 1 * ms);
  EXPECT_LE(t.slices.quantile_ns(0.5), 1 * ms);
}

// Their latency is the time from `go` until they begin. One of them is a sample at least.
TEST_F(MetricsTimes, MeasureNewGoroutines) {
  const Procs one(1);
  const Times t = times_of([] {
    run([] {
      const no_preempt whole;
      for (int i = 0; i < 5000; ++i) go([] {});
      compute_for(50ms);
    });
  });
  EXPECT_GE(t.latency.quantile_ns(1), 50 * ms);
  EXPECT_GE(t.latency.mean_ns(), 5 * ms);
}

TEST_F(MetricsTimes, MeasureGoroutinesThatThreadsStartAndWake) {
  const Procs one(1);
  const Times t = times_of([] {
    chan<int> gate(0);
    for (int i = 0; i < 200; ++i) {
      go([&] { static_cast<void>(gate.recv()); });
      gate.send(i);
    }
  });
  EXPECT_GE(t.latency.count(), 40u);
}

}  // namespace
}  // namespace gofer
