// Fork and join: fib with a goroutine per left branch (all scheduler, no work), and a parallel
// quicksort (much work, some scheduler).
#include "workloads.h"

#include <gofer/go.h>
#include <gofer/wait_group.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace bench {
namespace {

long fib_forked(long n) {
  if (n < 2) return n;
  gofer::wait_group wg;
  long left = 0;
  wg.add(1);
  gofer::go([&wg, &left, n] {
    left = fib_forked(n - 1);
    wg.done();
  });
  const long right = fib_forked(n - 2);
  wg.wait();
  return left + right;
}

void fib(const job& j) {
  const stopwatch watch;
  const long value = fib_forked(j.n);
  const double ns = watch.ns();
  check(value == fib_value(j.n), "fib");
  j.report("fib", ns / ns_per_ms, "ms");
  j.report("fib_each", ns / static_cast<double>(fib_branches(j.n)), "ns");
}

using item = std::int64_t;  // Go's int

constexpr std::ptrdiff_t parallel_cutoff = 2048;
constexpr std::ptrdiff_t insertion_cutoff = 16;

// splitmix64: the same numbers on every side.
std::vector<item> random_items(long n) {
  std::vector<item> items(static_cast<std::size_t>(n));
  std::uint64_t state = 1;
  for (item& out : items) {
    state += 0x9e3779b97f4a7c15;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    out = static_cast<item>((z ^ (z >> 31)) >> 1);
  }
  return items;
}

// Hoare's scheme around the median of first, middle and last. Neither part is empty: of three
// items, the median is never the only largest.
item* split(item* first, item* last) {
  const item a = *first;
  const item b = first[(last - first) / 2];
  const item c = last[-1];
  const item pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
  item* low = first;
  item* high = last - 1;
  for (;; ++low, --high) {
    while (*low < pivot) ++low;
    while (*high > pivot) --high;
    if (low >= high) return high + 1;
    std::swap(*low, *high);
  }
}

void insertion_sort(item* first, item* last) {
  for (item* next = first; next != last; ++next) {
    const item value = *next;
    item* hole = next;
    for (; hole != first && hole[-1] > value; --hole) *hole = hole[-1];
    *hole = value;
  }
}

// Goes down into the smaller part and round the loop with the larger one.
void serial_sort(item* first, item* last) {
  while (last - first > insertion_cutoff) {
    item* const middle = split(first, last);
    if (middle - first < last - middle) {
      serial_sort(first, middle);
      first = middle;
    } else {
      serial_sort(middle, last);
      last = middle;
    }
  }
  insertion_sort(first, last);
}

void parallel_sort(item* first, item* last) {
  if (last - first <= parallel_cutoff) {
    serial_sort(first, last);
    return;
  }
  item* const middle = split(first, last);
  gofer::wait_group wg;
  wg.add(1);
  gofer::go([&wg, first, middle] {
    parallel_sort(first, middle);
    wg.done();
  });
  parallel_sort(middle, last);
  wg.wait();
}

std::uint64_t sum_of(const std::vector<item>& items) {
  std::uint64_t sum = 0;
  for (const item i : items) sum += static_cast<std::uint64_t>(i);
  return sum;
}

void quicksort(const job& j) {
  std::vector<item> items = random_items(j.n);
  const std::uint64_t sum = sum_of(items);
  const stopwatch watch;
  parallel_sort(items.data(), items.data() + items.size());
  const double ns = watch.ns();
  check(std::is_sorted(items.begin(), items.end()), "quicksort: order");
  check(sum_of(items) == sum, "quicksort: sum");
  j.report("quicksort", ns / ns_per_ms, "ms");
}

const suite workloads{
    {"fib", fib, 30},
    {"quicksort", quicksort, 10'000'000},
};

}  // namespace
}  // namespace bench
