// One copy of the runtime in a process: see one_copy.cc.
#pragma once

namespace gofer::internal {

/// Ends the process with a message if another copy of the runtime has started in it. From then on
/// the object file that contains this copy cannot be unloaded.
void claim_process();

}  // namespace gofer::internal
