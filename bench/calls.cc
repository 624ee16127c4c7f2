// Goroutines that do nothing but block their threads: how many calls they get done.
#include <gofer/blocking.h>
#include <gofer/go.h>
#include <gofer/timer.h>
#include <gofer/wait_group.h>
#include <time.h>

#include <atomic>
#include <chrono>

#include "workloads.h"

namespace bench {
namespace {

enum class call { announced, handoff, unannounced };

template <call form, int call_us>
void block() {
  const auto nap = [] {
    constexpr timespec time{0, call_us * 1000L};
    nanosleep(&time, nullptr);
  };
  if constexpr (form == call::announced) {
    gofer::blocking(nap);
  } else if constexpr (form == call::handoff) {
    gofer::blocking(gofer::handoff, nap);
  } else {
    nap();
  }
}

// The goroutines call for n ms. The time includes what the last calls take.
template <call form, int call_us, int goroutines>
void calls(const job& j) {
  std::atomic<bool> stop{false};
  std::atomic<long> done{0};
  gofer::wait_group finished;
  const stopwatch watch;
  for (int i = 0; i < goroutines; ++i) {
    finished.go([&stop, &done] {
      long mine = 0;
      for (; !stop.load(std::memory_order_relaxed); ++mine) block<form, call_us>();
      done.fetch_add(mine, std::memory_order_relaxed);
    });
  }
  gofer::sleep_for(std::chrono::milliseconds(j.n));
  stop = true;
  finished.wait();
  const double seconds = watch.ns() / 1e9;
  check(done.load() >= goroutines, "calls: count");
  j.report(j.name, static_cast<double>(done.load()) / seconds, "calls/s");
}

constexpr long run_ms = 400;

const suite workloads{
    {"calls_announced_10us_1", calls<call::announced, 10, 1>, run_ms},
    {"calls_announced_10us_10", calls<call::announced, 10, 10>, run_ms},
    {"calls_announced_10us_100", calls<call::announced, 10, 100>, run_ms},
    {"calls_announced_100us_1", calls<call::announced, 100, 1>, run_ms},
    {"calls_announced_100us_10", calls<call::announced, 100, 10>, run_ms},
    {"calls_announced_100us_100", calls<call::announced, 100, 100>, run_ms},
    {"calls_announced_1ms_1", calls<call::announced, 1'000, 1>, run_ms},
    {"calls_announced_1ms_10", calls<call::announced, 1'000, 10>, run_ms},
    {"calls_announced_1ms_100", calls<call::announced, 1'000, 100>, run_ms},
    {"calls_announced_10ms_1", calls<call::announced, 10'000, 1>, run_ms},
    {"calls_announced_10ms_10", calls<call::announced, 10'000, 10>, run_ms},
    {"calls_announced_10ms_100", calls<call::announced, 10'000, 100>, run_ms},
    {"calls_handoff_10us_1", calls<call::handoff, 10, 1>, run_ms},
    {"calls_handoff_10us_10", calls<call::handoff, 10, 10>, run_ms},
    {"calls_handoff_10us_100", calls<call::handoff, 10, 100>, run_ms},
    {"calls_handoff_100us_1", calls<call::handoff, 100, 1>, run_ms},
    {"calls_handoff_100us_10", calls<call::handoff, 100, 10>, run_ms},
    {"calls_handoff_100us_100", calls<call::handoff, 100, 100>, run_ms},
    {"calls_handoff_1ms_1", calls<call::handoff, 1'000, 1>, run_ms},
    {"calls_handoff_1ms_10", calls<call::handoff, 1'000, 10>, run_ms},
    {"calls_handoff_1ms_100", calls<call::handoff, 1'000, 100>, run_ms},
    {"calls_handoff_10ms_1", calls<call::handoff, 10'000, 1>, run_ms},
    {"calls_handoff_10ms_10", calls<call::handoff, 10'000, 10>, run_ms},
    {"calls_handoff_10ms_100", calls<call::handoff, 10'000, 100>, run_ms},
    {"calls_unannounced_10us_1", calls<call::unannounced, 10, 1>, run_ms},
    {"calls_unannounced_10us_10", calls<call::unannounced, 10, 10>, run_ms},
    {"calls_unannounced_10us_100", calls<call::unannounced, 10, 100>, run_ms},
    {"calls_unannounced_100us_1", calls<call::unannounced, 100, 1>, run_ms},
    {"calls_unannounced_100us_10", calls<call::unannounced, 100, 10>, run_ms},
    {"calls_unannounced_100us_100", calls<call::unannounced, 100, 100>, run_ms},
    {"calls_unannounced_1ms_1", calls<call::unannounced, 1'000, 1>, run_ms},
    {"calls_unannounced_1ms_10", calls<call::unannounced, 1'000, 10>, run_ms},
    {"calls_unannounced_1ms_100", calls<call::unannounced, 1'000, 100>, run_ms},
    {"calls_unannounced_10ms_1", calls<call::unannounced, 10'000, 1>, run_ms},
    {"calls_unannounced_10ms_10", calls<call::unannounced, 10'000, 10>, run_ms},
    {"calls_unannounced_10ms_100", calls<call::unannounced, 10'000, 100>, run_ms},
};

}  // namespace
}  // namespace bench
