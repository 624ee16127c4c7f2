// The report of a crash: SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT. A stack overflow is one case
// of it.
//
// The report comes first, and then the signal takes the course that it would have taken without us:
//  - If a handler was there before ours, it is called, with the mask that it has asked for. It may
//    repair the fault, or jump away, and the process goes on. So nothing is stopped for that
//    report, and there is only one in the life of the process. Faults of foreign threads are such a
//    handler's alone.
//  - Otherwise the signal gets its default action and is sent again, with all that came with it. It
//    is blocked until the handler returns, and ends the process before the next instruction of the
//    code that it had interrupted: a core file shows the crash, not a handler.
//  - A sanitizer's handler makes a report of its own, and gets the signal without one of ours.
//
// The report is made on the M's signal stack; a foreign thread's is made on its own stack. Frames
// are symbolised, unless the signal has interrupted malloc, whose lock this thread may hold then.
// What is broken may break the report: the unwinder runs guarded, and a signal that comes out of
// the report ends the process at once, by the signal that was reported.
//
// Rejected: to return and let the instruction fault again. A signal that was sent does not come
// again by itself, and another thread may have mapped the page meanwhile.
#include "runtime/report/crash.h"

#include <signal.h>

#include <cerrno>

#include "arch/arch.h"
#include "debug/fault_guard.h"
#include "debug/fd_writer.h"
#include "os/process.h"
#include "os/signal.h"
#include "os/thread.h"
#include "runtime/process/process_state.h"
#include "runtime/procs/current.h"
#include "runtime/report/exceptions.h"
#include "runtime/report/panic.h"
#include "runtime/report/reporter.h"
#include "runtime/stacks/overflow.h"

namespace gofer::internal {
namespace {

struct Handled {
  int number;
  const char* name;
  const char* text;  // Go's
  struct sigaction before {};

  bool has_handler() const {
    return (before.sa_flags & SA_SIGINFO) != 0 ||
           (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN);
  }
};

constinit Handled handled[] = {{SIGSEGV, "SIGSEGV", "segmentation violation"},
                               {SIGBUS, "SIGBUS", "bus error"},
                               {SIGFPE, "SIGFPE", "floating-point exception"},
                               {SIGILL, "SIGILL", "illegal instruction"},
                               {SIGABRT, "SIGABRT", "abort"}};

bool reports_all = false;
int own_pid = 0;
// The first crash whose report may pass has been reported, and where it was: if a handler returns,
// and is not there any more, the same instruction faults again.
constinit atomic<bool> has_reported{false};
int reported_thread = 0;
uintptr_t reported_pc = 0;
// What the process ends with, from the beginning of its report.
int ends_by = 0;
siginfo_t ends_with;

Handled& handled_by_number(int number) {
  for (Handled& h : handled) {
    if (h.number == number) return h;
  }
  __builtin_unreachable();
}

// By kill or raise: it does not come again by itself.
bool was_sent(const siginfo_t* info) { return info->si_code <= 0; }

// The signal will end the process as soon as it is not blocked any more: for a handler of that
// signal, when it returns.
void end_by_default(int number, const siginfo_t* info) {
  os::reset_signal(number);
  const int pid = os::process_id();
  const int tid = os::thread_id();
  if (os::queue_signal(pid, tid, number, *info) == 0) return;
  if (was_sent(info)) os::send_signal(pid, tid, number);  // else the instruction faults once more
}

// The report itself has crashed.
void end_at_once(int number, const siginfo_t* info) {
  end_by_default(ends_by != 0 ? ends_by : number, ends_by != 0 ? &ends_with : info);
  sigset_t all;
  sigfillset(&all);
  os::set_signal_mask(SIG_UNBLOCK, &all, nullptr);
  os::reset_signal(number);
}

// As the kernel would call it, but for the stack: this is the one that ours has asked for.
void call_handler(Handled& h, siginfo_t* info, void* context) {
  const struct sigaction action = h.before;
  if ((action.sa_flags & SA_RESETHAND) != 0) {
    h.before.sa_flags &= ~SA_SIGINFO;
    h.before.sa_handler = SIG_DFL;
  }
  sigset_t before;
  os::set_signal_mask(SIG_BLOCK, &action.sa_mask, &before);
  if ((action.sa_flags & SA_NODEFER) != 0) {
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, h.number);
    os::set_signal_mask(SIG_UNBLOCK, &own, nullptr);
  }
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(h.number, info, context);
  } else {
    action.sa_handler(h.number);
  }
  os::set_signal_mask(SIG_SETMASK, &before, nullptr);
}

void pass_on(Handled& h, siginfo_t* info, void* context) {
  if (h.has_handler()) {
    call_handler(h, info, context);
  } else if (h.before.sa_handler != SIG_IGN || !was_sent(info)) {
    end_by_default(h.number, info);
  }
}

uintptr_t crash_pc(const void* context) {
  arch::Registers registers = arch::interrupted_registers(context);
  return arch::pc_of(registers);
}

// [signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x46d0d8]
void print_signal(FdWriter& out, const Handled& h, const siginfo_t* info, const void* context) {
  out.print("[signal %s: %s", h.name, h.text);
  if (!was_sent(info)) {
    out.print(" code=0x%x addr=0x%lx", static_cast<unsigned>(info->si_code),
              reinterpret_cast<unsigned long>(info->si_addr));
  } else if (info->si_pid != os::process_id()) {
    out.print(" sent by process %d", info->si_pid);
  }
  out.print(" pc=0x%lx]", static_cast<unsigned long>(crash_pc(context)));
}

struct Unwinding {
  const void* context;
  size_t found;
};

// Returns the number of entries in deep_pcs. Those of an earlier report are cleared before, so that
// a fault of the unwinder in a broken stack leaves the frames that it had found.
size_t unwind_crash(const void* context) {
  for (size_t i = 0; i < max_depth && deep_pcs[i] != 0; ++i) deep_pcs[i] = 0;
  Unwinding unwinding{context, 0};
  const auto run = [](void* argument) {
    auto& to = *static_cast<Unwinding*>(argument);
    to.found = unwind_signal(to.context, deep_pcs);
  };
  if (sanitizers_enabled) {  // they would complain of what the guard does in a handler
    run(&unwinding);
  } else if (!run_guarded(run, &unwinding)) {
    while (unwinding.found < max_depth && deep_pcs[unwinding.found] != 0) ++unwinding.found;
  }
  return unwinding.found;
}

void print_crash(const Handled& h, const siginfo_t* info, const void* context) {
  M* m = current_m();
  G* g = current_g();
  const bool inside = m != nullptr && (g == nullptr || m->in_runtime.load(relaxed) != 0);
  {
    FdWriter out(STDERR_FILENO);
    if (const char* type = unreported_exception(g); type != nullptr) {
      out.print("panic: %s\n", type);
    }
    out.print("fatal error: unexpected signal%s\n", inside ? " during runtime execution" : "");
    print_signal(out, h, info, context);
    out.write("\n\n");
  }
  const std::span<const uintptr_t> pcs{deep_pcs, unwind_crash(context)};
  FrameOptions options = options_in_signal(pcs);
  options.hide_internal = !inside;
  print_running(g, pcs, options);
}

// User code that the report has called crashes: the report goes on without it.
[[noreturn]] void report_crash_in_report(const Handled& h, const siginfo_t* info,
                                         const void* context) {
  {
    FdWriter out(STDERR_FILENO);
    out.write("\n");
    print_signal(out, h, info, context);
  }
  resume_report();
}

// Before a handler that was there before ours, and that may let the process go on.
void report_passing_crash(const Handled& h, const siginfo_t* info, const void* context) {
  wait_for_other_report();
  if (current_g() == nullptr || sanitizers_enabled) return;
  if (has_reported.exchange(true, relaxed) || !begin_passing_report()) return;
  reported_thread = os::thread_id();
  reported_pc = crash_pc(context);
  print_crash(h, info, context);
  end_passing_report();
}

void report_last_crash(const Handled& h, const siginfo_t* info, const void* context) {
  begin_report();
  ends_with = *info;
  ends_by = h.number;
  const bool is_known = reported_thread == os::thread_id() && reported_pc == crash_pc(context);
  if (!is_known) print_crash(h, info, context);
  finish_trace();
  os::set_alarm(0);  // a core file may take its time
}

void on_crash(int number, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  Handled& h = handled_by_number(number);
  M* m = current_m();
  // After vfork the memory is still the parent's.
  const bool in_vfork = !process.forked.load(relaxed) && os::process_id() != own_pid;
  if (in_vfork || (was_sent(info) && h.before.sa_handler == SIG_IGN)) {
    pass_on(h, info, context);
  } else if (is_reporting()) {
    const bool ends_it = number == SIGABRT && was_sent(info) && step_may_exit();
    if (has_step_after_failure() && !ends_it) report_crash_in_report(h, info, context);
    if (number != SIGABRT || ends_by != 0) return end_at_once(number, info);
    pass_on(h, info, context);  // that is how a report ends
  } else {
    G* overflowing = was_sent(info) || number != SIGSEGV
                         ? nullptr
                         : whose_overflow(m, reinterpret_cast<uintptr_t>(info->si_addr), context);
    if (overflowing != nullptr) {
      begin_report();
      report_overflow(m, overflowing, {deep_pcs, unwind_crash(context)});
    }
    if (reports_all) {
      (h.has_handler() ? report_passing_crash : report_last_crash)(h, info, context);
    }
    pass_on(h, info, context);
  }
  errno = saved_errno;
}

}  // namespace

void install_crash_report(bool all) {
  own_pid = os::process_id();
  reports_all = all;
  struct sigaction action {};
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (Handled& h : handled) {
    if (all || h.number == SIGSEGV) os::set_signal_action(h.number, &action, &h.before);
  }
}

}  // namespace gofer::internal
