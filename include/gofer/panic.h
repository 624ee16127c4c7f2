// What happens when an exception leaves a goroutine, and when a goroutine crashes.
//
//   gofer::set_panic_handler([](const gofer::panic_info& panic) {
//     log_last_words(panic.goroutine, panic.name, panic.exception);
//   });
//
// Uncaught exceptions. An exception that leaves a goroutine's function ends the process, and so do
// one that meets a noexcept function and std::terminate, in this order:
//  1. the panic handler, if one is set, while all other goroutines go on;
//  2. a report on stderr, with the trace of the throw;
//  3. the handler of std::set_terminate that was there before the runtime started, if there was one
//     (a handler that is set later takes the place of all of this);
//  4. std::abort(): SIGABRT, and a core file where the system writes them. With
//     GOFER_DEBUG=panic=exit: _exit(2), as Go ends.
//
// Crashes. SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT (also by abort, assert, and malloc's checks)
// print a report with the goroutine's trace. Then the signal takes its course: the handler that was
// there before the runtime started, or the end by that signal, with a core file of the crash
// itself. A handler that is installed later takes the place of the report. GOFER_DEBUG=crash=0 is
// for programs that cause and handle such signals on purpose: no report but a stack overflow's.
//
// docs/DEBUGGING.md shows such reports, and what to do with them.
#pragma once

#include <gofer/detail/config.h>

#include <cstdint>
#include <exception>
#include <string_view>

namespace gofer {

/// A goroutine that is about to end the process.
struct panic_info {
  std::exception_ptr exception;  ///< null if std::terminate was called without an exception
  std::uint64_t goroutine;       ///< its id
  std::string_view name;         ///< or empty; valid during the call
};

using panic_handler = void (*)(const panic_info& panic);

/// Sets the function that sees an exception that leaves a goroutine, before it is reported, and
/// returns the one before. nullptr: none. It takes effect in all goroutines; foreign threads have
/// std::set_terminate.
///
/// The goroutine calls f itself, on top of the code that threw. f may use all of Gofer, and wait.
/// When f returns, the report follows. The process does not end before that, unless f ends it:
///  - f may call exit() or _exit(): its status is the process's, and there is no report.
///  - If f throws, or calls goexit() or std::terminate, a line on stderr says so, and the report
///    follows.
///  - If f crashes, the report of the crash names the exception, too.
///  - While f runs, the other goroutines go on, and exit() and the end of main() wait for f in
///    other threads. So an f that may wait for long needs a time limit of its own.
/// f is called once. If an exception leaves another goroutine meanwhile, that goroutine waits for
/// the end. In the child of a fork f is not called.
GOFER_API panic_handler set_panic_handler(panic_handler f) noexcept;

}  // namespace gofer
