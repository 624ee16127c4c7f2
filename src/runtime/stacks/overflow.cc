// The report of a goroutine that used up its stack.
//
// After a fault it is made on the M's signal stack, after a check on the stack that m has switched
// to. The frames are symbolised as usual, unless the overflow happened inside of malloc, whose lock
// this thread may hold then.
#include "runtime/stacks/overflow.h"

#include <signal.h>

#include <cstdlib>
#include <cstring>

#include "arch/arch.h"
#include "debug/fd_writer.h"
#include "os/process.h"
#include "os/signal.h"
#include "os/thread.h"
#include "runtime/procs/current.h"
#include "runtime/report/panic.h"
#include "runtime/trace/session.h"

namespace gofer::internal {
namespace {

constexpr size_t innermost = 50;
constexpr size_t outermost = 50;
constexpr size_t max_depth = 65536;

struct sigaction next_segv {};
uintptr_t pcs[max_depth];

// Not a fault of ours: as if we had not been there.
void pass_on(int signal_number, siginfo_t* info, void* context) {
  if ((next_segv.sa_flags & SA_SIGINFO) != 0) {
    next_segv.sa_sigaction(signal_number, info, context);
    return;
  }
  if (next_segv.sa_handler != SIG_DFL && next_segv.sa_handler != SIG_IGN) {
    next_segv.sa_handler(signal_number);
    return;
  }
  const bool sent = info->si_code <= 0;  // by kill or raise: it does not come again by itself
  if (sent && next_segv.sa_handler == SIG_IGN) return;
  os::set_signal_action(signal_number, &next_segv, nullptr);
  if (sent) os::send_signal(os::process_id(), os::thread_id(), signal_number);
}

// A deep recursion: its innermost and its outermost frames tell all.
void print_overflow(size_t n) {
  // TSan would complain, at length, about every malloc in a signal handler.
  const bool in_malloc = is_in_malloc({pcs, n < innermost ? n : innermost});
  const FrameOptions options{.no_malloc = tsan_enabled || in_malloc};
  if (n <= innermost + outermost) {
    print_running({pcs, n}, options);
    return;
  }
  print_running({pcs, innermost}, options, {pcs + n - outermost, outermost},
                n - innermost - outermost);
}

[[noreturn]] void report_overflow(M* m, G* g, size_t frames) {
  m->curg = g;
  {
    FdWriter out(STDERR_FILENO);
    out.print("runtime: goroutine stack exceeds %zu-byte limit\n",
              stack_size(g->stack_class) - stack_guard_size);
    out.print("fatal error: stack overflow\n\n");
  }
  print_overflow(frames);
  tracer::finish_at_report();
  os::reset_signal(SIGABRT);
  std::abort();
}

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

// The goroutine that overflows: the running one, or the one that is just being left, whose stack
// the switch still works on.
G* whose_overflow(M* m, uintptr_t address, uintptr_t sp) {
  if (m == nullptr) return nullptr;
  G* left = m->in_runtime.load(relaxed) != 0 ? m->left : nullptr;  // else it is anybody's
  for (G* g : {m->curg, left}) {
    if (g != nullptr && g->head != nullptr && overflows(g, address, sp)) return g;
  }
  return nullptr;
}

void on_segv(int signal_number, siginfo_t* info, void* context) {
  M* m = current_m();
  arch::Registers registers = arch::interrupted_registers(context);
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  G* g = whose_overflow(m, address, arch::sp_of(registers));
  if (g == nullptr || info->si_code <= 0) {
    pass_on(signal_number, info, context);
    return;
  }
  begin_report();
  report_overflow(m, g, unwind_signal(context, pcs));
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

void check_stack(M* m, G* g) {
  const uintptr_t low = stack_low(g->stack());
  const auto sp = reinterpret_cast<uintptr_t>(g->head->sp);
  if (sp >= low + stack_canary_size && canary_lives(low)) return;
  begin_report();
  // An overflow from above may have overwritten what g saved: then there is nothing to unwind.
  constexpr uintptr_t farthest = 16 * 1024 * 1024;
  const bool plausible = sp + farthest >= low && sp < reinterpret_cast<uintptr_t>(g->head);
  report_overflow(m, g, plausible ? unwind(arch::saved_registers(g->head->sp), pcs) : 0);
}

void install_overflow_report() {
  struct sigaction action {};
  action.sa_sigaction = on_segv;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  os::set_signal_action(SIGSEGV, &action, &next_segv);
}

}  // namespace gofer::internal
