#include "runtime/panic.h"

#include <cxxabi.h>
#include <signal.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <typeinfo>

#include "arch/context.h"
#include "debug/fd_writer.h"
#include "debug/symbol_name.h"
#include "debug/traceback.h"
#include "os/thread.h"
#include "runtime/sched.h"

namespace gofer::internal {
namespace {

constexpr int exit_code = 2;
constexpr size_t max_frames = 100;
constexpr unsigned report_limit_s = 20;

std::terminate_handler next_terminate = nullptr;
struct sigaction next_segv {};

// One report, then the end: a second one, from another thread, waits for that end. If the report
// itself gets stuck (a lock held by the code that failed), the alarm ends the process.
void begin_report() {
  static constinit atomic<int> reporter{0};
  int nobody = 0;
  if (!reporter.compare_exchange_strong(nobody, os::thread_id(), acq_rel)) {
    if (nobody == os::thread_id()) _exit(exit_code);  // the report failed in its turn
    os::sleep_for_ever();
  }
  signal(SIGALRM, SIG_DFL);
  sigset_t alarm_only;
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  pthread_sigmask(SIG_UNBLOCK, &alarm_only, nullptr);
  alarm(report_limit_s);
}

G* current_g() {
  M* m = current_m();
  return m == nullptr ? nullptr : m->curg;
}

// goroutine N ["name"] [state, K minutes, locked to thread]:
void print_header(FdWriter& out, G* g, const char* state) {
  out.print("goroutine %lu", static_cast<unsigned long>(g->id));
  if (g->name != nullptr) out.print(" \"%s\"", g->name);
  out.print(" [%s", state);
  if (g->locks > 0) out.print(", locked to thread");
  out.print("]:\n");
}

void print_end(FdWriter& out, G* g, const FrameOptions& options) {
  out.flush();
  if (g->create_pc != 0) print_creator(STDERR_FILENO, g->create_pc, g->parent_id, options);
}

// The calling goroutine, or thread, with the frames in pcs.
void print_running(std::span<const uintptr_t> pcs, const FrameOptions& options = {}) {
  FdWriter out(STDERR_FILENO);
  G* g = current_g();
  if (g != nullptr) {
    print_header(out, g, "running");
  } else {
    out.print("thread %d [running]:\n", os::thread_id());
  }
  out.flush();
  print_frames(STDERR_FILENO, pcs, options);
  if (g != nullptr) print_end(out, g, options);
}

[[gnu::noinline]] void print_here(size_t skip) {
  uintptr_t pcs[max_frames];
  const size_t n = unwind_here(pcs, skip + 1);
  print_running({pcs, n});
}

void print_stopped(G* g, void*) {
  const GStatus status = g->status.load(acquire);
  if (status == GStatus::dead || status == GStatus::idle) return;
  FdWriter out(STDERR_FILENO);
  out.print("\n");
  print_header(out, g,
               status == GStatus::waiting ? wait_reason_text(g->wait_reason) : status_name(status));
  out.flush();
  const bool stopped = status == GStatus::waiting || (status == GStatus::runnable && !g->tied);
  if (stopped && g->stack != nullptr) {
    uintptr_t pcs[max_frames];
    const size_t n = unwind(arch::saved_context(g->sp), pcs);
    print_frames(STDERR_FILENO, {pcs, n});
  }
  print_end(out, g, {});
}

[[noreturn]] void on_terminate() {
  G* g = current_g();
  if (g == nullptr) {
    if (next_terminate != nullptr) next_terminate();
    std::abort();
  }
  begin_report();
  FdWriter out(STDERR_FILENO);
  if (const std::type_info* type = abi::__cxa_current_exception_type(); type != nullptr) {
    out.write("panic: ");
    out.write(short_symbol(type->name()));
    try {
      throw;
    } catch (const std::exception& e) {
      out.write(": ");
      out.write(e.what());
    } catch (...) {
    }
    out.write("\n\n");
  } else {
    out.write("fatal error: std::terminate was called\n\n");
  }
  out.flush();
  print_here(1);
  _exit(exit_code);
}

void pass_on_segv(int signal_number, siginfo_t* info, void* context) {
  if ((next_segv.sa_flags & SA_SIGINFO) != 0) {
    next_segv.sa_sigaction(signal_number, info, context);
  } else if (next_segv.sa_handler != SIG_DFL && next_segv.sa_handler != SIG_IGN) {
    next_segv.sa_handler(signal_number);
  } else {
    sigaction(signal_number, &next_segv, nullptr);  // the instruction faults again
  }
}

void on_segv(int signal_number, siginfo_t* info, void* context) {
  G* g = current_g();
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (g == nullptr || g->stack == nullptr || !in_guard(g->stack, address)) {
    pass_on_segv(signal_number, info, context);
    return;
  }
  begin_report();
  {
    FdWriter out(STDERR_FILENO);
    out.print("runtime: goroutine stack exceeds %zu-byte limit\n",
              stack_size(g->stack_class) - stack_guard_size);
    out.print("fatal error: stack overflow\n\n");
  }
  // The frames are symbolised without malloc: the overflow may have happened inside of it.
  static uintptr_t pcs[max_frames];
  const size_t n = unwind_signal(context, pcs);
  print_running({pcs, n}, {.no_malloc = true});
  signal(SIGABRT, SIG_DFL);
  std::abort();
}

}  // namespace

void warn(const char* format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  FdWriter out(STDERR_FILENO);
  out.print("gofer: %s\n", text);
}

void fatal_error(const char* format, ...) {
  begin_report();
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  FdWriter out(STDERR_FILENO);
  out.print("fatal error: %s\n\n", text);
  out.flush();
  print_here(1);
  _exit(exit_code);
}

void assertion_failed(const char* condition, const char* file, int line) {
  begin_report();
  FdWriter out(STDERR_FILENO);
  out.print("gofer: %s:%d: assertion failed: %s\n\n", file, line, condition);
  out.flush();
  uintptr_t pcs[max_frames];
  const size_t n = unwind_here(pcs, 0);
  print_frames(STDERR_FILENO, {pcs, n}, {.hide_internal = false});
  std::abort();
}

void fatal_thread_limit(int limit) {
  FdWriter out(STDERR_FILENO);
  out.print("runtime: program exceeds %d-thread limit\n", limit);
  out.flush();
  fatal_error("thread exhaustion");
}

void fatal_deadlock(const char* message) {
  begin_report();
  FdWriter out(STDERR_FILENO);
  out.print("fatal error: %s\n", message);
  out.flush();
  print_goroutines();
  _exit(exit_code);
}

void print_goroutines() { for_each_g(print_stopped, nullptr); }

void install_reports() {
  next_terminate = std::set_terminate(on_terminate);
  struct sigaction action {};
  action.sa_sigaction = on_segv;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &next_segv);
}

}  // namespace gofer::internal
