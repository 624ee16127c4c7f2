// A write to a pipe without a reader raises SIGPIPE, which ends the process. A socket can be told
// not to; for anything else the signal is blocked meanwhile, and taken away if it has come.
#include "io/sigpipe.h"

#include <signal.h>

#include <cerrno>

#include "os/file.h"
#include "os/signal.h"
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
    os::pending_signals(&pending);
    was_pending = sigismember(&pending, SIGPIPE) == 1;
  }
  const ssize_t n = os::writev(native, vector, count);
  if (n == -EPIPE && !was_pending) {
    os::take_pending_signal(pipe_signal);
  }
  os::set_signal_mask(SIG_SETMASK, &before, nullptr);
  return n;
}

}  // namespace gofer::internal
