// The table of all Ps, and how many of them are in use.
//
// Hot paths read it. Only gomaxprocs() writes it, while the world is stopped.
#pragma once

#include <cstdint>

#include "runtime/base/atomic.h"
#include "runtime/base/walk.h"
#include "runtime/procs/p.h"

namespace gofer::internal {

inline constexpr int max_procs = 4096;

struct alignas(64) PTable {
  atomic<int32_t> in_use{0};  // GOMAXPROCS; the Ps behind the first so many are put aside
  atomic<P*> all[max_procs] = {};
};

[[gnu::visibility("hidden")]] extern PTable p_table;

/// The Ps from P::id `first` to before `end`.
inline Walk<P> ps_between(int first, int end) { return {p_table.all + first, p_table.all + end}; }
/// The Ps in use, GOMAXPROCS of them: `for (P* p : all_ps())`.
inline Walk<P> all_ps() { return ps_between(0, p_table.in_use.load(acquire)); }
/// The same and those that a smaller GOMAXPROCS has put aside.
inline Walk<P> ps_ever() { return ps_between(0, max_procs); }

}  // namespace gofer::internal
