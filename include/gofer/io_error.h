// io_errc: the errors of input and output that no system call reports. Errors of system calls are
// std::system_category() values, such as ETIMEDOUT for a connection whose other side is silent. A
// context that is done ends the call with its err().
#pragma once

#include <gofer/detail/config.h>

#include <system_error>

namespace gofer {

enum class io_errc {
  closed = 1,         ///< the descriptor was closed, perhaps during the call; equals
                      ///< std::errc::bad_file_descriptor
  unexpected_end,     ///< the input ended before everything that was asked for had come
  deadline_exceeded,  ///< of the descriptor; equals std::errc::timed_out
};

GOFER_API const std::error_category& io_category() noexcept;

inline std::error_code make_error_code(io_errc e) noexcept {
  return {static_cast<int>(e), io_category()};
}

}  // namespace gofer

template <>
struct std::is_error_code_enum<gofer::io_errc> : std::true_type {};
