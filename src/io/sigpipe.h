// Writing without SIGPIPE.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

namespace gofer::internal {

/// writev(), or -errno: -EPIPE for a pipe without a reader, without the signal.
ssize_t writev_without_sigpipe(int native, const iovec* vector, int count) noexcept;

}  // namespace gofer::internal
