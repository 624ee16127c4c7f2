// last_error: errno for code that blocks between one look at it and the next.
#pragma once

#include <gofer/detail/config.h>

namespace gofer {

/// errno of the thread on which the calling goroutine runs now. A compiler may keep the address of
/// errno for a whole function; after a call that blocks, that is the errno of a thread on which the
/// goroutine ran before. These are calls into the library, and keep nothing.
GOFER_API int last_error() noexcept;
GOFER_API void set_last_error(int value) noexcept;

}  // namespace gofer
