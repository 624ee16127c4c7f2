// Threads as the scheduler needs them: started detached, and counted by the kernel.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>

#include "os/clock.h"

namespace gofer::internal::os {

/// Starts a detached thread. 0 or an errno value.
int start_thread(void* (*body)(void*), void* arg);

int thread_id();

/// What tools show of the calling thread; 15 characters at most.
void name_thread(const char* name);

/// Threads of this process as /proc/self/task shows them; -1 when it cannot be read.
int count_threads();

/// The calling thread's time limits end when they are due, not up to 50 us later. What it starts
/// (threads, processes) inherits that.
void sleep_exactly();
/// The end of sleep_exactly().
void sleep_as_usual();

/// pthread_sigmask, for the runtime itself: thread_calls.cc has one that serves the program.
int set_signal_mask(int how, const sigset_t* set, sigset_t* old);

/// The core that the calling thread is on, or was a moment ago; -1: not known.
int current_cpu();

/// Lets other threads of this core run.
void yield_thread();

/// errno of the thread that calls it. Compilers keep errno's address over a call after which a
/// goroutine may be in another thread; not over this one.
void set_errno(int value);

/// Sleeps for ever.
[[noreturn]] void sleep_for_ever();

}  // namespace gofer::internal::os
