// Channels: a round trip, values through one channel by few and many goroutines, and select that
// waits and that does not.
//
// Elements are 64 bits wide on both sides. What is sent is summed up where it is received: one
// addition a value, the same in Go. Every figure comes from the second pass; the first one, of a
// tenth, is the warm-up.
#include "workloads.h"

#include <gofer/chan.h>
#include <gofer/go.h>
#include <gofer/select.h>
#include <gofer/wait_group.h>

#include <atomic>
#include <cstddef>
#include <string_view>

namespace bench {
namespace {

/// 0 + 1 + ... + (n - 1)
constexpr long sum_below(long n) { return n * (n - 1) / 2; }

// A value goes there and comes back, one at a time.
double ping_pong_ns(long n) {
  const gofer::chan<long> there(0);
  const gofer::chan<long> back(0);
  gofer::go([there, back] {
    for (const long v : there) back.send(v);
    back.close();
  });
  long sum = 0;
  const stopwatch watch;
  for (long i = 0; i < n; ++i) {
    there.send(i);
    sum += *back.recv();
  }
  const double ns = watch.ns_each(n);
  there.close();
  check(!back.recv() && sum == sum_below(n), "ping_pong: sum");
  return ns;
}

void ping_pong(const job& j) {
  ping_pong_ns(j.n / 10 + 1);
  j.report("ping_pong", ping_pong_ns(j.n), "ns");
}

// Some send, others receive, all through one channel; the clock includes their start and end.
struct fan {
  int producers;
  int consumers;
  std::size_t capacity;
};

double fan_ns(const fan& shape, long n) {
  const long each = n / shape.producers;
  const gofer::chan<long> c(shape.capacity);
  gofer::wait_group sending;
  gofer::wait_group receiving;
  std::atomic<long> sum{0};
  const stopwatch watch;
  sending.add(shape.producers);
  for (int i = 0; i < shape.producers; ++i) {
    gofer::go([c, &sending, each] {
      for (long k = 0; k < each; ++k) c.send(k);
      sending.done();
    });
  }
  receiving.add(shape.consumers);
  for (int i = 0; i < shape.consumers; ++i) {
    gofer::go([c, &receiving, &sum] {
      long received = 0;
      for (const long v : c) received += v;
      sum.fetch_add(received, std::memory_order_relaxed);
      receiving.done();
    });
  }
  sending.wait();
  c.close();
  receiving.wait();
  const double ns = watch.ns_each(each * shape.producers);
  check(sum.load() == shape.producers * sum_below(each), "chan: sum");
  return ns;
}

void run_fan(const job& j, std::string_view name, const fan& shape) {
  fan_ns(shape, j.n / 10 + shape.producers);
  j.report(name, fan_ns(shape, j.n), "ns");
}

void chan_128_1_to_1(const job& j) { run_fan(j, "chan_128_1_to_1", {1, 1, 128}); }
void chan_128_4_to_4(const job& j) { run_fan(j, "chan_128_4_to_4", {4, 4, 128}); }
void chan_0_4_to_4(const job& j) { run_fan(j, "chan_0_4_to_4", {4, 4, 0}); }

// Four goroutines send, each to a channel of its own; one select after another receives from all.
double select_ns(std::size_t capacity, long n) {
  const long each = n / 4;
  const gofer::chan<long> a(capacity);
  const gofer::chan<long> b(capacity);
  const gofer::chan<long> c(capacity);
  const gofer::chan<long> d(capacity);
  long sum = 0;
  const auto take = [&sum](long v) { sum += v; };
  const stopwatch watch;
  for (const gofer::chan<long>& to : {a, b, c, d}) {
    gofer::go([to, each] {
      for (long k = 0; k < each; ++k) to.send(k);
    });
  }
  for (long i = 0; i < 4 * each; ++i) {
    gofer::select(gofer::on_recv(a, take), gofer::on_recv(b, take), gofer::on_recv(c, take),
                  gofer::on_recv(d, take));
  }
  const double ns = watch.ns_each(4 * each);
  check(sum == 4 * sum_below(each), "select: sum");
  return ns;
}

void run_select(const job& j, std::string_view name, std::size_t capacity) {
  select_ns(capacity, j.n / 10 + 4);
  j.report(name, select_ns(capacity, j.n), "ns");
}

void select_4_0(const job& j) { run_select(j, "select_4_0", 0); }
void select_4_128(const job& j) { run_select(j, "select_4_128", 128); }

// The channels are always empty.
void select_default_1(const job& j) {
  const gofer::chan<long> c(0);
  long misses = 0;
  const auto missed = [&misses] { ++misses; };
  const stopwatch watch;
  for (long i = 0; i < j.n; ++i) gofer::select(gofer::on_recv(c), gofer::on_default(missed));
  const double ns = watch.ns_each(j.n);
  check(misses == j.n, "select_default_1: count");
  j.report("select_default_1", ns, "ns");
}

void select_default_4(const job& j) {
  const gofer::chan<long> a(0);
  const gofer::chan<long> b(0);
  const gofer::chan<long> c(0);
  const gofer::chan<long> d(0);
  long misses = 0;
  const auto missed = [&misses] { ++misses; };
  const stopwatch watch;
  for (long i = 0; i < j.n; ++i) {
    gofer::select(gofer::on_recv(a), gofer::on_recv(b), gofer::on_recv(c), gofer::on_recv(d),
                  gofer::on_default(missed));
  }
  const double ns = watch.ns_each(j.n);
  check(misses == j.n, "select_default_4: count");
  j.report("select_default_4", ns, "ns");
}

const suite workloads{
    {"ping_pong", ping_pong, 2'000'000},
    {"chan_128_1_to_1", chan_128_1_to_1, 10'000'000},
    {"chan_128_4_to_4", chan_128_4_to_4, 4'000'000},
    {"chan_0_4_to_4", chan_0_4_to_4, 4'000'000},
    {"select_4_0", select_4_0, 4'000'000},
    {"select_4_128", select_4_128, 4'000'000},
    {"select_default_1", select_default_1, 100'000'000},
    {"select_default_4", select_default_4, 20'000'000},
};

}  // namespace
}  // namespace bench
