#include "runtime/report/panic.h"

#include <cxxabi.h>
#include <signal.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <typeinfo>
#include <vector>

#include "arch/arch.h"
#include "debug/fd_writer.h"
#include "debug/symbol_name.h"
#include "debug/traceback.h"
#include "os/process.h"
#include "os/signal.h"
#include "os/thread.h"
#include "runtime/process/start.h"
#include "runtime/procs/current.h"
#include "runtime/trace/session.h"

namespace gofer::internal {
namespace {

constexpr unsigned report_limit_s = 20;

std::terminate_handler next_terminate = nullptr;

// The thread that makes the report; 0: none; less than 0: none may any more but -reporter, which is
// at the end of its exit.
constinit atomic<int> reporter{0};

// The trace ends with what the process did last, if that can be written.
[[noreturn]] void end_report() {
  tracer::finish_at_report();
  os::end_process(report_exit_code);
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
  if (g->bound()) out.print(", locked to thread");
  out.print("]:\n");
}

void print_end(FdWriter& out, G* g, const FrameOptions& options) {
  out.flush();
  if (g->create_pc != 0) print_creator(STDERR_FILENO, g->create_pc, g->parent_id, options);
}

[[gnu::noinline]] void print_here(size_t skip) {
  uintptr_t pcs[max_report_frames];
  const size_t n = unwind_here(pcs, skip + 1);
  print_running({pcs, n}, {});
}

[[noreturn]] void report_here(const char* kind, const char* text) {
  {
    FdWriter out(STDERR_FILENO);
    out.print("%s: %s\n\n", kind, text);
  }
  print_here(2);
  end_report();
}

void print_stopped(G* g) {
  const GStatus status = true_status(g);
  go_on_reporting();
  FdWriter out(STDERR_FILENO);
  out.print("\n");
  print_header(out, g,
               status == GStatus::waiting ? wait_reason_text(g->wait_reason) : status_name(status));
  out.flush();
  const bool stopped =
      g->has_stack() && (status == GStatus::waiting || (status == GStatus::runnable && !g->tied()));
  if (stopped) {
    uintptr_t pcs[max_report_frames];
    const size_t n = unwind(arch::saved_registers(g->head->sp), pcs);
    print_frames(STDERR_FILENO, {pcs, n});
  }
  print_end(out, g, {});
}

// The goroutine whose exception is asked for its text, and where it threw. what() is user code: it
// may fail in its turn, or wait, and comes back to begin_report() then.
struct AskedForText {
  G* g = nullptr;
  size_t n = 0;
  uintptr_t pcs[max_report_frames] = {};
};
constinit AskedForText asked;

// Ends the report of an exception whose type and perhaps text were written.
[[noreturn]] void end_exception_report() {
  G* g = asked.g;
  asked.g = nullptr;
  FdWriter out(STDERR_FILENO);
  out.write("\n\n");
  print_header(out, g, "running");
  out.flush();
  print_frames(STDERR_FILENO, {asked.pcs, asked.n});
  print_end(out, g, {});
  end_report();
}

[[noreturn]] void report_exception(G* g, const std::type_info& type) {
  {
    FdWriter out(STDERR_FILENO);
    out.write("panic: ");
    out.write(short_symbol(type.name()));
  }
  asked.n = unwind_here(asked.pcs, 2);
  asked.g = g;
  try {
    throw;
  } catch (const std::exception& e) {
    if (const char* text = e.what(); text != nullptr) {
      FdWriter out(STDERR_FILENO);
      out.write(": ");
      out.write(text);
    }
  } catch (...) {
  }
  end_exception_report();
}

[[noreturn]] void on_terminate() {
  G* g = current_g();
  if (g == nullptr) {
    wait_for_report();
    tracer::finish_at_report();
    if (next_terminate != nullptr) next_terminate();
    std::abort();
  }
  begin_report();
  FdWriter out(STDERR_FILENO);
  if (g->head->exits) {
    out.write(
        "fatal error: goexit() met a noexcept function, or std::terminate was called on the "
        "way\n\n");
  } else if (const std::type_info* type = abi::__cxa_current_exception_type(); type != nullptr) {
    report_exception(g, *type);
  } else {
    out.write("fatal error: std::terminate was called\n\n");
  }
  out.flush();
  print_here(1);
  end_report();
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

void begin_report() {
  const int self = os::thread_id();
  int before = 0;
  while (!reporter.compare_exchange_strong(before, self, acq_rel)) {
    if (before == self) {  // the report failed in its turn
      if (asked.g != nullptr) end_exception_report();
      end_report();
    }
    if (before != -self) os::sleep_for_ever();
  }
  stop_scheduling();
  os::reset_signal(SIGALRM);
  sigset_t alarm_only;
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  os::set_signal_mask(SIG_UNBLOCK, &alarm_only, nullptr);
  go_on_reporting();
}

void go_on_reporting() { os::set_alarm(report_limit_s); }

void wait_for_report() {
  const int before = reporter.load(acquire);
  if (before <= 0) return;
  if (before == os::thread_id()) {  // exit() in the middle of it
    if (asked.g != nullptr) end_exception_report();
    end_report();
  }
  os::sleep_for_ever();
}

void forbid_reports() {
  int nobody = 0;
  if (!reporter.compare_exchange_strong(nobody, -os::thread_id(), acq_rel)) wait_for_report();
}

void forget_report() { reporter.store(0, relaxed); }

void print_running(std::span<const uintptr_t> inner, const FrameOptions& options,
                   std::span<const uintptr_t> outer, size_t elided) {
  FdWriter out(STDERR_FILENO);
  G* g = current_g();
  if (g != nullptr) {
    print_header(out, g, "running");
  } else {
    out.print("thread %d [running]:\n", os::thread_id());
  }
  out.flush();
  print_frames(STDERR_FILENO, inner, options);
  if (elided != 0) {
    out.print("...%zu frames elided...\n", elided);
    out.flush();
    print_frames(STDERR_FILENO, outer, options);
  }
  if (g != nullptr) print_end(out, g, options);
}

void fatal_error(const char* format, ...) {
  begin_report();
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  report_here("fatal error", text);
}

void panic(const char* message) {
  begin_report();
  report_here("panic", message);
}

void assertion_failed(const char* condition, const char* file, int line) {
  begin_report();
  FdWriter out(STDERR_FILENO);
  out.print("gofer: %s:%d: assertion failed: %s\n\n", file, line, condition);
  out.flush();
  uintptr_t pcs[max_report_frames];
  const size_t n = unwind_here(pcs, 0);
  print_frames(STDERR_FILENO, {pcs, n}, {.hide_internal = false});
  tracer::finish_at_report();
  std::abort();
}

void fatal_thread_limit(int limit) {
  begin_report();
  {
    FdWriter out(STDERR_FILENO);
    out.print("runtime: program exceeds %d-thread limit\n", limit);
  }
  report_here("fatal error", "thread exhaustion");
}

void fatal_deadlock(const char* message) {
  begin_report();
  FdWriter out(STDERR_FILENO);
  out.print("fatal error: %s\n", message);
  out.flush();
  print_goroutines();
  end_report();
}

void report_endless_wait_at_exit() {
  warn(
      "the process exits, and an exit handler or static destructor waits for what no goroutine can "
      "do any more: the exit goes on without it");
  print_here(2);
}

void print_goroutines() {
  std::vector<G*> all;
  for_each_g(
      [](G* g, void* list) {
        const GStatus status = g->status.load(acquire);
        if (status != GStatus::dead && status != GStatus::idle) {
          static_cast<std::vector<G*>*>(list)->push_back(g);
        }
      },
      &all);
  std::sort(all.begin(), all.end(), [](G* a, G* b) { return a->id < b->id; });
  for (G* g : all) print_stopped(g);
}

void install_terminate_report() { next_terminate = std::set_terminate(on_terminate); }

}  // namespace gofer::internal
