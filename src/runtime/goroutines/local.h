// Goroutine-local values, as the scheduler sees them.
#pragma once

namespace gofer::internal {

/// What a goroutine or thread has; lies behind its StackHead or in a thread_local.
struct LocalTable;

/// Destroys all values, the newest first, those that destructors make too. Outside of the runtime.
void destroy_locals(LocalTable*& table);

}  // namespace gofer::internal
