// A write to a pipe that nobody reads raises SIGPIPE, which ends the process. A socket can be told
// not to; for anything else the signal is blocked meanwhile, and taken away if it has come.
#include "io/sigpipe.h"

#include <signal.h>
#include <time.h>

#include <cerrno>

#include "os/thread.h"

namespace gofer::internal {

ssize_t writev_without_sigpipe(int native, const iovec* vector, int count) noexcept {
  sigset_t pipe_signal;
  sigset_t before;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  os::set_signal_mask(SIG_BLOCK, &pipe_signal, &before);
  bool was_pending = false;  // one that others have raised stays
  if (sigismember(&before, SIGPIPE) == 1) {
    sigset_t pending;
    sigpending(&pending);
    was_pending = sigismember(&pending, SIGPIPE) == 1;
  }
  ssize_t n = writev(native, vector, count);
  if (n < 0) n = -errno;
  if (n == -EPIPE && !was_pending) {
    const timespec at_once{};
    while (sigtimedwait(&pipe_signal, nullptr, &at_once) < 0 && errno == EINTR) {
    }
  }
  os::set_signal_mask(SIG_SETMASK, &before, nullptr);
  return n;
}

}  // namespace gofer::internal
