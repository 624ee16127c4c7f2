// The report of a goroutine that used up its stack: a fault in the guard at the stack's end.
//
// It is made on the M's signal stack. The frames are symbolised as usual, unless the overflow
// happened inside of malloc, whose lock this thread may hold then.
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "debug/fd_writer.h"
#include "os/raw_syscall.h"
#include "os/thread.h"
#include "runtime/panic.h"
#include "runtime/sched.h"

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
  sigaction(signal_number, &next_segv, nullptr);
  if (sent) os::raw_syscall(SYS_tgkill, getpid(), os::thread_id(), signal_number);
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

// The goroutine in whose guard the address lies: the running one, or the one that is just being
// left, whose stack the switch still works on.
G* whose_guard(M* m, uintptr_t address) {
  if (m == nullptr) return nullptr;
  G* left = m->in_runtime.load(relaxed) != 0 ? m->left : nullptr;  // else it is anybody's
  for (G* g : {m->curg, left}) {
    if (g != nullptr && g->head != nullptr && in_guard(g->stack(), address)) return g;
  }
  return nullptr;
}

void on_segv(int signal_number, siginfo_t* info, void* context) {
  M* m = current_m();
  G* g = whose_guard(m, reinterpret_cast<uintptr_t>(info->si_addr));
  if (g == nullptr || info->si_code <= 0) {
    pass_on(signal_number, info, context);
    return;
  }
  begin_report();
  m->curg = g;
  {
    FdWriter out(STDERR_FILENO);
    out.print("runtime: goroutine stack exceeds %zu-byte limit\n",
              stack_size(g->stack_class) - stack_guard_size);
    out.print("fatal error: stack overflow\n\n");
  }
  print_overflow(unwind_signal(context, pcs));
  signal(SIGABRT, SIG_DFL);
  std::abort();
}

}  // namespace

void install_overflow_report() {
  struct sigaction action {};
  action.sa_sigaction = on_segv;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &next_segv);
}

}  // namespace gofer::internal
