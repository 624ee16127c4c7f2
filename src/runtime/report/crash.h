// The report of a crash: see crash.cc.
#pragma once

namespace gofer::internal {

/// From now on a goroutine that overflows its stack is reported, and, if `all`, every signal that
/// means a crash. Handlers that were there before get the signals after the report.
void install_crash_report(bool all);

}  // namespace gofer::internal
