// A histogram of times that one thread at a time writes, while any thread may read it.
//
// The writer is the holder of a P, or of a lock: whatever passes the P or the lock on orders the
// writes. So a write is a plain load and a store, and costs no locked instruction. A reader sees
// each bucket as it was at some moment. It takes the number of all from the buckets, so the two
// always agree.
#pragma once

#include <gofer/detail/buckets.h>

#include <cstddef>
#include <cstdint>

#include "runtime/base/atomic.h"

namespace gofer::internal {

class Histogram {
 public:
  /// Adds a time that stands for so many.
  void record(int64_t ns, uint32_t weight = 1) {
    if (ns < 0) ns = 0;
    add(counts_[detail::bucket_of(ns)], weight);
    add(sum_ns_, static_cast<uint64_t>(ns) * weight);
  }

  /// Adds what it has to a sum of several: `counts` has detail::time_buckets places.
  void add_to(uint64_t* counts, uint64_t& sum_ns) const {
    for (size_t i = 0; i < detail::time_buckets; ++i) counts[i] += counts_[i].load(relaxed);
    sum_ns += sum_ns_.load(relaxed);
  }

 private:
  static void add(atomic<uint64_t>& to, uint64_t n) { to.store(to.load(relaxed) + n, relaxed); }

  atomic<uint64_t> sum_ns_{0};
  atomic<uint64_t> counts_[detail::time_buckets] = {};
};

}  // namespace gofer::internal
