// System calls without libc: the result is the value or -errno, and errno stays as it is, because
// the runtime must not disturb the errno of the goroutine on whose stack it happens to work.
#pragma once

#include <sys/syscall.h>

namespace gofer::internal::os {

inline long raw_syscall(long nr, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) {
#if defined(__x86_64__)
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
#else
#error "raw_syscall: unknown architecture"
#endif
}

}  // namespace gofer::internal::os
