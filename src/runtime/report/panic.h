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

/// Prints every goroutine that does not run with its state, wait reason and trace to stderr.
void print_goroutines();

inline constexpr size_t max_report_frames = 100;

/// g, or the calling thread if g is nullptr, with its frames; of a deep recursion only the
/// innermost and the outermost ones.
void print_running(G* g, std::span<const uintptr_t> pcs, const FrameOptions& options = {});

}  // namespace gofer::internal
