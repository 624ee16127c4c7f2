// The names of src/runtime/base/atomic.h on top of Relacy, for builds with GOFER_RELACY.
//
// Relacy's atomics take a place in the source with every operation, which its macros add at the
// call. The code under test must not know of them, so this adapter takes the place from the
// compiler. Nothing else is changed: every operation is a scheduling point of Relacy, and a load
// may return any value that the C++11 memory model allows within Relacy's limits (a history of
// three values per atomic; no load may see a store that is later in the order of execution).
//
// `wrongness` makes the code under test wrong on purpose.
#pragma once

// Relacy redefines new, delete, malloc and assert as macros: everything of std comes before it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <stack>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <relacy/relacy.hpp>
#pragma GCC diagnostic pop

namespace gofer::internal {

inline constexpr rl::memory_order relaxed = rl::mo_relaxed;
inline constexpr rl::memory_order acquire = rl::mo_acquire;
inline constexpr rl::memory_order release = rl::mo_release;
inline constexpr rl::memory_order acq_rel = rl::mo_acq_rel;
inline constexpr rl::memory_order seq_cst = rl::mo_seq_cst;

/// What every operation does wrong, if anything.
enum class Wrong { nothing, acquire, release, exchange, compare_exchange };
inline Wrong wrongness = Wrong::nothing;

/// The order as asked for, or without its acquire or release part.
inline rl::memory_order weakened(rl::memory_order order) {
  if (wrongness == Wrong::acquire) {
    if (order == acquire) return relaxed;
    if (order == acq_rel) return release;
  }
  if (wrongness == Wrong::release) {
    if (order == release) return relaxed;
    if (order == acq_rel) return acquire;
  }
  return order;
}

template <class T>
class atomic {
 public:
  using Order = rl::memory_order;
  using Place = rl::debug_info;

  atomic() : value_(T{}) {}
  atomic(T value) : value_(value) {}  // not explicit: `atomic<T> x{0};` as with std

  T load(Order order, const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) const {
    return value_.load(weakened(order), Place("load", file, line));
  }
  void store(T value, Order order, const char* file = __builtin_FILE(),
             unsigned line = __builtin_LINE()) {
    value_.store(value, weakened(order), Place("store", file, line));
  }
  T exchange(T value, Order order, const char* file = __builtin_FILE(),
             unsigned line = __builtin_LINE()) {
    const Place place("exchange", file, line);
    if (wrongness != Wrong::exchange) return value_.exchange(value, weakened(order), place);
    const T old = value_.load(rl::mo_seq_cst, place);
    value_.store(value, rl::mo_seq_cst, place);
    return old;
  }
  bool compare_exchange_strong(T& expected, T value, Order order, Order failure,
                               const char* file = __builtin_FILE(),
                               unsigned line = __builtin_LINE()) {
    const Place place("compare_exchange", file, line);
    if (wrongness != Wrong::compare_exchange) {
      return value_.compare_exchange_strong(expected, value, weakened(order), place,
                                            weakened(failure), place);
    }
    const T found = value_.load(rl::mo_seq_cst, place);
    const bool equal = found == expected;
    expected = found;
    if (equal) value_.store(value, rl::mo_seq_cst, place);
    return equal;
  }

 private:
  rl::atomic<T> value_;
};

inline void compiler_barrier() {}
inline void cpu_relax() {}

}  // namespace gofer::internal
