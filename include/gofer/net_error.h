// The errors in the text of an address, and of the name in it. Every other error of a connection is
// a system error or one of io_error.h.
#pragma once

#include <gofer/detail/config.h>

#include <system_error>

namespace gofer::net {

/// All equal std::errc::invalid_argument, except path_too_long: std::errc::filename_too_long.
enum class address_errc {
  missing_port = 1,  ///< "127.0.0.1"; "127.0.0.1:" to be dialled
  too_many_colons,   ///< an IPv6 address without brackets
  bad_brackets,      ///< "[::1", "[::1]80" or "a[b]:80"
  bad_port,          ///< a number above 65535, or neither a number nor a name
  zero_byte,         ///< inside of a host, port or path
  missing_path,      ///< "unix:", to be dialled
  path_too_long,     ///< for a unix-domain socket
};

GOFER_API const std::error_category& address_category() noexcept;

inline std::error_code make_error_code(address_errc e) noexcept {
  return {static_cast<int>(e), address_category()};
}

/// The errors of looking up a name. Values are those of getaddrinfo() (EAI_NONAME and others).
GOFER_API const std::error_category& resolve_category() noexcept;

}  // namespace gofer::net

template <>
struct std::is_error_code_enum<gofer::net::address_errc> : std::true_type {};
