// The 1:1 model: the same shapes with a std::thread where the others have a goroutine. Only a
// yardstick for the models' table, so the sizes are small.
#include "workloads.h"

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace bench {
namespace {

void spawn_join(const job& j) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(j.n));
  std::atomic<long> ran{0};
  const stopwatch watch;
  for (long i = 0; i < j.n; ++i) {
    threads.emplace_back([&ran] { ran.fetch_add(1, std::memory_order_relaxed); });
  }
  for (std::thread& t : threads) t.join();
  const double ns = watch.ns_each(j.n);
  check(ran.load() == j.n, "threads_spawn_join: count");
  j.report("threads_spawn_join", ns, "ns");
}

long fib_forked(long n) {
  if (n < 2) return n;
  long left = 0;
  std::thread branch([&left, n] { left = fib_forked(n - 1); });
  const long right = fib_forked(n - 2);
  branch.join();
  return left + right;
}

void fib(const job& j) {
  const stopwatch watch;
  const long value = fib_forked(j.n);
  const double ns = watch.ns_each(fib_branches(j.n));
  check(value == fib_value(j.n), "threads_fib");
  j.report("threads_fib_each", ns, "ns");
}

const suite workloads{
    {"threads_spawn_join", spawn_join, 5'000, model::thread},
    {"threads_fib", fib, 15, model::thread},
};

}  // namespace
}  // namespace bench
