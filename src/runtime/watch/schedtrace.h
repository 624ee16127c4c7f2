// GOFER_DEBUG=schedtrace=X[,scheddetail=1]: the scheduler's state on stderr, every X milliseconds.
#pragma once

#include <cstdint>

namespace gofer::internal {

/// every_ms 0: off. Before sysmon starts.
void set_schedtrace(int64_t every_ms, bool detail);
bool is_tracing_schedule();
/// When it has to print next, of os::now_ns; no_timer if it is off.
int64_t next_schedtrace_ns();
/// Prints if it is time. By sysmon, so that it goes on while every P is busy.
void trace_schedule(int64_t now_ns);

}  // namespace gofer::internal
