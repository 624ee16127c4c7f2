// Signals of the process. What changes the calling thread is in thread.h.
#pragma once

#include <signal.h>

namespace gofer::internal::os {

/// sigaction: 0 or -errno. `action` nullptr: to ask only; `before` nullptr: not asked for.
int set_signal_action(int number, const struct sigaction* action, struct sigaction* before);

/// The signal has its default effect again.
void reset_signal(int number);

/// To one thread, by direct system calls: 0 or -errno.
int send_signal(int process, int thread, int number);
int queue_signal(int process, int thread, int number, const siginfo_t& info);

/// sigaltstack, for the calling thread: libc's, which sanitizers and thread_calls.cc stand in front
/// of, and the kernel's: 0 or -errno.
void set_signal_stack(const stack_t* stack, stack_t* before);
int set_kernel_signal_stack(const stack_t* stack, stack_t* before);

/// SIGALRM after so many seconds, and no earlier one.
void set_alarm(unsigned seconds);

/// The signals that are blocked and have come.
void pending_signals(sigset_t* set);
/// Takes one of these, which are blocked, if one has come; it has no effect then.
void take_pending_signal(const sigset_t& set);

}  // namespace gofer::internal::os
