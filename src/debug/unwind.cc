// Unwinding by the compiler's own unwinder.
//
// _Unwind_Backtrace walks only the stack it is called on. To make it walk another one, a small
// assembly function calls it whose CFI says: the caller's registers are in the array that rbx
// points to. The unwinder then steps from that function straight into the stopped stack (and so
// does gdb). There is no malloc and, with glibc 2.35 and later, no lock on the way
// (_dl_find_object).
//
// Rejected:
//  - libunwind. libunwind.so exports _Unwind_RaiseException and its family: linked before libgcc_s,
//    which is what -lunwind does, it takes over every exception of the program (a throw and catch
//    went from 1.4 to 13.6 us here). It also takes the loader's lock, and it finds nothing more.
//  - Frame pointers: libraries and user code at -O2 have none.
#include "debug/unwind.h"

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <cerrno>
#include <csignal>
#include <iterator>

namespace gofer::internal {
namespace {

// ---- x86-64 ----

// Register values by DWARF number: 0 rax, 3 rbx, 6 rbp, 7 rsp, 8..15 r8..r15, 16 rip.
struct Registers {
  uintptr_t dwarf[17];
};

extern "C" [[gnu::visibility("hidden")]] void gofer_unwind_from(const Registers* registers,
                                                                _Unwind_Trace_Fn each, void* arg);

// CFA = registers[7] (DW_CFA_def_cfa_expression: DW_OP_breg3 56, DW_OP_deref); every other register
// n is saved at registers + 8n (DW_CFA_expression n: DW_OP_breg3 8n, as a two-byte LEB128). A
// signal frame, so that rip is looked up as it is, not as a return address.
asm(R"(
  .pushsection .text
  .globl gofer_unwind_from
  .hidden gofer_unwind_from
  .type gofer_unwind_from, @function
gofer_unwind_from:
  .cfi_startproc
  .cfi_signal_frame
  pushq %rbx
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %rbx, 0
  movq %rdi, %rbx
  .cfi_remember_state
  .cfi_escape 0x0f, 0x03, 0x73, 0x38, 0x06
  .irp n, 0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16
  .cfi_escape 0x10, \n, 0x03, 0x73, 0x80 | ((8 * \n) & 0x7f), (8 * \n) >> 7
  .endr
  movq %rsi, %rdi
  movq %rdx, %rsi
  call _Unwind_Backtrace@PLT
  .cfi_restore_state
  popq %rbx
  .cfi_adjust_cfa_offset -8
  .cfi_restore %rbx
  ret
  .cfi_endproc
  .size gofer_unwind_from, . - gofer_unwind_from
  .popsection
)");

// A frame pointer chain as usual, so that unwinders find the way back to the old stack.
asm(R"(
  .pushsection .text
  .globl gofer_call_on_stack
  .hidden gofer_call_on_stack
  .type gofer_call_on_stack, @function
gofer_call_on_stack:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset %rbp, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  movq %rdx, %rsp
  movq %rdi, %rax
  movq %rsi, %rdi
  call *%rax
  movq %rbp, %rsp
  popq %rbp
  .cfi_def_cfa %rsp, 8
  ret
  .cfi_endproc
  .size gofer_call_on_stack, . - gofer_call_on_stack
  .popsection
)");

Registers registers_of(const Context& c) {
  return {{0, 0, 0, c.bx, 0, 0, c.bp, c.sp, 0, 0, 0, 0, c.r12, c.r13, c.r14, c.r15, c.pc}};
}

Registers registers_of(const ucontext_t& c) {
  Registers registers{};
  constexpr int order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                           REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                           REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  for (size_t i = 0; i < std::size(order); ++i) {
    registers.dwarf[i] = static_cast<uintptr_t>(c.uc_mcontext.gregs[order[i]]);
  }
  return registers;
}

uintptr_t& pc_of(Registers& r) { return r.dwarf[16]; }
uintptr_t& sp_of(Registers& r) { return r.dwarf[7]; }

// A call pushes the return address.
void return_to_caller(Registers& r) {
  pc_of(r) = *reinterpret_cast<const uintptr_t*>(sp_of(r));
  sp_of(r) += sizeof(uintptr_t);
}

// ---- unwinding ----

struct Walk {
  std::span<uintptr_t> pcs;
  size_t skip;
  size_t found = 0;
};

_Unwind_Reason_Code collect(_Unwind_Context* context, void* argument) {
  Walk& walk = *static_cast<Walk*>(argument);
  if (walk.skip > 0) {
    --walk.skip;
    return _URC_NO_REASON;
  }
  int exact = 0;  // an interrupted instruction, not a return address
  const uintptr_t pc = _Unwind_GetIPInfo(context, &exact);
  if (pc == 0 || walk.found == walk.pcs.size()) return _URC_END_OF_STACK;
  // Entry 0 will be looked up as it is, the others one byte before: see the header.
  const bool first = walk.found == 0;
  walk.pcs[walk.found++] = first ? (exact ? pc : pc - 1) : (exact ? pc + 1 : pc);
  return _URC_NO_REASON;
}

// The kernel looks at the new mask before it finds that the request makes no sense, so the error
// tells whether the 8 bytes can be read; no signal, no descriptor needed.
bool is_readable(uintptr_t address) {
  constexpr uintptr_t lowest = 4096;  // a null mask would not be looked at
  if (address < lowest) return false;
  const int saved_errno = errno;
  constexpr int no_such_request = -1;
  constexpr size_t mask_size = 8;
  const bool fault =
      syscall(SYS_rt_sigprocmask, no_such_request, address, nullptr, mask_size) != 0 &&
      errno == EFAULT;
  errno = saved_errno;
  return !fault;
}

size_t unwind_registers(Registers registers, std::span<uintptr_t> pcs) {
  if (pcs.empty()) return 0;
  pcs[0] = pc_of(registers);
  size_t before = 0;
  // The unwinder reads the code at a pc that it does not know, to recognise signal frames; where
  // there is nothing, only a call can have led there.
  if (!is_readable(pc_of(registers))) {
    if (!is_readable(sp_of(registers))) return 1;
    return_to_caller(registers);
    if (!is_readable(pc_of(registers))) return 1;
    before = 1;
  }
  constexpr size_t own_frames = 1;  // gofer_unwind_from
  Walk walk{pcs.subspan(before), own_frames};
  gofer_unwind_from(&registers, collect, &walk);
  return walk.found + before > 0 ? walk.found + before : 1;
}

}  // namespace

size_t unwind(const Context& from, std::span<uintptr_t> pcs) {
  const size_t found = unwind_registers(registers_of(from), pcs);
  // It goes on after the call, or the assembly, that stopped it: that is the line to show.
  if (found > 0) --pcs[0];
  return found;
}

size_t unwind_here(std::span<uintptr_t> pcs, size_t skip) {
  constexpr size_t own_frames = 1;  // this function: called directly, so that it is one
  Walk walk{pcs, skip + own_frames};
  _Unwind_Backtrace(collect, &walk);
  return walk.found;
}

size_t unwind_signal(const void* ucontext, std::span<uintptr_t> pcs) {
  return unwind_registers(registers_of(*static_cast<const ucontext_t*>(ucontext)), pcs);
}

}  // namespace gofer::internal
