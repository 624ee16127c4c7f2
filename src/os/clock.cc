#include "os/clock.h"

#include <fcntl.h>
#include <time.h>

#include <cstring>
#include <initializer_list>

#include "os/raw_syscall.h"

namespace gofer::internal::os {

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

bool kernel_trusts_ticks() {
  constexpr const char* path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  const long fd =
      raw_syscall(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char name[32] = {};
  const long n = raw_syscall(SYS_read, fd, reinterpret_cast<long>(name), sizeof name - 1);
  raw_syscall(SYS_close, fd);
  // The kernel's clock in a virtual machine of KVM or Hyper-V is the counter, scaled.
  for (const char* known : {"tsc\n", "kvm-clock\n", "hyperv_clocksource_tsc_page\n"}) {
    if (n > 0 && std::strcmp(name, known) == 0) return true;
  }
  return false;
}

void sleep_ns(int64_t ns) {
  const timespec t{ns / 1'000'000'000, ns % 1'000'000'000};
  raw_syscall(SYS_nanosleep, reinterpret_cast<long>(&t), 0);
}

}  // namespace gofer::internal::os
