// Traces that the environment asks for.
#pragma once

namespace gofer::internal::tracer {

/// At the runtime's start, before it has threads: the values of GOFER_TRACE and GOFER_TRACE_FLIGHT,
/// or nullptr. What cannot be done is said on stderr, and the program goes on.
void start_from_environment(const char* trace, const char* flight);

}  // namespace gofer::internal::tracer
