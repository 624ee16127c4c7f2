// The report of an exception that leaves a goroutine: see exceptions.cc.
#pragma once

namespace gofer::internal {

struct G;

/// From now on an exception that leaves a goroutine ends the process with a report: by abort(), or
/// by _exit. The handler of std::terminate that was there before is called after the report, and
/// for what ends foreign threads.
void install_terminate_report(bool ends_by_exit);

/// The exception that g's panic handler has been called for, and that no report has named; nullptr
/// if there is none.
const char* unreported_exception(const G* g);

}  // namespace gofer::internal
