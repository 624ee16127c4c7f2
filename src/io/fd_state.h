// What the handles of one descriptor share, and how every call on it tries and waits.
//
// Three locks keep the descriptor open while it is used: `reading` and `writing` are held over a
// whole call, so that at most one waits on each side of the poll record; `control` over the short
// calls that never wait. close() says that it is closed, wakes the waiters, and then takes all
// three: no thread is left in a system call when the number goes back to the kernel, which may give
// it to another caller at once.
#pragma once

#include <gofer/context.h>
#include <gofer/fd.h>
#include <gofer/mutex.h>

#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>

#include "runtime/poll/netpoll.h"

namespace gofer::internal {

enum class FdKind : uint8_t {
  file,     // cannot be watched: its calls block the thread
  tcp,      // a TCP connection
  socket,   // any other stream
  packets,  // a socket whose messages have an end
  other,    // pipes, terminals, what the kernel makes for events
};

struct FdState {
  int native;
  FdKind kind;
  bool drained = false;  // the last read has emptied it; under `reading`
  std::atomic<bool> closed{false};
  std::atomic<uint32_t> handles{1};
  PollDesc* poll = nullptr;     // nullptr: a file
  char* socket_file = nullptr;  // to be removed; on the heap
  mutex reading;
  mutex writing;
  mutex control;

  FdState(int native_fd, FdKind k) : native(native_fd), kind(k) {}
};

/// Takes over `native`, which is non-blocking already and of that kind; nullptr and ec if it cannot
/// be watched or there is no memory: then it stays the caller's.
FdState* open_fd(int native, FdKind kind, std::error_code& ec) noexcept;
void close_fd(FdState* s) noexcept;
/// close_fd for a number that others have closed: it may be another descriptor's by now, and is
/// left alone.
void forget_fd(FdState* s) noexcept;

inline std::error_code system_error_code(int error) { return {error, std::system_category()}; }

enum class IoSide : uint8_t { in, out };

/// May a call on that side begin: not closed, its deadline not over, the context not done?
std::error_code check_io(FdState* s, IoSide side, const context* ctx) noexcept;
/// Waits until it is worth trying again.
std::error_code wait_io(FdState* s, IoSide side, const context* ctx) noexcept;
/// A lock of s for one call.
std::unique_lock<mutex> lock_io(mutex& m, const context* ctx, std::error_code& ec) noexcept;

/// With the side's lock: calls `attempt(native)`, which returns a count or -errno, until it does
/// not say that it would block, waiting in between.
template <class Attempt>
ssize_t try_until_done(FdState* s, IoSide side, const context* ctx, std::error_code& ec,
                       Attempt attempt) noexcept {
  ec = check_io(s, side, ctx);
  if (ec) return -1;
  if (side == IoSide::in && s->drained) {
    ec = wait_io(s, side, ctx);
    if (ec) return -1;
    s->drained = false;
  }
  for (;;) {
    const ssize_t n = attempt(s->native);
    if (n >= 0) return n;
    const auto error = static_cast<int>(-n);
    if (error == EINTR) continue;
    if ((error != EAGAIN && error != EWOULDBLOCK) || s->poll == nullptr) {
      ec = system_error_code(error);
      return -1;
    }
    ec = wait_io(s, side, ctx);
    if (ec) return -1;
  }
}

/// The same for a whole call.
template <class Attempt>
ssize_t do_io(FdState* s, IoSide side, const context* ctx, std::error_code& ec,
              Attempt attempt) noexcept {
  if (s == nullptr) {
    ec = io_errc::closed;
    return -1;
  }
  const auto hold = lock_io(side == IoSide::in ? s->reading : s->writing, ctx, ec);
  return ec ? -1 : try_until_done(s, side, ctx, ec, attempt);
}

/// Calls f(native) while the descriptor is surely open; f returns 0, or an errno value.
template <class F>
std::error_code control_fd(FdState* s, F f) noexcept {
  if (s == nullptr) return io_errc::closed;
  std::error_code ec;
  const auto hold = lock_io(s->control, nullptr, ec);
  if (s->closed.load(std::memory_order_acquire)) return io_errc::closed;
  const int error = f(s->native);
  return error == 0 ? std::error_code() : system_error_code(error);
}

}  // namespace gofer::internal
