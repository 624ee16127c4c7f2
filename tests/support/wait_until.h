// Waiting in a test for something that is to happen: no sleeps of a guessed length.
#pragma once

#include <gofer/go.h>

#include <chrono>
#include <thread>

namespace gofer::test {

/// Calls condition() again and again until it is true; false if that takes longer than `limit`.
/// Works in goroutines (others run in between) and in foreign threads (which sleep a little once
/// the wait is no longer a short one, so as to leave the processors to those waited for).
template <class Condition>
[[nodiscard]] bool wait_until(Condition&& condition,
                              std::chrono::seconds limit = std::chrono::seconds(60)) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (int round = 0; !condition(); ++round) {
    if (std::chrono::steady_clock::now() > deadline) return condition();
    if (round < 1000 || this_goroutine::id() != 0) {
      gofer::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }
  return true;
}

}  // namespace gofer::test
