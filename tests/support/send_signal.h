// A signal to this process.
#pragma once

#include <signal.h>
#include <unistd.h>

#include "runtime/base/sanitizer.h"

namespace gofer::test {

/// To whichever thread the kernel chooses. TSan calls a handler only at the next call of libc's in
/// that thread, which may sleep in the runtime for ever: there, to the calling thread.
inline void send_signal(int number) {
#if defined(GOFER_TSAN)
  raise(number);
#else
  kill(getpid(), number);
#endif
}

}  // namespace gofer::test
