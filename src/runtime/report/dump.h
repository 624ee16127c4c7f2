// Dumps: every goroutine with its state and trace. See dump.cc.
#pragma once

#include "debug/fd_writer.h"

namespace gofer {
namespace debug {
struct dump_options;
}

namespace internal {

/// gofer::debug::dump, into `out`, after the first line "WHY: N goroutines" if there is one.
void dump(FdWriter& out, const debug::dump_options& options, const char* why = nullptr);

/// For a report, after begin_report(): all goroutines on stderr, each after an empty line; or all
/// but the calling one. no_malloc: FrameOptions.
void print_goroutines();
void print_other_goroutines(bool no_malloc);

/// Ends the process with a dump, as Go does on SIGQUIT. `heading` is printed before. In a thread
/// that is not an M.
[[noreturn]] void dump_and_end(const char* heading);

}  // namespace internal
}  // namespace gofer
