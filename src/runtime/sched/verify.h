// A check of the whole scheduler, for tests.
#pragma once

namespace gofer::internal {

/// Stops the world and checks every queue, list and count. The first contradiction is fatal.
void verify_scheduler();

}  // namespace gofer::internal
