// Objects that are counted.
#pragma once

#include <gofer/go.h>

#include <atomic>
#include <cstdint>

namespace gofer::test {

/// Counts objects, and says where and when the last one died.
struct Tracked {
  static inline std::atomic<int> alive{0};
  static inline std::atomic<int> copies{0};
  static inline std::atomic<int> moves{0};
  static inline std::atomic<std::uint64_t> died_in{~std::uint64_t{0}};

  static void reset() {
    copies = 0;
    moves = 0;
    died_in = ~std::uint64_t{0};
  }
  Tracked() { ++alive; }
  Tracked(const Tracked&) {
    ++alive;
    ++copies;
  }
  Tracked(Tracked&& other) noexcept {
    ++alive;
    ++moves;
    other.moved_from = true;
  }
  Tracked& operator=(const Tracked&) = delete;
  ~Tracked() {
    --alive;
    if (!moved_from) died_in = this_goroutine::id();
  }
  bool moved_from = false;
};

}  // namespace gofer::test
