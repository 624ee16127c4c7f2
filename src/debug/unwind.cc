// Unwinding by the compiler's own unwinder.
//
// _Unwind_Backtrace walks only the stack it is called on. To make it walk another one, a small
// assembly function (gofer_unwind_from) calls it whose CFI says: the caller's registers are in that
// array. The unwinder then steps from that function straight into the stopped stack (and so
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
#include <unistd.h>
#include <unwind.h>

#include <cerrno>

namespace gofer::internal {
namespace {

struct Walk {
  std::span<uintptr_t> pcs;
  size_t skip;
  size_t found = 0;
  std::span<uintptr_t> cfas{};
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
  if (walk.found < walk.cfas.size()) walk.cfas[walk.found] = _Unwind_GetCFA(context);
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

size_t unwind_registers(arch::Registers registers, std::span<uintptr_t> pcs,
                        std::span<uintptr_t> cfas = {}) {
  if (pcs.empty()) return 0;
  pcs[0] = arch::pc_of(registers);
  size_t before = 0;
  // The unwinder reads the code at a pc that it does not know, to recognise signal frames; where
  // there is nothing, only a call can have led there.
  if (!is_readable(arch::pc_of(registers))) {
    if (!is_readable(arch::sp_of(registers))) return 1;
    arch::return_to_caller(registers);
    if (!is_readable(arch::pc_of(registers))) return 1;
    before = 1;
    cfas = {};
  }
  constexpr size_t own_frames = 1;  // gofer_unwind_from
  Walk walk{pcs.subspan(before), own_frames, 0, cfas};
  arch::gofer_unwind_from(&registers, collect, &walk);
  return walk.found + before > 0 ? walk.found + before : 1;
}

}  // namespace

size_t unwind(const arch::Registers& from, std::span<uintptr_t> pcs, std::span<uintptr_t> cfas) {
  const size_t found = unwind_registers(from, pcs, cfas);
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
  return unwind_registers(arch::interrupted_registers(ucontext), pcs);
}

}  // namespace gofer::internal
