// Goroutines that keep their processor until they give it away themselves.
#pragma once

#include <gofer/no_preempt.h>

#include <utility>

namespace gofer::test {

/// f, for a goroutine that must not be paused. On one processor, a test of an order or of a count
/// relies on that, and so does one whose goroutines share a variable without a lock: on a loaded
/// machine the kernel may let a whole time slice pass between any two instructions.
template <class F>
auto unpaused(F f) {
  return [f = std::move(f)]() mutable -> decltype(auto) {
    const no_preempt whole;
    return f();
  };
}

}  // namespace gofer::test
