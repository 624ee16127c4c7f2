// Options of TCP sockets, set on descriptors that no other code has yet.
#pragma once

#include <gofer/net.h>

namespace gofer::net {

/// 0, or an errno value.
int set_option(int native, int level, int name, int value) noexcept;
int apply_keep_alive(int native, const keep_alive& how) noexcept;
/// What every TCP connection has; what a listener has its connections inherit. Returns EINVAL for
/// times that cannot be; that the kernel refuses an option is no reason to be without a connection.
int prepare_tcp(int native, const keep_alive& how) noexcept;

}  // namespace gofer::net
