// What another thread of this process is doing, as far as the kernel tells.
#pragma once

#include <cstdint>

namespace gofer::internal::os {

struct ThreadState {
  enum Doing { unknown, running, asleep };
  Doing doing = unknown;
  uint64_t futex = 0;  ///< asleep, waiting for this futex (FUTEX_WAIT); else 0
};

/// By /proc, without keeping a descriptor open: a program may close what it does not know. A hint,
/// true of some moment during the call. unknown: /proc cannot be read.
ThreadState thread_state(int tid);

/// The thread blocks the signal. By /proc; false if that cannot be read.
bool blocks_signal(int tid, int number);

/// Processor time the thread has used; -1 when it has ended.
int64_t thread_cpu_ns(int tid);
/// Of the calling thread.
int64_t own_cpu_ns();

/// The word at an address of this process that may not be mapped; 0 then.
uint32_t peek(uint64_t address);

/// The calling thread is to be scheduled soon after it wakes: it works for some microseconds only.
void ask_for_short_slices();

}  // namespace gofer::internal::os
