// Dumps on signals: SIGQUIT ends the process with one, as in Go; GOFER_DEBUG=dumpsignal=USR2 makes
// one each time and goes on.
//
// The handler does nothing but wake a thread that exists for this. That thread is not an M and
// holds no P. It sleeps on a note, with all signals blocked, until there is something to do, so it
// can make a dump whatever the other threads do: if all goroutines are blocked or spin, if threads
// hold locks of libc, and even if the runtime itself is stuck. A second SIGQUIT has the default
// effect, so that it ends the process if the dump cannot be made.
//
// The signals belong to the program: a handler that it has installed before the runtime starts, or
// installs later, is the one that counts, and so is SIG_IGN.
//
// Rejected: sysmon or the template thread. A dump takes as long as its reader takes to read, and
// the processors and the threads that these two look after cannot wait for that. A thread that is
// started on demand: a handler cannot start one, and in a process that is stuck nobody else can.
#include "runtime/report/dump_signals.h"

#include <gofer/debug.h>
#include <signal.h>
#include <string.h>

#include <cstdio>

#include "arch/arch.h"
#include "os/futex.h"
#include "os/process.h"
#include "os/signal.h"
#include "os/thread.h"
#include "runtime/process/process_state.h"
#include "runtime/procs/current.h"
#include "runtime/report/dump.h"
#include "runtime/report/panic.h"
#include "runtime/report/reporter.h"

namespace gofer::internal {
namespace {

bool wants_quit = false;
int dump_signal = 0;

constinit atomic<int> running_threads{0};
constinit Note wanted;
constinit atomic<bool> dump_wanted{false};

// What SIGQUIT has interrupted. Written before `quits`.
struct Quit {
  atomic<bool> begun{false};
  atomic<bool> ready{false};
  uintptr_t pc = 0;
  uint32_t m = 0;
  int code = 0;
};
constinit Quit quit;

// As if there were no handler.
void use_default(int number) {
  os::reset_signal(number);
  os::send_signal(os::process_id(), os::thread_id(), number);
}

void on_quit(int number, siginfo_t* info, void* context) {
  if (process.forked.load(relaxed) || quit.begun.exchange(true, acq_rel)) {
    use_default(number);
    return;
  }
  arch::Registers registers = arch::interrupted_registers(context);
  const M* m = current_m();
  quit.pc = arch::pc_of(registers);
  quit.m = m != nullptr ? m->id : 0;
  quit.code = info->si_code;
  quit.ready.store(true, release);
  wanted.signal();
}

void on_dump(int number, siginfo_t*, void* context) {
  if (process.forked.load(relaxed)) {
    use_default(number);
    return;
  }
  const M* m = current_m();
  // Not in a call of the runtime, which knows how long it has waited.
  if (m != nullptr && m->in_runtime.load(relaxed) == 0) arch::restart_interrupted_call(context);
  dump_wanted.store(true, release);
  wanted.signal();
}

[[noreturn]] void end_by_quit() {
  char heading[128];
  snprintf(heading, sizeof heading, "SIGQUIT: quit\nPC=0x%lx m=%u sigcode=%d\n",
           static_cast<unsigned long>(quit.pc), quit.m, quit.code);
  dump_and_end(heading);
}

void* dump_main(void*) {
  os::name_thread("gofer-dump");
  char why[32] = "dump";
  if (const char* name = sigabbrev_np(dump_signal); name != nullptr) {
    snprintf(why, sizeof why, "SIG%s", name);
  }
  for (;;) {
    if (quit.ready.load(acquire)) end_by_quit();
    if (dump_wanted.exchange(false, acq_rel)) {
      FdWriter out(STDERR_FILENO);
      dump(out, {}, why);
      continue;
    }
    wanted.wait(-1);
  }
}

// Returns false if the program handles the signal, or ignores it.
bool install(int number, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction before {};
  if (os::set_signal_action(number, nullptr, &before) != 0) return false;
  if ((before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL) return false;
  struct sigaction action {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigfillset(&action.sa_mask);
  return os::set_signal_action(number, &action, nullptr) == 0;
}

bool has_default(int number) {
  struct sigaction before {};
  return os::set_signal_action(number, nullptr, &before) == 0 &&
         (before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_DFL;
}

}  // namespace

void set_dump_signals(bool sigquit, int number) {
  wants_quit = sigquit && has_default(SIGQUIT);
  dump_signal = number;
  if (number != 0 && !has_default(number)) {
    warn("GOFER_DEBUG=dumpsignal=%d: the program handles or ignores this signal itself", number);
    dump_signal = 0;
  }
}

int dump_threads() { return running_threads.load(relaxed); }

void start_dump_thread() {
  if (running_threads.load(relaxed) != 0 || (!wants_quit && dump_signal == 0)) return;
  running_threads.store(1, relaxed);
  if (os::start_thread(dump_main, nullptr) != 0) {
    running_threads.store(0, relaxed);
    return;
  }
  if (wants_quit) install(SIGQUIT, on_quit);
  if (dump_signal != 0) install(dump_signal, on_dump);
}

}  // namespace gofer::internal
