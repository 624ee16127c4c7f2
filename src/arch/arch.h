// The port to a processor architecture: everything that src/arch/<name>/ provides.
//
// CMake takes the folder that is named like the processor (cmake/GoferArch.cmake) and compiles no
// other one. A port consists of
//
//   arch_inline.h   the first part of this page, which is inlined; included at the end of the page
//   *.cc, *.S       the other parts, in files of any name
//   morestack.S     the prologue hook, for targets built with gofer_preemptible(); optional
//   tests           of what no other architecture has
//
// No code outside of src/arch/ knows a register, an instruction, or the layout of a signal's frame;
// the lint test checks that. The memory orders of the runtime are argued for the C++ memory model,
// so a weaker memory than x86's needs nothing more. What a port relies on: Linux with 64-bit
// pointers, the Itanium C++ ABI with DWARF unwinding, lock-free atomics of 8 bytes, membarrier(2),
// and stacks that grow downwards.
//
// Machine code in tests is not behind this page: tests/prologue, and some cases of preempt_test,
// stack_use_test and traceback_test.
#pragma once

#include <unwind.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gofer::internal {

struct M;

namespace arch {

// ---- Inlined: arch_inline.h ----
//
// It also defines
//   page_size   the size of a page, the largest one if the kernel has the choice
//   red_zone    how many bytes below the stack pointer a function may use
//   return_place  where a call leaves the return address, counted from the stack pointer with which
//               the caller goes on. The tracer's stacks end at a call that does not (stacks.h)
//   saved_register_places, saved_sp   where debuggers find them on such a stack
//   Registers   the registers of a stack that does not run, those that the unwinder asks for

/// For debuggers: a register that lies on a stack that does not run, by gdb's name, and how far it
/// is from the saved stack pointer. arch_inline.h has an array of them, saved_register_places, and
/// saved_sp: the name of the stack pointer, and what has to be added to the saved one.
struct SavedRegister {
  const char* name;
  size_t offset;
};

/// The M of the calling thread, from the thread_local gofer_current_m. A goroutine may go on in
/// another thread after a switch, and compilers keep the address of a thread_local over calls: this
/// has to be an asm statement that they can neither move nor merge.
M* current_m();

/// A system call without libc: its value, or -errno. errno stays as it is.
long raw_syscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                 long f = 0);

/// A counter of the processor that is cheap to read...
uint64_t ticks();
/// ...and whether it runs at one rate, on a core that sleeps or changes its frequency, too.
bool has_steady_ticks();

/// Whether a byte that other threads may change is true, in one instruction and a jump; it is
/// expected to be false.
bool is_set(const std::atomic<bool>& byte);

/// For loops that wait for another thread: leaves the core to its other hardware thread.
void cpu_relax();

/// The calling thread's guard: the word that function prologues compare the stack pointer with, in
/// targets built for it. nullptr: this architecture has no prologue hook.
uintptr_t* prologue_guard();

/// A client request of valgrind's: a sequence of instructions that does nothing to a processor.
/// Empty where valgrind does not run.
void tell_valgrind(const volatile uint64_t (&request)[6]);

/// The place of the program counter and of the stack pointer in it.
struct Registers;
uintptr_t& pc_of(Registers& r);
uintptr_t& sp_of(Registers& r);

/// What a return instruction would do at the first instruction of a function.
void return_to_caller(Registers& r);

// ---- Switching stacks ----
//
// A stack that does not run is known by its stack pointer alone; the callee-saved registers and
// the floating-point control words lie on it. The caller-saved registers are dead across a call,
// so the switch does not touch them: the kernel's signal frames and the compiler do the rest.

/// Saves the running stack's state on it and its pointer in *save, goes over to the stack
/// `load`, and returns there the m that was passed: a goroutine that wakes up on another thread
/// learns by it where it is.
extern "C" M* gofer_switch(void** save, void* load, M* m);

/// Starts anew at the top of a stack, forgetting what was on it, as if make_frame and gofer_switch
/// had been called.
extern "C" [[noreturn]] void gofer_restart(void* top, M* m);

/// Prepares an unused stack so that the first switch to it calls gofer_main(m). `top` is aligned
/// to 16 bytes. The CFI of the first frame declares its return address undefined: unwinders, and
/// with them exceptions and goexit, find the end of the stack there.
void* make_frame(void* top);

/// What gofer_switch or make_frame has saved on a stack.
Registers saved_registers(void* sp);

// ---- In a signal's handler: what the signal has interrupted ----

Registers interrupted_registers(const void* signal_context);

/// If the signal has interrupted a system call that only waits (restartable.h), and that the kernel
/// would not start again by itself, it is started again.
void restart_interrupted_call(void* signal_context);

/// The interrupted code is a loop that waits for another thread. Such loops have an instruction
/// that tells the processor so (cpu_relax), within a few bytes of every other.
bool is_spinning(const void* signal_context);

// ---- For reports ----

/// _Unwind_Backtrace(each, argument), whose first frame is this function, and whose second one is
/// the code that has these registers.
extern "C" [[gnu::visibility("hidden")]] void gofer_unwind_from(const Registers* registers,
                                                                _Unwind_Trace_Fn each,
                                                                void* argument);

/// Calls run(argument) on the stack that ends at `top`, aligned to 16 bytes. Unwinders find the way
/// back to the caller's stack.
extern "C" [[gnu::visibility("hidden")]] void gofer_call_on_stack(void (*run)(void*),
                                                                  void* argument, void* top);

}  // namespace arch
}  // namespace gofer::internal

/// Where every goroutine begins; defined by the scheduler.
extern "C" [[noreturn]] void gofer_main(gofer::internal::M* m);

#include "arch_inline.h"
