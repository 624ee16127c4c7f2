// Reports that end the process, in Go's words where Go has them, and warnings.
#pragma once

#include <cstdint>

namespace gofer::internal {

struct G;

/// One line on stderr, "gofer: ...".
void warn(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// "fatal error: ...", the calling goroutine's trace, exit code 2.
[[noreturn]] void fatal_error(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// "runtime: program exceeds N-thread limit", "fatal error: thread exhaustion".
[[noreturn]] void fatal_thread_limit(int limit);

/// The header, then every goroutine. Nothing may run meanwhile. Exit code 2.
[[noreturn]] void fatal_deadlock(const char* message);

/// Prints every goroutine that does not run with its state, wait reason and trace to stderr.
void print_goroutines();

/// From now on an exception that leaves a goroutine and an overflow of a goroutine's stack end the
/// process with a report. Handlers that were there before get what is not ours.
void install_reports();

}  // namespace gofer::internal
