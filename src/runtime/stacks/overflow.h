// Stack overflow: how it is found, and its report.
//
// A stack with a guard, or with inaccessible space below it, faults. One without is checked at
// every switch that leaves it: whether its stack pointer lies in it, and whether its lowest 512
// bytes, the canary, are still zero, as the kernel gave them. The canary costs no memory: until a
// frame is written there the kernel shows its one page of zeros. A recursion writes to every frame,
// so the canary finds it if its frames are smaller than that. An overflow that both overlook, by a
// large frame that returns before the next switch, has overwritten a neighbour's stack: that is
// what guards are for. The check of a goroutine that ends comes before another one gets its stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "debug/traceback.h"
#include "runtime/threads/m.h"

namespace gofer::internal {

inline constexpr size_t stack_canary_size = 512;

/// There are stacks without a guard from now on: switches check. Any number of calls.
void begin_stack_checks();

/// Returns the goroutine whose stack overflows with an access to `address`, in the code that a
/// signal has interrupted: the running one, or the one that is just being left, on whose stack the
/// switch still works. nullptr: it is no overflow.
G* whose_overflow(M* m, uintptr_t address, const void* context);

/// After begin_report(). Ends the process.
[[noreturn]] void report_overflow(M* m, G* g, std::span<const uintptr_t> pcs);

/// For the trace of the reporting thread, which may be a deep recursion.
inline constexpr size_t max_depth = 65536;
extern uintptr_t deep_pcs[max_depth];
/// How to print the trace of code that a signal has interrupted.
FrameOptions options_in_signal(std::span<const uintptr_t> pcs);

/// By a commit, of the goroutine that m has left. Ends the process if it finds an overflow.
void check_stack(M* m, G* g);

}  // namespace gofer::internal
