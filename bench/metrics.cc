// What it costs to read the numbers of the scheduler, beside goroutines that wait.
#include "workloads.h"

#include <gofer/go.h>
#include <gofer/metrics.h>
#include <gofer/wait_group.h>

#include <cstdint>

namespace bench {
namespace {

constexpr std::uint64_t waiting = 10'000;

double read_ns(long n) {
  std::uint64_t seen = 0;
  const stopwatch watch;
  for (long i = 0; i < n; ++i) seen += gofer::debug::metrics().goroutines_waiting;
  const double ns = watch.ns_each(n);
  check(seen >= static_cast<std::uint64_t>(n) * (waiting - 1),
        "metrics_read: goroutines that wait");
  return ns;
}

void metrics_read(const job& j) {
  gofer::wait_group gate;
  gofer::wait_group finished;
  gate.add(1);
  for (std::uint64_t i = 0; i < waiting; ++i) finished.go([&gate] { gate.wait(); });
  while (gofer::debug::metrics().goroutines_waiting != waiting) gofer::yield();
  read_ns(j.n / 10 + 1);
  j.report("metrics_read", read_ns(j.n), "ns");
  gate.done();
  finished.wait();
}

const suite workloads{
    {"metrics_read", metrics_read, 100'000},
};

}  // namespace
}  // namespace bench
