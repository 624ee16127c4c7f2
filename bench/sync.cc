// Locks, and skynet: a tree of goroutines that sums up its million leaves over channels.
//
// The critical section is one addition to a variable in memory. Figures of locks come from the
// second pass; the first one, of a tenth, is the warm-up.
#include "workloads.h"

#include <gofer/chan.h>
#include <gofer/go.h>
#include <gofer/mutex.h>
#include <gofer/rw_mutex.h>
#include <gofer/wait_group.h>

#include <atomic>
#include <cstddef>
#include <vector>

namespace bench {
namespace {

constexpr int goroutines = 8;

long shared = 0;  // what the locks protect; not a local, so that it is in memory

double mutex_alone_ns(long n) {
  gofer::mutex mu;
  shared = 0;
  const stopwatch watch;
  for (long i = 0; i < n; ++i) {
    mu.lock();
    ++shared;
    mu.unlock();
  }
  const double ns = watch.ns_each(n);
  check(shared == n, "mutex_alone: count");
  return ns;
}

void mutex_alone(const job& j) {
  mutex_alone_ns(j.n / 10 + 1);
  j.report("mutex_alone", mutex_alone_ns(j.n), "ns");
}

// Eight goroutines, n times each.
double mutex_contended_ns(long n) {
  gofer::mutex mu;
  gofer::wait_group finished;
  shared = 0;
  const stopwatch watch;
  finished.add(goroutines);
  for (int g = 0; g < goroutines; ++g) {
    gofer::go([&mu, &finished, n] {
      for (long i = 0; i < n; ++i) {
        mu.lock();
        ++shared;
        mu.unlock();
      }
      finished.done();
    });
  }
  finished.wait();
  const double ns = watch.ns_each(goroutines * n);
  check(shared == goroutines * n, "mutex_contended: count");
  return ns;
}

void mutex_contended(const job& j) {
  mutex_contended_ns(j.n / 10 + 1);
  j.report("mutex_contended", mutex_contended_ns(j.n), "ns");
}

// Eight goroutines read, n times each; none writes.
double rw_mutex_readers_ns(long n) {
  gofer::rw_mutex mu;
  gofer::wait_group finished;
  std::atomic<long> sum{0};
  shared = 1;
  const stopwatch watch;
  finished.add(goroutines);
  for (int g = 0; g < goroutines; ++g) {
    gofer::go([&mu, &finished, &sum, n] {
      long read = 0;
      for (long i = 0; i < n; ++i) {
        mu.lock_shared();
        read += shared;
        mu.unlock_shared();
      }
      sum.fetch_add(read, std::memory_order_relaxed);
      finished.done();
    });
  }
  finished.wait();
  const double ns = watch.ns_each(goroutines * n);
  check(sum.load() == goroutines * n, "rw_mutex_readers: sum");
  return ns;
}

void rw_mutex_readers(const job& j) {
  rw_mutex_readers_ns(j.n / 10 + 1);
  j.report("rw_mutex_readers", rw_mutex_readers_ns(j.n), "ns");
}

// The root of a tree of goroutines with ten children each. A leaf sends its number, any other one
// the sum of what it receives.
constexpr long children = 10;

void skynet_node(const gofer::chan<long>& parent, long first, long leaves) {
  if (leaves == 1) {
    parent.send(first);
    return;
  }
  const gofer::chan<long> here(0);
  const long each = leaves / children;
  for (long i = 0; i < children; ++i) {
    gofer::go([here, from = first + i * each, each] { skynet_node(here, from, each); });
  }
  long sum = 0;
  for (long i = 0; i < children; ++i) sum += *here.recv();
  parent.send(sum);
}

double skynet_ms(long n) {
  const gofer::chan<long> result(0);
  const stopwatch watch;
  gofer::go([result, n] { skynet_node(result, 0, n); });
  const long sum = *result.recv();
  const double ms = watch.ns() / ns_per_ms;
  check(sum == n * (n - 1) / 2, "skynet: sum");
  return ms;
}

// The size must be a power of ten. The second pass finds what the first left behind.
void skynet(const job& j) {
  j.report("skynet_first", skynet_ms(j.n), "ms");
  j.report("skynet_second", skynet_ms(j.n), "ms");
}

// Skynet in which every goroutine has a block of the heap for as long as it lives.
constexpr std::size_t block_bytes = 300;

void malloc_skynet_node(const gofer::chan<long>& parent, long first, long leaves) {
  std::vector<char> block(block_bytes);
  block[static_cast<std::size_t>(first) % block_bytes] = 1;
  long sum = first;
  if (leaves > 1) {
    const gofer::chan<long> here(0);
    const long each = leaves / children;
    for (long i = 0; i < children; ++i) {
      gofer::go([here, from = first + i * each, each] { malloc_skynet_node(here, from, each); });
    }
    sum = 0;
    for (long i = 0; i < children; ++i) sum += *here.recv();
  }
  check(block[static_cast<std::size_t>(first) % block_bytes] == 1, "malloc_skynet: block");
  parent.send(sum);
}

void malloc_skynet(const job& j) {
  const gofer::chan<long> result(0);
  const stopwatch watch;
  gofer::go([result, n = j.n] { malloc_skynet_node(result, 0, n); });
  const long sum = *result.recv();
  const double ms = watch.ns() / ns_per_ms;
  check(sum == j.n * (j.n - 1) / 2, "malloc_skynet: sum");
  j.report("malloc_skynet", ms, "ms");
}

const suite workloads{
    {"mutex_alone", mutex_alone, 100'000'000},
    {"mutex_contended", mutex_contended, 1'000'000},
    {"rw_mutex_readers", rw_mutex_readers, 1'000'000},
    {"skynet", skynet, 1'000'000},
    {"malloc_skynet", malloc_skynet, 1'000'000},
};

}  // namespace
}  // namespace bench
