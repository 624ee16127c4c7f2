// The part of arch.h that is inlined, for x86-64. Included there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gofer::internal {

struct M;

namespace arch {

inline constexpr size_t page_size = 4096;
inline constexpr size_t red_zone = 128;
inline constexpr ptrdiff_t return_place = -8;

inline M* current_m() {
  M* m;
  asm volatile(
      "movq gofer_current_m@gottpoff(%%rip), %0\n\t"
      "movq %%fs:(%0), %0"
      : "=r"(m)
      :
      : "memory");
  return m;
}

inline long raw_syscall(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

inline uint64_t ticks() { return __builtin_ia32_rdtsc(); }

inline bool has_steady_ticks() {
  uint32_t highest, a, b, c, d;
  asm volatile("cpuid" : "=a"(highest), "=b"(b), "=c"(c), "=d"(d) : "0"(0x80000000u));
  if (highest < 0x80000007u) return false;
  asm volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "0"(0x80000007u));
  return (d & (1u << 8)) != 0;
}

// GCC makes three instructions of a load of an atomic, a test and a jump.
[[gnu::always_inline]] inline bool is_set(const std::atomic<bool>& byte) {
  asm goto("cmpb $0, %0\n\tjne %l1" : : "m"(byte) : "cc" : set);
  return false;
set:
#ifndef __clang__
  __attribute__((cold));
#endif
  return true;
}

inline void cpu_relax() { __builtin_ia32_pause(); }

// The word of the thread's control block that GCC and glibc set aside for split stacks.
inline uintptr_t* prologue_guard() {
  uintptr_t block;
  asm("movq %%fs:0, %0" : "=r"(block));
  return reinterpret_cast<uintptr_t*>(block + 0x70);  // NOLINT(performance-no-int-to-ptr)
}

// With the address of the request in rax, as in valgrind's header.
inline void tell_valgrind(const volatile uint64_t (&request)[6]) {
  uint64_t result = 0;
  asm volatile(
      "rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi\n\t"
      "xchgq %%rbx, %%rbx"
      : "+d"(result)
      : "a"(request)
      : "cc", "memory");
}

// By DWARF number: 0 rax, 1 rdx, 2 rcx, 3 rbx, 4 rsi, 5 rdi, 6 rbp, 7 rsp, 8..15 r8..r15, 16 rip.
struct Registers {
  uintptr_t dwarf[17];
};

inline uintptr_t& pc_of(Registers& r) { return r.dwarf[16]; }
inline uintptr_t& sp_of(Registers& r) { return r.dwarf[7]; }

// The frame of gofer_switch: switch.S.
inline constexpr SavedRegister saved_register_places[] = {
    {"r15", 8}, {"r14", 16}, {"r13", 24}, {"r12", 32}, {"rbx", 40}, {"rbp", 48}, {"rip", 56},
};
inline constexpr SavedRegister saved_sp = {"rsp", 64};

// A call pushes the return address.
inline void return_to_caller(Registers& r) {
  pc_of(r) = *reinterpret_cast<const uintptr_t*>(sp_of(r));
  sp_of(r) += sizeof(uintptr_t);
}

}  // namespace arch
}  // namespace gofer::internal
