// What valgrind has to know of stacks. In a program that does not run under it each call takes some
// nanoseconds.
#pragma once

#include <cstddef>

namespace gofer::internal {

/// This memory is a stack. To be called once, before its first frame is written.
void tell_valgrind_of_stack(void* low, void* high);

/// This memory is to become stacks: a leak check need not read it.
void hide_from_valgrind(void* low, size_t size);

}  // namespace gofer::internal
