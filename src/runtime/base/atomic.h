// The one door to atomics for the protocols of the runtime, so that a model checker can take their
// place: with GOFER_RELACY the names below are Relacy's.
#pragma once

#ifdef GOFER_RELACY
#include "relacy_atomics.h"  // tests/model
#else

#include <atomic>
#include <cstdint>

#include "arch/arch.h"

namespace gofer::internal {

template <class T>
using atomic = std::atomic<T>;
inline constexpr auto relaxed = std::memory_order_relaxed;
inline constexpr auto acquire = std::memory_order_acquire;
inline constexpr auto release = std::memory_order_release;
inline constexpr auto acq_rel = std::memory_order_acq_rel;
inline constexpr auto seq_cst = std::memory_order_seq_cst;

/// Keeps the compiler, not the processor, from moving memory accesses across.
inline void compiler_barrier() { std::atomic_signal_fence(std::memory_order_seq_cst); }

/// Adds without a locked instruction: to a counter that has one writer at a time (the holder of a P
/// or of a lock, an M on its own thread), or to a hint that may lose a count.
template <class T>
[[gnu::always_inline]] inline void bump(atomic<T>& counter, T by = 1) {
  counter.store(counter.load(relaxed) + by, relaxed);
}

using arch::cpu_relax;

}  // namespace gofer::internal

#endif
