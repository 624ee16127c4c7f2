// Recognising a stack that looks like one that was walked before: see stack_shape.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/report/arena.h"

namespace gofer::internal {

/// A stack that lies still: where it goes on, its stack pointer there, and where its frames begin.
struct StillStack {
  uintptr_t pc;
  uintptr_t sp;
  uintptr_t top;
};

class StackShapes {
 public:
  /// The number under which a stack was added that has the same frames, or `none`.
  uint32_t find(const StillStack& stack) const;
  /// pcs and cfas are what unwind has said of the stack.
  void add(Arena& arena, const StillStack& stack, std::span<const uintptr_t> pcs,
           std::span<const uintptr_t> cfas, uint32_t number);

  static constexpr uint32_t none = ~uint32_t{0};

 private:
  // A return address, and how far from the stack pointer it lies.
  struct Return {
    uintptr_t offset;
    uintptr_t pc;
  };
  struct Shape {
    Shape* next;
    uintptr_t pc;
    uintptr_t size;
    const Return* returns;
    size_t count;
    uint32_t number;
  };
  static constexpr size_t buckets = 1024;
  static size_t bucket_of(const StillStack& stack);

  Shape* shapes_[buckets] = {};
};

}  // namespace gofer::internal
