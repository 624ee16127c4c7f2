// Preemption of goroutines that do not come to the scheduler by themselves. See preempt.cc.
#pragma once

#include "runtime/threads/m.h"

namespace gofer::internal {

/// The signal's handler. False: it cannot be had.
bool install_preemption();

/// Asks the goroutine that holds p, by `word`, on m to give p up. For sysmon.
void request_preempt(M* m, P* p, PWord word, Preempt kind);

/// Interrupts m, to do what was asked of it, to give up its P if the world is to stop, or to wait
/// for a P if it has lost its own.
void signal_m(M* m);

/// The calling goroutine does what sysmon has asked of it, if that still holds, and stays on its
/// thread. From the signal's handler, or from a function's prologue; outside of the runtime.
/// spins: it was found in a loop that waits for another thread.
void preempt_here(M* m, bool spins, bool by_signal);

/// All paused threads go on without a P: the process ends, and they may hold locks that it needs.
void let_paused_go();

}  // namespace gofer::internal
