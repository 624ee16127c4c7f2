#include "os/futex.h"

#include <linux/futex.h>
#include <time.h>
#include <cerrno>

#include "os/raw_syscall.h"

namespace gofer::internal::os {

bool futex_wait(std::atomic<uint32_t>* word, uint32_t expected, int64_t timeout_ns) {
  timespec limit;
  const timespec* limit_ptr = nullptr;
  if (timeout_ns >= 0) {
    limit.tv_sec = timeout_ns / 1'000'000'000;
    limit.tv_nsec = timeout_ns % 1'000'000'000;
    limit_ptr = &limit;
  }
  const long r = raw_syscall(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAIT_PRIVATE, expected,
                             reinterpret_cast<long>(limit_ptr));
  return r != -ETIMEDOUT;
}

void futex_wake(std::atomic<uint32_t>* word, int count) {
  raw_syscall(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAKE_PRIVATE, count);
}

}  // namespace gofer::internal::os
