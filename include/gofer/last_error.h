// last_error: errno for code that blocks between two uses of it.
#pragma once

#include <gofer/detail/config.h>

namespace gofer {

/// The errno of the thread on which the calling goroutine runs now. A compiler may keep the address
/// of errno for a whole function; after a call that blocks, that may be the errno of a thread on
/// which the goroutine ran before. These functions are in the library, so the compiler cannot keep
/// that address.
GOFER_API int last_error() noexcept;
GOFER_API void set_last_error(int value) noexcept;

}  // namespace gofer
