// Traces that the environment asks for.
#pragma once

namespace gofer::internal::tracer {

/// At the runtime's start, before it has threads. `path` is that of GOFER_TRACE. What cannot be done
/// is said on stderr, and the program goes on.
void start_from_environment(const char* path);

}  // namespace gofer::internal::tracer
