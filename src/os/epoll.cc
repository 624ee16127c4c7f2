// The poll back end of poller.h by epoll, edge-triggered, called directly.
#include <fcntl.h>
#include <linux/time_types.h>
#include <sys/eventfd.h>

#include <atomic>
#include <cerrno>

#include "os/poller.h"
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

constexpr uint32_t watched_events = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLET;
constexpr uint32_t bell_events = EPOLLOUT | EPOLLET;

// 0 or an errno value.
int control(Poller p, int operation, int fd, uint32_t events, uint64_t data) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = data;
  return static_cast<int>(
      -raw_syscall(SYS_epoll_ctl, p.queue, operation, fd, reinterpret_cast<long>(&event)));
}

// A program that has closed our instance may have one of its own at the number. Ours have a mark: a
// flag without effect there, which no program has a reason to set. A kernel that refuses to set it,
// or to tell it, leaves the instances alike.
constexpr long mark = O_APPEND;
constinit std::atomic<bool> is_marked{true};

void mark_queue(Poller p) {
  const long flags = raw_syscall(SYS_fcntl, p.queue, F_GETFL, 0);
  if (flags < 0 || raw_syscall(SYS_fcntl, p.queue, F_SETFL, flags | mark) != 0) {
    is_marked.store(false, std::memory_order_relaxed);
  }
}

bool is_another(Poller p) {
  if (!is_marked.load(std::memory_order_relaxed)) return false;
  const long flags = raw_syscall(SYS_fcntl, p.queue, F_GETFL, 0);
  return flags == -EBADF || (flags >= 0 && (flags & mark) == 0);
}

int add_bell(Poller p) {
  return control(p, EPOLL_CTL_ADD, p.bell, bell_events, PollEvent::ring_data);
}

// A descriptor that is always ready for EPOLLOUT, also after a stray read or write; or -errno.
int open_bell() {
  const long event = raw_syscall(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event >= 0) return static_cast<int>(event);
  int ends[2];  // of a pipe: the reading end tells that it has no writer
  if (raw_syscall(SYS_pipe2, reinterpret_cast<long>(ends), O_CLOEXEC) != 0) {
    return static_cast<int>(event);
  }
  raw_syscall(SYS_close, ends[1]);
  return ends[0];
}

}  // namespace

int poller_open(Poller& p) {
  p.queue = static_cast<int>(raw_syscall(SYS_epoll_create1, EPOLL_CLOEXEC));
  if (p.queue < 0) return -p.queue;
  p.bell = open_bell();
  const int error = p.bell < 0 ? -p.bell : add_bell(p);
  if (error != 0) {
    raw_syscall(SYS_close, p.queue);
    if (p.bell >= 0) raw_syscall(SYS_close, p.bell);
    return error;
  }
  mark_queue(p);
  return 0;
}

int poller_watch(Poller p, int fd, uint64_t data) {
  if (is_another(p)) return EINVAL;
  return control(p, EPOLL_CTL_ADD, fd, watched_events, data);
}

int poller_watch_anew(Poller p, int fd, uint64_t data) {
  return control(p, EPOLL_CTL_MOD, fd, watched_events, data);
}

void poller_forget(Poller p, int fd) { control(p, EPOLL_CTL_DEL, fd, 0, 0); }

bool poller_ring(Poller p) {
  if (is_another(p)) return false;
  return control(p, EPOLL_CTL_MOD, p.bell, bell_events, PollEvent::ring_data) == 0;
}

// The bell cannot be added a second time to the instance that watches it. Any other answer comes
// from another file, or from none.
bool poller_is_open(Poller p) {
  if (is_another(p)) return false;
  const int error = add_bell(p);
  if (error == 0) poller_forget(p, p.bell);  // both are the program's
  return error == EEXIST || poller_is_refused();
}

bool poller_is_refused() { return control({-1, -1}, EPOLL_CTL_ADD, -1, 0, 0) != EBADF; }

int poller_wait(Poller p, PollEvent* events, int room, int64_t timeout_ns) {
  const Wait exact[] = {pwait2, pwait, wait};
  const Wait simple[] = {pwait, pwait2, wait};
  long n = -ENOSYS;
  for (const Wait how : timeout_ns > 0 ? exact : simple) {
    if ((refused_waits.load(std::memory_order_relaxed) & 1u << how) != 0) continue;
    n = wait_by(how, p.queue, reinterpret_cast<long>(events), room, timeout_ns);
    if (n == -EINTR) return 0;
    if (!is_refused(n)) break;
    if (how != wait) refused_waits.fetch_or(1u << how, std::memory_order_relaxed);
  }
  return static_cast<int>(n);
}

}  // namespace gofer::internal::os
