// context_errc: why a context is done. It distinguishes a context's deadline from a descriptor's
// (io_errc::deadline_exceeded) and from a time-out of the kernel; all three equal
// std::errc::timed_out.
#pragma once

#include <gofer/detail/config.h>

#include <system_error>

namespace gofer {

enum class context_errc {
  canceled = 1,       ///< equals std::errc::operation_canceled
  deadline_exceeded,  ///< equals std::errc::timed_out
};

GOFER_API const std::error_category& context_category() noexcept;

inline std::error_code make_error_code(context_errc e) noexcept {
  return {static_cast<int>(e), context_category()};
}

}  // namespace gofer

template <>
struct std::is_error_code_enum<gofer::context_errc> : std::true_type {};
