// A memory barrier that one thread makes all the others of the process execute. It lets the hot
// side of a store-then-load protocol do without a fence (see runtime/procs/p_word.h).
#pragma once

namespace gofer::internal::os {

/// Announces the use to the kernel; false where it is not to be had (old kernel, seccomp).
bool membarrier_register();

/// Every thread of the process has passed a full barrier when it returns. False: not available.
bool membarrier();

}  // namespace gofer::internal::os
