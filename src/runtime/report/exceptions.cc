// The report of an exception that leaves a goroutine, and what comes before and after it:
// the panic handler, the text, the trace, the program's terminate handler, the end.
//
// Three of these steps call code of the program: the panic handler, what() and the terminate
// handler. None of them can prevent the others. The panic handler runs like any other code of its
// goroutine, while the scheduler works, because it may have to log through a channel. It is over
// when it returns, or when the goroutine comes to terminate() again. From then on no goroutine is
// scheduled. what() and the terminate handler are over when they return, wait, throw, crash or
// exit: reporter.h says with which step the report goes on.
//
// Rejected: to catch exceptions in the goroutine's first frame. The stack would be unwound, and the
// trace of the throw with it.
#include "runtime/report/exceptions.h"

#include <cxxabi.h>
#include <gofer/panic.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <typeinfo>

#include "debug/fd_writer.h"
#include "debug/symbol_name.h"
#include "os/process.h"
#include "os/signal.h"
#include "runtime/process/process_state.h"
#include "runtime/procs/current.h"
#include "runtime/report/panic.h"
#include "runtime/report/reporter.h"
#include "runtime/wait/park.h"

namespace gofer::internal {
namespace {

constinit atomic<panic_handler> handler{nullptr};
// The goroutine that has called it.
constinit atomic<G*> in_handler{nullptr};
constinit char handled_type[160] = "";
constinit bool handled_is_reported = false;

// The program's; nullptr: the C++ runtime's own, which would say again what the report has said.
constinit std::terminate_handler next_terminate = nullptr;
constinit std::terminate_handler default_terminate = nullptr;
constinit bool ends_by_exit = false;

// The goroutine whose report is being made, and where it threw: what() may end in many ways.
struct Panic {
  G* g = nullptr;
  size_t n = 0;
  uintptr_t pcs[max_report_frames] = {};
};
constinit Panic panicking;

// Where the panic handler was called: it may end with an exception of its own.
std::exception_ptr& handled_exception() {
  alignas(std::exception_ptr) static constinit char memory[sizeof(std::exception_ptr)] = {};
  return reinterpret_cast<std::exception_ptr&>(memory);
}

// The last step.
[[noreturn]] void end_panic() {
  set_step_after_failure(nullptr);
  finish_trace();
  if (ends_by_exit) os::end_process(report_exit_code);
  os::set_alarm(0);
  std::abort();
}

[[noreturn]] void end_after_terminate_handler() {
  FdWriter(STDERR_FILENO).write("\n");
  end_panic();
}

[[noreturn]] void call_terminate_handler() {
  finish_trace();
  if (next_terminate != nullptr) {
    os::set_alarm(0);  // it may take its time
    set_step_after_failure(end_after_terminate_handler, true);
    next_terminate();
  }
  end_panic();
}

// The step after what().
[[noreturn]] void print_panic_trace() {
  set_step_after_failure(call_terminate_handler);
  {
    FdWriter out(STDERR_FILENO);
    out.write("\n\n");
  }
  print_running(panicking.g, {panicking.pcs, panicking.n});
  print_others_if_wanted(false);
  call_terminate_handler();
}

void write_text(const std::exception_ptr& exception) {
  try {
    if (exception == nullptr) throw;  // the one that is being handled
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    if (const char* text = e.what(); text != nullptr) {
      FdWriter out(STDERR_FILENO);
      out.write(": ");
      out.write(text);
    }
  } catch (...) {
  }
}

[[noreturn]] void report_exception(G* g, const char* type, const std::exception_ptr& exception) {
  {
    FdWriter out(STDERR_FILENO);
    out.write("panic: ");
    out.write(type);
  }
  handled_is_reported = true;
  panicking.n = unwind_here(panicking.pcs, 1);
  panicking.g = g;
  set_step_after_failure(print_panic_trace);
  write_text(exception);
  print_panic_trace();
}

[[noreturn]] void report_terminate(G* g) {
  {
    FdWriter out(STDERR_FILENO);
    out.write("fatal error: std::terminate was called\n\n");
  }
  handled_is_reported = true;
  panicking.n = unwind_here(panicking.pcs, 1);
  set_step_after_failure(call_terminate_handler);
  print_running(g, {panicking.pcs, panicking.n});
  print_others_if_wanted(false);
  call_terminate_handler();
}

// goexit() cannot go on: that is misuse, and no exception.
[[noreturn]] void report_goexit(G* g) {
  begin_report();
  {
    FdWriter out(STDERR_FILENO);
    out.write(
        "fatal error: goexit() met a noexcept function, or std::terminate was called on the "
        "way\n\n");
  }
  panicking.n = unwind_here(panicking.pcs, 1);
  print_running(g, {panicking.pcs, panicking.n});
  print_others_if_wanted(false);
  end_report();
}

[[noreturn]] void report_handled(G* g) {
  begin_report();
  expect_report_of(nullptr);
  if (handled_exception() == nullptr) report_terminate(g);
  report_exception(g, handled_type, handled_exception());
}

// The panic handler of g threw, or called goexit() or std::terminate.
[[noreturn]] void report_after_failure(G* g) {
  const std::type_info* type = abi::__cxa_current_exception_type();
  const bool threw =
      !g->head->exits && type != nullptr && std::current_exception() != handled_exception();
  warn("the panic handler ended with %s: the report goes on",
       threw ? short_symbol(type->name()).c_str() : "goexit() or std::terminate");
  report_handled(g);
}

[[noreturn]] void park_for_ever() {
  for (;;) {
    Inside inside;
    Waiter w(inside.m());
    park(inside.m(), w, WaitReason::panic_wait, no_queue_lock);
  }
}

// Returns if there is no handler, or if it cannot run: inside of the runtime, which has
// called std::terminate itself then, and in the child of a fork.
void call_panic_handler(G* g) {
  const panic_handler f = handler.load(acquire);
  if (f == nullptr || current_m()->in_runtime.load(relaxed) != 0) return;
  if (process.forked.load(relaxed)) return;
  G* nobody = nullptr;
  if (!in_handler.compare_exchange_strong(nobody, g, acq_rel)) park_for_ever();
  expect_report_of(g);
  if (const std::type_info* type = abi::__cxa_current_exception_type(); type != nullptr) {
    ::new (&handled_exception()) std::exception_ptr(std::current_exception());
    std::snprintf(handled_type, sizeof handled_type, "%s", short_symbol(type->name()).c_str());
  }
  try {
    f({handled_exception(), g->id, g->name == nullptr ? "" : g->name});
  } catch (...) {
    report_after_failure(g);  // within the catch block, which goexit() must not leave
  }
  report_handled(g);
}

[[noreturn]] void on_terminate() {
  G* g = current_g();
  if (g == nullptr) {
    wait_for_report();
    finish_trace();
    (next_terminate != nullptr ? next_terminate : default_terminate)();
    std::abort();
  }
  const bool handled = in_handler.load(relaxed) == g;
  if (handled && !is_reporting()) report_after_failure(g);
  if (is_reporting()) resume_report();
  if (g->head->exits) report_goexit(g);
  call_panic_handler(g);
  begin_report();
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (type == nullptr) report_terminate(g);
  report_exception(g, short_symbol(type->name()).c_str(), nullptr);
}

// The C++ runtime's own handler prints the exception and aborts.
bool is_default(std::terminate_handler f) {
#ifdef __GLIBCXX__
  return f == __gnu_cxx::__verbose_terminate_handler || f == std::abort;
#else
  const std::terminate_handler before = std::set_terminate(nullptr);  // sets the default
  const bool is = std::get_terminate() == f;
  std::set_terminate(before);
  return is;
#endif
}

}  // namespace

void install_terminate_report(bool by_exit) {
  ends_by_exit = by_exit;
  default_terminate = std::get_terminate();
  if (!is_default(default_terminate)) next_terminate = default_terminate;
  std::set_terminate(on_terminate);
}

const char* unreported_exception(const G* g) {
  if (g == nullptr || in_handler.load(relaxed) != g || handled_is_reported) return nullptr;
  return handled_type[0] != '\0' ? handled_type : nullptr;
}

}  // namespace gofer::internal

namespace gofer {

panic_handler set_panic_handler(panic_handler f) noexcept {
  return internal::handler.exchange(f, std::memory_order_acq_rel);
}

}  // namespace gofer
