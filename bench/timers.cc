// Timers: goroutines that sleep, and timers that are stopped or set anew long before their time.
#include "workloads.h"

#include <gofer/go.h>
#include <gofer/timer.h>
#include <gofer/wait_group.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string_view>
#include <vector>

namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr auto nap = 100ms;

// All are started at once and sleep for the same time.
void sleepers(const job& j, std::string_view name) {
  const long n = j.n;
  gofer::wait_group finished;
  std::atomic<long> woken{0};
  const stopwatch watch;
  finished.add(static_cast<int>(n));
  for (long i = 0; i < n; ++i) {
    gofer::go([&finished, &woken] {
      gofer::sleep_for(nap);
      woken.fetch_add(1, std::memory_order_relaxed);
      finished.done();
    });
  }
  finished.wait();
  const double ms = watch.ns() / ns_per_ms;
  check(woken.load() == n, "sleepers: count");
  check(ms >= std::chrono::duration<double, std::milli>(nap).count(), "sleepers: nobody is early");
  j.report(name, ms, "ms");
}

void sleepers_100k(const job& j) { sleepers(j, "sleepers_100k"); }
void sleepers_1m(const job& j) { sleepers(j, "sleepers_1m"); }

double start_stop_ns(long n) {
  long stopped = 0;
  const stopwatch watch;
  for (long i = 0; i < n; ++i) {
    gofer::timer t = gofer::after_func(1h, [] {});
    stopped += t.stop() ? 1 : 0;
  }
  const double ns = watch.ns_each(n);
  check(stopped == n, "timer_stop: count");
  return ns;
}

// Beside `others` that are pending all the time, each with another time.
void start_stop(const job& j, std::string_view name, long others) {
  std::vector<gofer::timer> pending;
  pending.reserve(static_cast<std::size_t>(others));
  for (long i = 0; i < others; ++i) {
    pending.push_back(gofer::after_func(1h + i * 1ms, [] {}));
  }
  start_stop_ns(j.n / 10 + 1);
  const double ns = start_stop_ns(j.n);
  for (gofer::timer& t : pending) check(t.stop(), "timer_stop: the others are pending");
  j.report(name, ns, "ns");
}

void timer_stop(const job& j) { start_stop(j, "timer_stop", 0); }
void timer_stop_beside_100k(const job& j) { start_stop(j, "timer_stop_beside_100k", 100'000); }

void timer_reset(const job& j) {
  gofer::timer t = gofer::after_func(1h, [] {});
  long pending = 0;
  const stopwatch watch;
  for (long i = 0; i < j.n; ++i) pending += t.reset(1h) ? 1 : 0;
  const double ns = watch.ns_each(j.n);
  check(pending == j.n && t.stop(), "timer_reset: count");
  j.report("timer_reset", ns, "ns");
}

const suite workloads{
    {"sleepers_100k", sleepers_100k, 100'000},
    {"sleepers_1m", sleepers_1m, 1'000'000},
    {"timer_stop", timer_stop, 5'000'000},
    {"timer_stop_beside_100k", timer_stop_beside_100k, 2'000'000},
    {"timer_reset", timer_reset, 10'000'000},
};

}  // namespace
}  // namespace bench
