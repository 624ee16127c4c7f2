#include "os/futex.h"

#include <linux/futex.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "os/raw_syscall.h"

namespace gofer::internal::os {
namespace {

// Those that sleep already could not be woken any more, so there is no way to go on; nor can a
// report be made that takes a lock.
[[noreturn]] void end_without_futex(long error) {
  static constinit std::atomic<bool> said{false};
  while (said.exchange(true)) raw_syscall(SYS_sched_yield);  // until the other thread has ended all
  char text[] = "fatal error: futex fails with errno 000: threads can neither sleep nor be woken\n";
  char* digit = std::strstr(text, "000") + 2;
  for (long left = error; left > 0; left /= 10) *digit-- = static_cast<char>('0' + left % 10);
  raw_syscall(SYS_write, STDERR_FILENO, reinterpret_cast<long>(text), sizeof text - 1);
  for (;;) raw_syscall(SYS_exit_group, 2);
}

}  // namespace

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
  if (r != 0 && r != -EAGAIN && r != -EINTR && r != -ETIMEDOUT) end_without_futex(-r);
  return r != -ETIMEDOUT;
}

void futex_wake(std::atomic<uint32_t>* word, int count) {
  const long r = raw_syscall(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAKE_PRIVATE, count);
  // The word's memory may be gone: the one that was to be woken has seen its value, and has ended.
  if (r < 0 && r != -EFAULT) end_without_futex(-r);
}

}  // namespace gofer::internal::os
