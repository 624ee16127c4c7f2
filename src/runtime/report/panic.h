// Reports that end the process, in Go's words where Go has them, and warnings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "debug/traceback.h"

namespace gofer::internal {

struct G;

/// One line on stderr, "gofer: ...".
void warn(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// "fatal error: ...", the calling goroutine's trace, exit code 2.
[[noreturn]] void fatal_error(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// The same with "panic: ...", for what Go panics with.
[[noreturn]] void panic(const char* message);

/// "runtime: program exceeds N-thread limit", "fatal error: thread exhaustion".
[[noreturn]] void fatal_thread_limit(int limit);

/// The header, then every goroutine. Nothing may run meanwhile. Exit code 2.
[[noreturn]] void fatal_deadlock(const char* message);

/// One message, with the trace of the calling thread, which runs the exit handlers.
void report_endless_wait_at_exit();

/// One report, then the end: who comes second waits for that end. If the report itself gets stuck
/// (a lock held by the code that failed), an alarm ends the process; to be called again for every
/// goroutine of a long one.
void begin_report();
void go_on_reporting();
/// The report is complete: ends the process.
[[noreturn]] void end_report();
/// If another thread has begun a report, sleeps until that ends the process.
void wait_for_report();
/// The same, and no thread but the caller can begin one from now on.
void forbid_reports();
/// In the child of a fork: the thread that made one is not there.
void forget_report();
inline constexpr int report_exit_code = 2;
inline constexpr size_t max_report_frames = 100;

/// The calling goroutine, or thread, whose frames are given: the innermost and, where `elided` are
/// left out between them, the outermost.
void print_running(std::span<const uintptr_t> inner, const FrameOptions& options,
                   std::span<const uintptr_t> outer = {}, size_t elided = 0);

/// The goroutines other than the calling one, with GOFER_DEBUG=traceback=all: the last part of a
/// report. no_malloc: FrameOptions.
void print_others_if_wanted(bool no_malloc);

/// From now on an exception that leaves a goroutine ends the process with a report, and so does an
/// overflow of a goroutine's stack. Handlers that were there before get what is not ours.
void install_terminate_report();
void install_overflow_report();

}  // namespace gofer::internal
