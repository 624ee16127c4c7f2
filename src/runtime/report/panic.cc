#include "runtime/report/panic.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "arch/arch.h"
#include "debug/fd_writer.h"
#include "debug/traceback.h"
#include "os/thread.h"
#include "runtime/process/process_state.h"
#include "runtime/process/settings.h"
#include "runtime/procs/current.h"
#include "runtime/report/dump.h"
#include "runtime/report/reporter.h"

namespace gofer::internal {
namespace {

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
  print_running(current_g(), {pcs, n});
}

[[noreturn]] void report_here(const char* kind, const char* text) {
  {
    FdWriter out(STDERR_FILENO);
    out.print("%s: %s\n\n", kind, text);
  }
  print_here(2);
  print_others_if_wanted(false);
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

void print_running(G* g, std::span<const uintptr_t> pcs, const FrameOptions& options) {
  if (settings.traceback == DebugEnv::Traceback::none) return;
  constexpr size_t innermost = 50;
  constexpr size_t outermost = 50;
  FdWriter out(STDERR_FILENO);
  if (g != nullptr) {
    print_header(out, g, "running");
  } else {
    out.print("thread %d [running]:\n", os::thread_id());
  }
  out.flush();
  if (pcs.size() <= innermost + outermost) {
    print_frames(STDERR_FILENO, pcs, options);
  } else {
    print_frames(STDERR_FILENO, pcs.first(innermost), options);
    out.print("...%zu frames elided...\n", pcs.size() - innermost - outermost);
    out.flush();
    print_frames(STDERR_FILENO, pcs.last(outermost), options);
  }
  if (g != nullptr) print_end(out, g, options);
}

void print_others_if_wanted(bool no_malloc) {
  if (settings.traceback != DebugEnv::Traceback::all) return;
  if (process.forked.load(relaxed)) return;  // they are the parent's
  print_other_goroutines(no_malloc);
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
  finish_trace();
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
  if (settings.traceback != DebugEnv::Traceback::none) print_goroutines();
  end_report();
}

void report_endless_wait_at_exit() {
  warn(
      "the process exits, and an exit handler or static destructor waits for what no goroutine can "
      "do any more: the exit goes on without it");
  print_here(2);
}

}  // namespace gofer::internal
