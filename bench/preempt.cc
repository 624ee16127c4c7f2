// No goroutine stops the others: lateness beside goroutines that compute, and threads that block.
#include <gofer/blocking.h>
#include <gofer/go.h>
#include <gofer/timer.h>
#include <gofer/wait_group.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "workloads.h"

namespace bench {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

void compute() { asm volatile(""); }

// A goroutine that sleeps for 1 ms, n times, beside some that never stop computing.
void lateness(const job& j, std::string_view name, int spinners) {
  std::atomic<bool> stop{false};
  gofer::wait_group finished;
  for (int i = 0; i < spinners; ++i) {
    finished.go([&stop] {
      while (!stop.load(std::memory_order_relaxed)) compute();
    });
  }
  gofer::sleep_for(50ms);
  std::vector<double> late(static_cast<std::size_t>(j.n));
  for (double& us : late) {
    const auto due = clock::now() + 1ms;
    gofer::sleep_for(1ms);
    us = std::chrono::duration<double, std::micro>(clock::now() - due).count();
  }
  stop = true;
  finished.wait();
  std::sort(late.begin(), late.end());
  const std::string metric(name);
  j.report(metric + "_p50", late[late.size() / 2], "us");
  j.report(metric + "_p99", late[late.size() * 99 / 100], "us");
}

void late_0(const job& j) { lateness(j, "late_0", 0); }
void late_2(const job& j) { lateness(j, "late_2", 2); }
void late_4(const job& j) { lateness(j, "late_4", 4); }
void late_16(const job& j) { lateness(j, "late_16", 16); }

// What it costs to say of a cheap system call that it may block.
void blocking_call(const job& j) {
  const auto bare = [] { syscall(SYS_getppid); };
  double least_bare = 0;
  double least_announced = 0;
  for (int round = 0; round < 10; ++round) {
    const stopwatch of_bare;
    for (long i = 0; i < j.n; ++i) bare();
    const double ns = of_bare.ns_each(j.n);
    const stopwatch of_announced;
    for (long i = 0; i < j.n; ++i) gofer::blocking(bare);
    const double announced_ns = of_announced.ns_each(j.n);
    if (round == 0 || ns < least_bare) least_bare = ns;
    if (round == 0 || announced_ns < least_announced) least_announced = announced_ns;
  }
  j.report("blocking_call", least_announced - least_bare, "ns");
}

// 100 goroutines, each blocks its thread for 10 ms, 10 times.
template <class Block>
void blocked(const job& j, std::string_view name, Block block) {
  gofer::wait_group finished;
  const stopwatch watch;
  for (long i = 0; i < j.n; ++i) {
    finished.go([&block] {
      for (int k = 0; k < 10; ++k) block();
    });
  }
  finished.wait();
  j.report(name, watch.ns() / ns_per_ms, "ms");
}

void nap() { usleep(10'000); }

void blocked_announced(const job& j) {
  blocked(j, "blocked_announced", [] { gofer::blocking(nap); });
}
void blocked_handoff(const job& j) {
  blocked(j, "blocked_handoff", [] { gofer::blocking(gofer::handoff, nap); });
}
void blocked_unannounced(const job& j) { blocked(j, "blocked_unannounced", nap); }

// How long a goroutine waits for its first run while another one blocks, or computes, for n ms.
template <class Occupy>
void wait_beside(const job& j, std::string_view name, Occupy occupy) {
  std::atomic<double> waited{0};
  gofer::wait_group finished;
  finished.go([&] {
    const stopwatch watch;
    finished.go([&waited, watch] { waited = watch.ns() / ns_per_ms; });
    occupy(std::chrono::milliseconds(j.n));
  });
  finished.wait();
  j.report(name, waited, "ms");
}

void wait_beside_blocked(const job& j) {
  wait_beside(j, "wait_beside_blocked", [](std::chrono::milliseconds time) {
    usleep(static_cast<useconds_t>(std::chrono::microseconds(time).count()));
  });
}

void wait_beside_computing(const job& j) {
  wait_beside(j, "wait_beside_computing", [](std::chrono::milliseconds time) {
    for (const auto end = clock::now() + time; clock::now() < end;) compute();
  });
}

// 16 goroutines that compute, the same amount each: what their preemption costs.
void spinners_16(const job& j) {
  gofer::wait_group finished;
  const stopwatch watch;
  for (int i = 0; i < 16; ++i) {
    finished.go([&j] {
      for (long k = 0; k < j.n; ++k) compute();
    });
  }
  finished.wait();
  j.report("spinners_16", watch.ns() / ns_per_ms, "ms");
}

// One step of a calculation that no compiler can shorten: each step needs the result of the one
// before, and takes a multiplication and an addition on every side.
constexpr std::uint64_t step(std::uint64_t x) {
  return x * 6364136223846793005U + 1442695040888963407U;
}

constexpr long steps_each = 5'000'000;  // about 8 ms at 2.5 GHz

std::uint64_t calculate() {
  std::uint64_t x = 1;
  for (long i = 0; i < steps_each; ++i) x = step(x);
  return x;
}

// n goroutines that compute for longer than a slice, started at once: a goroutine for each tile of
// a picture, each file, each request.
void compute_batch(const job& j) {
  const std::uint64_t one = calculate();
  std::atomic<std::uint64_t> sum{0};
  gofer::wait_group finished;
  const stopwatch watch;
  for (long i = 0; i < j.n; ++i) {
    finished.go([&sum] { sum.fetch_add(calculate(), std::memory_order_relaxed); });
  }
  finished.wait();
  const double ms = watch.ns() / ns_per_ms;
  check(sum.load() == one * static_cast<std::uint64_t>(j.n), "compute_batch: sum");
  j.report("compute_batch", ms, "ms");
}

// n goroutines compute until a flag is set by one that was started after them.
void late_setter(const job& j) {
  std::atomic<bool> set{false};
  std::atomic<long> passed{0};
  gofer::wait_group finished;
  const stopwatch watch;
  for (long i = 0; i < j.n; ++i) {
    finished.go([&set, &passed] {
      while (!set.load(std::memory_order_relaxed)) compute();
      passed.fetch_add(1, std::memory_order_relaxed);
    });
  }
  finished.go([&set] { set = true; });
  finished.go([] {});  // the goroutine started last runs first: it must not be the setter
  finished.wait();
  const double ms = watch.ns() / ns_per_ms;
  check(passed.load() == j.n, "late_setter: count");
  j.report(j.name, ms, "ms");
}

// What a check of a long loop costs whether it shall give way. On Go's side it is that of a
// function's prologue.
void checkpoint(const job& j) {
  double least_bare = 0;
  double least_checked = 0;
  for (int round = 0; round < 10; ++round) {
    const stopwatch of_bare;
    for (long i = 0; i < j.n; ++i) compute();
    const double bare_ns = of_bare.ns_each(j.n);
    const stopwatch of_checked;
    for (long i = 0; i < j.n; ++i) {
      compute();
      gofer::checkpoint();
    }
    const double checked_ns = of_checked.ns_each(j.n);
    if (round == 0 || bare_ns < least_bare) least_bare = bare_ns;
    if (round == 0 || checked_ns < least_checked) least_checked = checked_ns;
  }
  j.report("checkpoint", least_checked - least_bare, "ns");
}

const suite workloads{
    {"late_0", late_0, 1000},
    {"late_2", late_2, 1000},
    {"late_4", late_4, 1000},
    {"late_16", late_16, 1000},
    {"blocking_call", blocking_call, 200'000},
    {"blocked_announced", blocked_announced, 100},
    {"blocked_handoff", blocked_handoff, 100},
    {"blocked_unannounced", blocked_unannounced, 100},
    {"wait_beside_blocked", wait_beside_blocked, 1000},
    {"wait_beside_computing", wait_beside_computing, 1000},
    {"spinners_16", spinners_16, 100'000'000},
    {"compute_batch", compute_batch, 12'000},
    {"late_setter", late_setter, 200},
    {"late_setter_5000", late_setter, 5000},
    {"checkpoint", checkpoint, 10'000'000},
};

}  // namespace
}  // namespace bench
