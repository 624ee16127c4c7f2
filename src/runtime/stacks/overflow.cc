// The report of a goroutine that used up its stack.
//
// After a fault (report/crash.cc) it is made on the M's signal stack, after a check on the stack
// that m has switched to.
#include "runtime/stacks/overflow.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include "arch/arch.h"
#include "debug/fd_writer.h"
#include "os/signal.h"
#include "runtime/base/sanitizer.h"
#include "runtime/report/panic.h"
#include "runtime/report/reporter.h"

namespace gofer::internal {
namespace {

// An access below the stack: in its own guard, or further down, where its stack pointer is, too.
// The latter is a large frame that has stepped over the guard, or a stack without one.
bool overflows(const G* g, uintptr_t address, uintptr_t sp) {
  constexpr uintptr_t below_sp = 4096;   // the red zone, and the call that comes next
  constexpr uintptr_t neighbours = 256;  // a stack pointer that is farther away is of another stack
  const uintptr_t low = stack_low(g->stack());
  if (address >= low) return false;
  if (address >= low - stack_guard_size) return true;
  return sp < low && low - sp <= neighbours * stack_size(g->stack_class) &&
         address + below_sp >= sp;
}

// In vectors, because every switch does it. The canary is no variable of anybody's: a sanitizer
// that has poisoned it is wrong here.
__attribute__((no_sanitize("address", "thread"))) bool canary_lives(uintptr_t low) {
  using Vector [[gnu::vector_size(16), gnu::may_alias]] = uint64_t;
  const auto* from = reinterpret_cast<const Vector*>(low);
  Vector even{};
  Vector odd{};
  for (size_t i = 0; i < stack_canary_size / sizeof(Vector); i += 4) {
    even |= from[i] | from[i + 2];
    odd |= from[i + 1] | from[i + 3];
  }
  even |= odd;
  return (even[0] | even[1]) == 0;
}

}  // namespace

uintptr_t deep_pcs[max_depth];

FrameOptions options_in_signal(std::span<const uintptr_t> pcs) {
  constexpr size_t innermost = 50;
  // TSan would complain, at length, about every malloc in a signal handler.
  return {.no_malloc = tsan_enabled || is_in_malloc(pcs.first(std::min(pcs.size(), innermost)))};
}

G* whose_overflow(M* m, uintptr_t address, const void* context) {
  if (m == nullptr) return nullptr;
  arch::Registers registers = arch::interrupted_registers(context);
  const uintptr_t sp = arch::sp_of(registers);
  G* left = m->in_runtime.load(relaxed) != 0 ? m->left : nullptr;  // else it is anybody's
  for (G* g : {m->curg, left}) {
    if (g != nullptr && g->head != nullptr && overflows(g, address, sp)) return g;
  }
  return nullptr;
}

void report_overflow(M* m, G* g, std::span<const uintptr_t> pcs) {
  m->curg = g;
  {
    FdWriter out(STDERR_FILENO);
    out.print("runtime: goroutine stack exceeds %zu-byte limit\n",
              stack_size(g->stack_class) - stack_guard_size);
    out.print("fatal error: stack overflow\n\n");
  }
  print_running(g, pcs, options_in_signal(pcs));
  finish_trace();
  os::set_alarm(0);
  os::reset_signal(SIGABRT);
  std::abort();
}

void check_stack(M* m, G* g) {
  const uintptr_t low = stack_low(g->stack());
  const auto sp = reinterpret_cast<uintptr_t>(g->head->sp);
  if (sp >= low + stack_canary_size && canary_lives(low)) return;
  begin_report();
  // An overflow from above may have overwritten what g saved: then there is nothing to unwind.
  constexpr uintptr_t farthest = 16 * 1024 * 1024;
  const bool plausible = sp + farthest >= low && sp < reinterpret_cast<uintptr_t>(g->head);
  const size_t found = plausible ? unwind(arch::saved_registers(g->head->sp), deep_pcs) : 0;
  report_overflow(m, g, {deep_pcs, found});
}

}  // namespace gofer::internal
