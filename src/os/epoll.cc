#include "os/epoll.h"

#include <fcntl.h>
#include <linux/time_types.h>
#include <sys/eventfd.h>

#include <atomic>
#include <cerrno>

#include "os/raw_syscall.h"

namespace gofer::internal::os {
namespace {

// Three calls do the same, and one that was refused is not made again. The first takes a limit in
// nanoseconds (Linux 5.11), the last is older than some architectures.
enum Wait : unsigned { pwait2, pwait, wait };
constinit std::atomic<unsigned> refused_waits{0};

long wait_by(Wait how, int epoll, long at, int room, int64_t timeout_ns) {
  if (how == pwait2) {
    __kernel_timespec limit{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
    const long limit_at = timeout_ns < 0 ? 0 : reinterpret_cast<long>(&limit);
    return raw_syscall(SYS_epoll_pwait2, epoll, at, room, limit_at, 0, 0);
  }
  constexpr int64_t most_ms = 1'000'000'000;
  const int64_t ms = timeout_ns > 0 ? (timeout_ns + 999'999) / 1'000'000 : timeout_ns;
  const long limit = timeout_ns < 0 ? -1 : static_cast<long>(ms < most_ms ? ms : most_ms);
#ifdef SYS_epoll_wait
  if (how == wait) return raw_syscall(SYS_epoll_wait, epoll, at, room, limit);
#endif
  return raw_syscall(SYS_epoll_pwait, epoll, at, room, limit, 0, 0);
}

// As opposed to a mistake in the arguments, or a signal.
bool is_refused(long result) {
  return result < 0 && result != -EINTR && result != -EBADF && result != -EINVAL &&
         result != -EFAULT;
}

}  // namespace

int epoll_create() { return static_cast<int>(raw_syscall(SYS_epoll_create1, EPOLL_CLOEXEC)); }

int epoll_add(int epoll, int fd, uint32_t events, uint64_t data) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = data;
  return static_cast<int>(
      raw_syscall(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, fd, reinterpret_cast<long>(&event)));
}

int epoll_modify(int epoll, int fd, uint32_t events, uint64_t data) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = data;
  return static_cast<int>(
      raw_syscall(SYS_epoll_ctl, epoll, EPOLL_CTL_MOD, fd, reinterpret_cast<long>(&event)));
}

void epoll_remove(int epoll, int fd) {
  epoll_event event{};
  raw_syscall(SYS_epoll_ctl, epoll, EPOLL_CTL_DEL, fd, reinterpret_cast<long>(&event));
}

bool is_epoll_ctl_refused() { return epoll_add(-1, -1, 0, 0) != -EBADF; }

int epoll_wait(int epoll, epoll_event* events, int room, int64_t timeout_ns) {
  const Wait exact[] = {pwait2, pwait, wait};
  const Wait simple[] = {pwait, pwait2, wait};
  long n = -ENOSYS;
  for (const Wait how : timeout_ns > 0 ? exact : simple) {
    if ((refused_waits.load(std::memory_order_relaxed) & 1u << how) != 0) continue;
    n = wait_by(how, epoll, reinterpret_cast<long>(events), room, timeout_ns);
    if (n == -EINTR) return 0;
    if (!is_refused(n)) break;
    if (how != wait) refused_waits.fetch_or(1u << how, std::memory_order_relaxed);
  }
  return static_cast<int>(n);
}

int open_ready_descriptor() {
  const long event = raw_syscall(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event >= 0) return static_cast<int>(event);
  int ends[2];  // of a pipe: the reading end tells that nobody writes
  if (raw_syscall(SYS_pipe2, reinterpret_cast<long>(ends), O_CLOEXEC) != 0) {
    return static_cast<int>(event);
  }
  close_descriptor(ends[1]);
  return ends[0];
}

bool is_open(int fd) { return raw_syscall(SYS_fcntl, fd, F_GETFD) >= 0; }

void close_descriptor(int fd) { raw_syscall(SYS_close, fd); }

}  // namespace gofer::internal::os
