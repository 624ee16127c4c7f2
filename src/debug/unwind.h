// Stack unwinding: of a stopped goroutine, of the running stack, of code that a signal interrupted.
//
// What a list of pcs means, here and in traceback.h: entry 0 lies in the instruction that is being
// executed (a call, or what a signal interrupted) and is looked up as it is; the others are return
// addresses and are looked up one byte before, or a call at the very end of a function would be
// shown as the function after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "arch/arch.h"

namespace gofer::internal {

/// The stack that `from` describes: its pc is where the stack goes on after the call or the
/// assembly that stopped it, its sp the value there. It must not run meanwhile. Ends at a frame
/// whose CFI declares the return address undefined, at code without CFI, or when `pcs` is full;
/// gives the number of entries, at least 1 when there is room. No malloc, and no lock (glibc 2.35):
/// fit for signal handlers. If `cfas` is not empty, it is as large as `pcs` and gets the stack
/// pointer of each frame.
size_t unwind(const arch::Registers& from, std::span<uintptr_t> pcs,
              std::span<uintptr_t> cfas = {});

/// The running stack; entry 0 is the caller of unwind_here when `skip` is 0.
[[gnu::noinline]] size_t unwind_here(std::span<uintptr_t> pcs, size_t skip);

/// The code that a signal interrupted; `ucontext` is the handler's third argument. A jump to an
/// address where no code is (a call through a null pointer) is followed to the caller.
size_t unwind_signal(const void* ucontext, std::span<uintptr_t> pcs);

}  // namespace gofer::internal
