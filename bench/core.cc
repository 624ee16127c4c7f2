// The scheduler alone: the cost of a yield, and of a goroutine's whole life in four shapes.
//
// The timed goroutines do nothing but done(): a check inside them would be measured too. So each
// shape is checked by what waits for it, and spawn_join by one more pass that is not timed.
#include "workloads.h"

#include <gofer/go.h>
#include <gofer/wait_group.h>

#include <atomic>

namespace bench {
namespace {

// Two goroutines yield to each other, n times each. The gate keeps the first from running ahead
// while the second is made.
double yield_ns(long n) {
  gofer::wait_group gate;
  gofer::wait_group finished;
  long yields[2] = {0, 0};
  gate.add(1);
  finished.add(2);
  for (long& count : yields) {
    gofer::go([&gate, &finished, &count, n] {
      gate.wait();
      for (long i = 0; i < n; ++i) gofer::yield();
      count = n;
      finished.done();
    });
  }
  gofer::yield();
  const stopwatch watch;
  gate.done();
  finished.wait();
  const double ns = watch.ns_each(2 * n);
  check(yields[0] + yields[1] == 2 * n, "yield: count");
  return ns;
}

void yield(const job& j) {
  yield_ns(j.n / 10 + 1);
  j.report("yield", yield_ns(j.n), "ns");
}

// All are made before anybody waits for them.
double spawn_join_ns(long n) {
  gofer::wait_group wg;
  const stopwatch watch;
  wg.add(static_cast<int>(n));
  for (long i = 0; i < n; ++i) gofer::go([&wg] { wg.done(); });
  wg.wait();
  return watch.ns_each(n);
}

void check_spawn_join(long n) {
  gofer::wait_group wg;
  std::atomic<long> sum{0};
  wg.add(static_cast<int>(n));
  for (long i = 0; i < n; ++i) {
    gofer::go([&wg, &sum, i] {
      sum.fetch_add(i, std::memory_order_relaxed);
      wg.done();
    });
  }
  wg.wait();
  check(sum.load() == n * (n - 1) / 2, "spawn_join: each goroutine runs once");
}

// The first pass finds the runtime empty, the second one finds what the first left behind.
void spawn_join(const job& j) {
  j.report("spawn_join_first", spawn_join_ns(j.n), "ns");
  j.report("spawn_join_second", spawn_join_ns(j.n), "ns");
  check_spawn_join(j.n / 10 + 1);
}

// One at a time: start it, wait for it.
double spawn_serial_ns(long n) {
  gofer::wait_group wg;
  long ran = 0;
  const stopwatch watch;
  for (long i = 0; i < n; ++i) {
    wg.add(1);
    gofer::go([&wg, &ran] {
      ++ran;
      wg.done();
    });
    wg.wait();
  }
  const double ns = watch.ns_each(n);
  check(ran == n, "spawn_serial: count");
  return ns;
}

void spawn_serial(const job& j) {
  spawn_serial_ns(j.n / 10 + 1);
  j.report("spawn_serial", spawn_serial_ns(j.n), "ns");
}

// n goroutines that each start n more and wait for them.
void spawn_nested(const job& j) {
  const long n = j.n;
  gofer::wait_group outer;
  std::atomic<long> joined{0};
  const stopwatch watch;
  outer.add(static_cast<int>(n));
  for (long i = 0; i < n; ++i) {
    gofer::go([&outer, &joined, n] {
      gofer::wait_group inner;
      inner.add(static_cast<int>(n));
      for (long k = 0; k < n; ++k) gofer::go([&inner] { inner.done(); });
      inner.wait();
      joined.fetch_add(n, std::memory_order_relaxed);
      outer.done();
    });
  }
  outer.wait();
  const double ns = watch.ns_each(n * n + n);
  check(joined.load() == n * n, "spawn_nested: count");
  j.report("spawn_nested", ns, "ns");
}

const suite workloads{
    {"yield", yield, 5'000'000},
    {"spawn_join", spawn_join, 1'000'000},
    {"spawn_serial", spawn_serial, 1'000'000},
    {"spawn_nested", spawn_nested, 1'000},
};

}  // namespace
}  // namespace bench
