// Pauses at function prologues: the runtime's end of an architecture's morestack.S, which says what
// is done to a prologue and why.
//
// A thread is asked for a pause by a store of ~0 to its guard, from any thread; the next prologue
// of code built for it (gofer_preemptible in cmake/GoferPreemptible.cmake) calls
// gofer_prologue_pause. The guard belongs to the thread, not to a goroutine: one that was raised
// for a goroutine which is gone meanwhile costs the next one a call for nothing.
#pragma once

#include <cstdint>

#include "gofer/detail/config.h"
#include "runtime/base/atomic.h"

/// Called between any two instructions of user code, with whatever locks it holds: takes no lock
/// but the runtime's, allocates nothing, leaves errno alone. In a foreign thread: nothing.
extern "C" GOFER_API void gofer_prologue_pause();

namespace gofer::internal {

/// The calling thread's guard, which lives as long as the thread; nullptr where there is no hook.
uintptr_t* prologue_guard();

/// Orders nothing: the thread comes by when it comes by.
inline void raise_prologue_guard(uintptr_t* guard) {
  std::atomic_ref(*guard).store(~uintptr_t{0}, relaxed);
}

#if defined(GOFER_CHECKS)
/// What tests run at every call of gofer_prologue_pause, to count and to spoil registers.
extern constinit atomic<void (*)()> prologue_probe;
#endif

}  // namespace gofer::internal
