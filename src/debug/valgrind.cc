#include "debug/valgrind.h"

#include <cstdint>

#include "arch/arch.h"

namespace gofer::internal {
namespace {

// Client requests, as in the headers that valgrind installs.
constexpr uint64_t stack_register = 0x1501;
constexpr uint64_t memcheck = uint64_t{'M'} << 24 | uint64_t{'C'} << 16;
constexpr uint64_t make_no_access = memcheck + 0;
constexpr uint64_t make_defined = memcheck + 2;

void tell(uint64_t request, const void* a, uint64_t b) {
  const volatile uint64_t words[6] = {request, reinterpret_cast<uint64_t>(a), b, 0, 0, 0};
  arch::tell_valgrind(words);
}

}  // namespace

// The first frame of a goroutine is written from another stack; below it, valgrind follows the
// stack pointer.
void tell_valgrind_of_stack(void* low, void* high) {
  constexpr uint64_t top = 4096;
  tell(stack_register, low, reinterpret_cast<uint64_t>(high));
  tell(make_defined, static_cast<char*>(high) - top, top);
}

void hide_from_valgrind(void* low, size_t size) { tell(make_no_access, low, size); }

}  // namespace gofer::internal
