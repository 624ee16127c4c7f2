#include "os/epoll.h"

#include <linux/time_types.h>
#include <sys/eventfd.h>

#include <atomic>
#include <cerrno>

#include "os/raw_syscall.h"

namespace gofer::internal::os {
namespace {

// Linux 5.11 has a wait with a limit in nanoseconds.
constinit std::atomic<bool> has_exact_wait{true};

}  // namespace

int epoll_create() { return static_cast<int>(raw_syscall(SYS_epoll_create1, EPOLL_CLOEXEC)); }

int epoll_add(int epoll, int fd, uint32_t events, uint64_t data) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = data;
  return static_cast<int>(
      raw_syscall(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, fd, reinterpret_cast<long>(&event)));
}

void epoll_remove(int epoll, int fd) {
  epoll_event event{};
  raw_syscall(SYS_epoll_ctl, epoll, EPOLL_CTL_DEL, fd, reinterpret_cast<long>(&event));
}

int epoll_wait(int epoll, epoll_event* events, int room, int64_t timeout_ns) {
  const long at = reinterpret_cast<long>(events);
  if (timeout_ns > 0 && has_exact_wait.load(std::memory_order_relaxed)) {
    __kernel_timespec limit{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
    const long n =
        raw_syscall(SYS_epoll_pwait2, epoll, at, room, reinterpret_cast<long>(&limit), 0, 0);
    if (n >= 0) return static_cast<int>(n);
    if (n != -ENOSYS && n != -EPERM) return 0;
    has_exact_wait.store(false, std::memory_order_relaxed);
  }
  constexpr int64_t most_ms = 1'000'000'000;
  const int64_t ms = timeout_ns > 0 ? (timeout_ns + 999'999) / 1'000'000 : timeout_ns;
  const long n =
      raw_syscall(SYS_epoll_pwait, epoll, at, room,
                  timeout_ns < 0 ? -1 : static_cast<long>(ms < most_ms ? ms : most_ms), 0, 0);
  return n > 0 ? static_cast<int>(n) : 0;
}

int event_create() {
  return static_cast<int>(raw_syscall(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK));
}

void event_signal(int fd) {
  const uint64_t one = 1;
  raw_syscall(SYS_write, fd, reinterpret_cast<long>(&one), sizeof one);
}

void close_descriptor(int fd) { raw_syscall(SYS_close, fd); }

}  // namespace gofer::internal::os
