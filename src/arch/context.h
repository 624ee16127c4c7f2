// Switching stacks: everything here is of one processor architecture.
//
// A stack that does not run is known by its stack pointer alone; the callee-saved registers and
// the floating-point control words lie on it. The caller-saved registers are dead across a call,
// so the switch does not touch them: the kernel's signal frames and the compiler do the rest.
#pragma once

#include "debug/traceback.h"

namespace gofer::internal {

struct M;

namespace arch {

/// Saves the running stack's state on it and its pointer in *save, goes over to the stack
/// `load`, and returns there the m that was passed: a goroutine that wakes up on another thread
/// learns by it where it is.
extern "C" M* gofer_switch(void** save, void* load, M* m);

/// Starts anew at the top of a stack, forgetting what was on it, as if make_frame and gofer_switch
/// had been called.
extern "C" [[noreturn]] void gofer_restart(void* top, M* m);

/// Prepares an unused stack so that the first switch to it calls gofer_main(m). `top` is aligned
/// to 16 bytes.
void* make_frame(void* top);

/// The registers saved on a stack that does not run, for the unwinder.
Context saved_context(void* sp);

/// In a signal's handler: the stack pointer of what the signal has interrupted.
uintptr_t interrupted_sp(const void* signal_context);

/// In a signal's handler: if the signal has interrupted a system call that only waits, and that the
/// kernel would not start again by itself, it is started again.
void restart_interrupted_call(void* signal_context);

/// In a signal's handler: the interrupted code is a loop that waits for another thread. Such loops
/// have an instruction that tells the processor so (x86: pause), within a few bytes of every other.
bool is_spinning(const void* signal_context);

/// Tells valgrind, if the program runs under it, that this is a stack; else it takes some
/// nanoseconds.
void register_stack(void* low, void* high);

/// The same of memory that is to become stacks: a leak check need not read it.
void hide_unused_stacks(void* low, size_t size);

}  // namespace arch
}  // namespace gofer::internal

/// Where every goroutine begins; defined by the scheduler.
extern "C" [[noreturn]] void gofer_main(gofer::internal::M* m);
