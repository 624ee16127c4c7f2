// The stacks of events: which calls a goroutine was in.
//
// An unwinder takes microseconds, an event some nanoseconds. So a stack is unwound once and found
// again by comparison. Of each stack the table remembers the return addresses, and where they lay,
// counted from the stack's top: its *shape*. If all places of a shape hold the remembered addresses
// again, it is the same stack. A look-up is a load and a comparison for each call, and needs no
// frame pointers.
//
// Why it is right. The first place follows from where stack_here itself is called. What a place
// holds, an address in a function, says how large that function's frame is, and so where the next
// place is. The pair of shape and addresses was unwound once, so it has the next place there, too.
// By induction all places that were compared are those of the real return addresses. The size of a
// frame does not follow from the address if the function calls alloca. Two stacks with such frames
// could be mistaken for each other only if they have the same depth in bytes, and what older calls
// left on the stack completes the wrong one.
//
// Shapes are looked up by the first return address, the depth and the goroutine's function. Most
// have a few stacks, which are compared one after the other; more of them are looked up by a hash
// of what the places hold. Shapes and stacks only come, and never change, so a look-up needs no
// lock. An event whose stack has no room in the table has none: nullptr.
//
// Rejected:
//  - Frame pointers: libraries and user code at -O2 have none.
//  - One list of stacks for each first return address and depth. All waits in a primitive have the
//    same first address, so 20 waits in one function were a list of 20.
//  - A rule for each return address that says how to find the caller's frame, learned from the
//    unwinder: twice as slow, and as wrong with alloca.
#pragma once

#include <gofer/detail/spawn.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/atomic.h"
#include "runtime/goroutines/g.h"
#include "runtime/goroutines/spawn.h"

namespace gofer::internal {

struct M;

namespace tracer {

struct Shape;

/// A stack that some event has. Its return addresses lie behind it.
struct Stack {
  Stack* next;  // in the table
  uint64_t hash;
  const Shape* shape;
  uintptr_t entry;  // of the goroutine
  uint32_t id;      // from 1
  uint32_t calls;
  atomic<uint64_t> used_in[2];  // the last generation that mentions it, by generation modulo 2

  uintptr_t* returns() { return reinterpret_cast<uintptr_t*>(this + 1); }
  /// Return addresses, the innermost first. Those in the runtime are among them.
  std::span<const uintptr_t> pcs() const {
    return {reinterpret_cast<const uintptr_t*>(this + 1), calls};
  }
};

/// Calls of a stack that are remembered: the innermost ones.
inline constexpr size_t most_calls = 32;
/// Numbers of stacks are not greater.
inline constexpr uint32_t most_stacks = 1u << 16;

/// The stack of m's goroutine, whose function calls this one; nullptr if m is on another stack (its
/// own, or that for signals), or if the table has no room. On the thread of m, inside: the lock of
/// the table must not be held by a paused thread.
[[gnu::noinline]] Stack* stack_here(const M* m);

/// Calls f(stack) for each stack in the table.
template <class F>
void for_each_stack(F f);

/// For tests: the number of stacks in the table, and how many it may have.
uint32_t count_stacks();
void limit_stacks(uint32_t most);

// --- Inlined.

inline constexpr size_t stack_buckets = 1u << 14;
extern constinit atomic<Stack*> stack_table[stack_buckets];

template <class F>
void for_each_stack(F f) {
  for (const atomic<Stack*>& bucket : stack_table) {
    for (Stack* s = bucket.load(acquire); s != nullptr; s = s->next) f(*s);
  }
}

}  // namespace tracer
}  // namespace gofer::internal
