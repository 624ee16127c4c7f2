#include "os/signal.h"

#include <time.h>
#include <unistd.h>

#include "os/error.h"
#include "os/raw_syscall.h"

namespace gofer::internal::os {

int set_signal_action(int number, const struct sigaction* action, struct sigaction* before) {
  return or_error(sigaction(number, action, before));
}

void reset_signal(int number) { signal(number, SIG_DFL); }

int send_signal(int process, int thread, int number) {
  return static_cast<int>(raw_syscall(SYS_tgkill, process, thread, number));
}

int queue_signal(int process, int thread, int number, const siginfo_t& info) {
  return static_cast<int>(
      raw_syscall(SYS_rt_tgsigqueueinfo, process, thread, number, reinterpret_cast<long>(&info)));
}

void set_signal_stack(const stack_t* stack, stack_t* before) { sigaltstack(stack, before); }

int set_kernel_signal_stack(const stack_t* stack, stack_t* before) {
  return static_cast<int>(
      raw_syscall(SYS_sigaltstack, reinterpret_cast<long>(stack), reinterpret_cast<long>(before)));
}

void set_alarm(unsigned seconds) { alarm(seconds); }

void pending_signals(sigset_t* set) { sigpending(set); }

void take_pending_signal(const sigset_t& set) {
  const timespec at_once{};
  while (or_error(sigtimedwait(&set, nullptr, &at_once)) == -EINTR) {
  }
}

}  // namespace gofer::internal::os
