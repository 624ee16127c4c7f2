// Where stacks lie, and what an overflow meets below them.
//
// A large frame of code that was built without -fstack-clash-protection goes down in one step, so
// what counts is how far it is from a stack to the next thing that can be written. Address space is
// cheap, but it takes map entries or page tables to keep neighbours apart, and neither is. So there
// are two ways to lie:
//
//  - Spaced: alone at the top of 16 MiB (or of twice its size) of which the rest is inaccessible.
//    That is more than the whole stack of a foreign thread: a frame that does no harm there is
//    caught here. It costs two map entries, and a page table that no neighbour shares: 4 KiB
//    instead of 2. The first stacks of a process are spaced, as many as the budget allows; none
//    are where address space is not cheap (RLIMIT_AS).
//  - Dense: the others lie side by side. At the low end of each is a guard of 64 KiB, made by a
//    page-table marker that needs no map entry (Linux 6.13). Older kernels have no markers: a dense
//    stack there has no guard of its own. 128 of them share one, which ends a runaway recursion,
//    and every switch checks the stack that it leaves (overflow.h).
//
// The budget is in guards that cost two map entries each: a sixteenth of vm.max_map_count with
// markers, an eighth without; a million dense stacks in groups need another quarter. What is left
// is the program's. When an entry is refused all the same, the stack goes without.
//
// `go` reserves dense places only, one for each record, so that a goroutine which it has accepted
// gets its stack. Spaced ones come on top, a few at a time, when a stack is needed.
//
// Everything is inaccessible until it is first used, so that neither mlockall nor a limit on data
// counts it. With vm.overcommit_memory=2 the kernel charges a stack as a whole once it is usable,
// and may refuse: there all of a range is made usable when it is reserved, and ranges are small.
//
// Rejected: a guard as large as the stack for every one of them (page tables of a million parked
// goroutines would take 4 GB instead of 2); guards by mprotect for as many as the kernel allows
// (32,000; then malloc and the start of threads fail, too); a canary in a page of its own (4 KiB
// of memory a stack).
#pragma once

#include <atomic>
#include <cstddef>

#include "runtime/stacks/stack.h"

namespace gofer::internal {

/// Guards that may still cost map entries, and whether some of them may be spaced stacks.
extern constinit std::atomic<long> stack_guards_left;
extern constinit std::atomic<bool> no_spaced_stacks;

/// Address space that is not yet carved into stacks.
struct StackRange;

/// A place for a stack that was never used.
struct StackPlace {
  char* stack = nullptr;
  bool spaced = false;
};

/// The address space for the stacks of one class. The pool's lock protects it.
class StackSpace {
 public:
  static constexpr size_t spaced_batch = 16;

  /// Makes sure of dense places for n more stacks.
  bool reserve(StackClass c, size_t n);
  /// There is no spaced place, and may be one.
  bool wants_spaced() const {
    return spaced_ == nullptr && stack_guards_left.load(std::memory_order_relaxed) > 0 &&
           !no_spaced_stacks.load(std::memory_order_relaxed);
  }
  /// Adds up to spaced_batch of them; how many.
  size_t add_spaced(StackClass c);
  /// The next place, a spaced one if there is any; {nullptr}: there is none.
  StackPlace carve(StackClass c);
  /// The kernel refuses more map entries: no more spaced places.
  void give_up_spaced();

 private:
  StackRange* take_note();
  void drop_first(StackRange*& list);
  bool add_range(StackRange*& list, size_t n, size_t step);

  StackRange* spaced_ = nullptr;
  StackRange* dense_ = nullptr;
  StackRange* unused_notes_ = nullptr;
};

/// Makes a carved place ready for use, with the best guard that is to be had. False: a spaced one
/// that cannot be made usable. Without the lock.
bool prepare_place(StackPlace place, StackClass c);

}  // namespace gofer::internal
