#include "os/clock.h"

#include <time.h>

#include "os/raw_syscall.h"

namespace gofer::internal::os {

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

void sleep_ns(int64_t ns) {
  const timespec t{ns / 1'000'000'000, ns % 1'000'000'000};
  raw_syscall(SYS_nanosleep, reinterpret_cast<long>(&t), 0);
}

}  // namespace gofer::internal::os
