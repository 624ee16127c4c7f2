// From descriptors to handles, for the library alone.
#pragma once

#include <gofer/net.h>

#include <functional>

#include "io/fd_state.h"

namespace gofer::net {

struct access {
  static conn make_conn(internal::FdState* state) { return conn(state); }
  static listener make_listener(internal::FdState* state) { return listener(state); }
  /// listener::accept with the address of the other end, which cannot be asked for any more once
  /// the connection is reset. Calls `short_of` once if it has to wait for descriptors or memory.
  static conn accept(const listener& l, const context& ctx, address& remote, std::error_code& ec,
                     const std::function<void(const std::error_code&)>& short_of) noexcept;
};

/// os::local_address or os::remote_address.
using NameFn = int (*)(int, sockaddr*, socklen_t*);
address name_of(internal::FdState* state, NameFn name, std::error_code& ec) noexcept;

inline bool is_tcp(const address& a) { return a.family() == AF_INET || a.family() == AF_INET6; }
inline internal::FdKind kind_of(const address& a) {
  return is_tcp(a) ? internal::FdKind::tcp : internal::FdKind::socket;
}

/// Throws what `call` did, with its argument, could not do.
void check(const std::error_code& ec, const char* call, std::string_view argument = {});

}  // namespace gofer::net
