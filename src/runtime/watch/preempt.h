// Preemption of goroutines that do not come to the scheduler by themselves. See preempt.cc.
#pragma once

#include <cstdint>

#include "runtime/base/atomic.h"
#include "runtime/threads/m.h"

namespace gofer::internal {

struct Preemption {
  atomic<bool> has_signal{false};   // threads may be paused by a signal: signal_m
  atomic<bool> has_handler{false};  // threads may be interrupted by a signal: interrupt_m
  atomic<uint64_t> paused{0};       // times that a goroutine was paused
  atomic<uint64_t> by_prologue{0};  // of those, at the prologue of a function...
  atomic<uint64_t> by_signal{0};    // ...and by the signal
};

[[gnu::visibility("hidden")]] extern Preemption preemption;

/// Installs the handler of the signal. Returns false if the kernel refuses.
bool install_preemption();

/// sysmon calls it: asks the goroutine on m, which holds p by `word`, to give p up.
void request_preempt(M* m, P* p, PWord word, Preempt kind);

/// Interrupts m with a signal. m then does what was asked of it, gives up its P if the world is to
/// stop, or waits for a P if it has lost its own.
void signal_m(M* m);

/// Interrupts m with the same signal, also where no goroutine is paused by it. m answers a request
/// for a trace.
void interrupt_m(M* m);

/// The signal's handler, or a function's prologue, calls it outside of the runtime. The calling
/// goroutine does what sysmon has asked of it, if that still holds, and stays on its thread.
/// `spins` is set if it was found in a loop that waits for another thread, `by_signal` if the
/// handler calls.
void preempt_here(M* m, bool spins, bool by_signal);

/// Lets all paused threads go on without a P, because the process ends and they may hold locks that
/// it needs.
void let_paused_go();

}  // namespace gofer::internal
