// Stacks: large in address space, small in memory, reused while hot.
//
// C++ frames hold raw pointers, so a stack cannot be moved to grow as Go's do. Instead each is a
// large range of which only the touched pages exist. Sizes are classes, powers of two from 128 KiB
// on, the guard included; the default class is 1 MiB.
//
//  - At the low end of each is its guard, 64 KiB. What lies below that, and how the guard is made,
//    is the business of stack_space.h.
//  - Tops are coloured: shifted by up to 960 bytes, so that the hot frames of many goroutines do
//    not fall into the same cache sets.
//  - A free stack goes to its P's cache, newest first, and is warm when taken again. What overflows
//    goes to a pool: the first 256 as they are, then without the pages below the uppermost 16 KiB,
//    from 4,096 on without any. An idle process trims them all.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/assert.h"
#include "runtime/base/sanitizer.h"

namespace gofer::internal {

/// The class c has stacks of smallest_stack << c bytes.
enum class StackClass : uint8_t {};

inline constexpr size_t stack_guard_size = 64 * 1024;
inline constexpr size_t stack_head_size = sanitizers_enabled ? 128 : 64;
inline constexpr int smallest_stack_bits = 17;
inline constexpr size_t smallest_stack = size_t{1} << smallest_stack_bits;
inline constexpr int stack_classes = 14;  // up to 1 GiB

constexpr size_t stack_size(StackClass c) { return smallest_stack << static_cast<int>(c); }

/// The class for a wish of usable bytes (0: the default). False when it is too large.
bool stack_class_for(size_t usable, StackClass& out);
/// Set once, before the first stack is made.
extern constinit StackClass the_default_stack_class;
inline StackClass default_stack_class() { return the_default_stack_class; }
void set_default_stack_size(size_t usable);

/// How stacks are guarded: stack_space.h. Set before the first stack is made.
enum class GuardKind : uint8_t { marker, mprotect, none };
void set_guard_kind(GuardKind kind);
/// How many guards may cost map entries.
void set_guard_budget(long guards);
/// From now on no address space is spent on distance.
void forbid_spaced_stacks();
/// Whether the kernel charges stacks as a whole: vm.overcommit_memory=2.
void set_charged_early(bool charged);
bool stacks_are_charged_early();

/// Where a stack's head lies, coloured; the frames begin below it. 64-byte aligned.
inline char* stack_top(char* stack, StackClass c) {
  const int bits = smallest_stack_bits + static_cast<int>(c);
  const size_t colour = (reinterpret_cast<uintptr_t>(stack) >> bits) % 16 * 64;
  return stack + (size_t{1} << bits) - stack_head_size - colour;
}

/// Free stacks of the default class at a P.
struct StackCache {
  static constexpr int high = 64;
  static constexpr int batch = 16;
  char* slot[high];
  int count = 0;

  char* pop() { return count == 0 ? nullptr : slot[--count]; }
};

/// Takes a batch from the pool, or makes new ones, into an empty cache. False: none to be had.
bool refill_stacks(StackCache& cache);
/// Moves all but `keep` stacks, the coldest first, to the pool.
void drain_stacks(StackCache& cache, int keep);

/// The pool's stacks give back what lies deep in them.
void trim_stacks();

/// One stack of any class; nullptr when none is to be had.
char* take_stack(StackClass c);
void put_stack(char* stack, StackClass c);

/// Makes sure of the address space for n more stacks of the default class.
bool reserve_stacks(size_t n);

/// True if a stack of the default class is with a goroutine or in the pool, given how many lie in
/// caches: then one can be had, now or later.
bool any_stack_outside_caches(int in_caches);

/// What is known of all stacks, those in the caches of Ps among those in use.
struct StackCounts {
  size_t reserved_bytes = 0;  // address space with a place for a stack
  size_t in_use = 0;
  size_t in_use_bytes = 0;
  size_t pooled = 0;
  size_t pooled_bytes = 0;
  uint64_t trimmed = 0;  // times that a stack has given back pages
};
StackCounts count_stacks();
/// A parked goroutine's stack has given back pages.
void note_trimmed();

/// The lowest address that the frames on a stack may use.
inline uintptr_t stack_low(const char* stack) {
  return reinterpret_cast<uintptr_t>(stack) + stack_guard_size;
}

}  // namespace gofer::internal
