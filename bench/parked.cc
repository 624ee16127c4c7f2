// What a parked goroutine costs: resident memory, page tables, and the time to get there.
//
// All of them wait in one wait_group whose counter is 1. Memory is read from /proc/self/status
// before the first and after the last, so the library's own start is not in it.
#include "workloads.h"

#include <gofer/go.h>
#include <gofer/wait_group.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

namespace bench {

memory read_memory() {
  memory found{-1, -1};
  std::FILE* status = std::fopen("/proc/self/status", "r");
  check(status != nullptr, "cannot read /proc/self/status");
  char line[256];
  long kib = 0;
  while (std::fgets(line, sizeof line, status) != nullptr) {
    if (std::sscanf(line, "VmRSS: %ld", &kib) == 1) found.resident_bytes = kib * 1024;
    if (std::sscanf(line, "VmPTE: %ld", &kib) == 1) found.page_table_bytes = kib * 1024;
  }
  std::fclose(status);
  check(found.resident_bytes >= 0 && found.page_table_bytes >= 0, "no VmRSS or VmPTE");
  return found;
}

namespace {

void park(const job& j, const std::string& name) {
  using namespace std::chrono_literals;
  const long n = j.n;
  gofer::wait_group gate;
  gofer::wait_group finished;
  std::atomic<long> started{0};
  std::atomic<long> released{0};
  gate.add(1);
  finished.add(static_cast<int>(n));

  const memory before = read_memory();
  const stopwatch watch;
  for (long i = 0; i < n; ++i) {
    gofer::go([&] {
      started.fetch_add(1, std::memory_order_relaxed);
      gate.wait();
      released.fetch_add(1, std::memory_order_relaxed);
      finished.done();
    });
  }
  while (started.load(std::memory_order_relaxed) != n) gofer::yield();
  const double create_ns = watch.ns_each(n);
  std::this_thread::sleep_for(100ms);  // the last ones are on their way into wait()
  const memory after = read_memory();

  check(released.load() == 0, "parked: the gate holds");
  gate.done();
  finished.wait();
  check(released.load() == n, "parked: all go on");

  const auto each = [n](long grown) { return static_cast<double>(grown) / static_cast<double>(n); };
  j.report(name + "_rss", each(after.resident_bytes - before.resident_bytes), "bytes");
  j.report(name + "_pte", each(after.page_table_bytes - before.page_table_bytes), "bytes");
  j.report(name + "_create", create_ns, "ns");
}

void parked_100k(const job& j) { park(j, "parked_100k"); }
void parked_1m(const job& j) { park(j, "parked_1m"); }

const suite workloads{
    {"parked_100k", parked_100k, 100'000},
    {"parked_1m", parked_1m, 1'000'000},
};

}  // namespace
}  // namespace bench
