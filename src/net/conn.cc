#include <gofer/net.h>

#include "net/access.h"
#include "net/socket_options.h"
#include "os/socket.h"

namespace gofer::net {

using namespace internal;

void check(const std::error_code& ec, const char* call, std::string_view argument) {
  if (!ec) return;
  std::string what = "gofer::net::";
  what += call;
  if (!argument.empty()) what.append(" ").append(argument);
  throw std::system_error(ec, what);
}

address name_of(FdState* state, NameFn name, std::error_code& ec) noexcept {
  sockaddr_storage storage;
  socklen_t size = sizeof storage;
  auto* at = reinterpret_cast<sockaddr*>(&storage);
  ec = control_fd(state, [&](int native) { return -name(native, at, &size); });
  return ec ? address() : address(at, size);
}

address conn::local_address(std::error_code& ec) const noexcept {
  return name_of(state(), os::local_address, ec);
}

address conn::local_address() const {
  std::error_code ec;
  const address a = local_address(ec);
  check(ec, "conn::local_address");
  return a;
}

address conn::remote_address(std::error_code& ec) const noexcept {
  return name_of(state(), os::remote_address, ec);
}

address conn::remote_address() const {
  std::error_code ec;
  const address a = remote_address(ec);
  check(ec, "conn::remote_address");
  return a;
}

void conn::shutdown_write(std::error_code& ec) const noexcept {
  ec = control_fd(state(), [](int native) { return -os::shutdown(native, SHUT_WR); });
}

void conn::shutdown_write() const {
  std::error_code ec;
  shutdown_write(ec);
  check(ec, "conn::shutdown_write");
}

void conn::shutdown_read(std::error_code& ec) const noexcept {
  ec = control_fd(state(), [](int native) { return -os::shutdown(native, SHUT_RD); });
}

void conn::shutdown_read() const {
  std::error_code ec;
  shutdown_read(ec);
  check(ec, "conn::shutdown_read");
}

void conn::set_no_delay(bool on) const {
  check(control_fd(state(),
                   [=](int native) { return set_option(native, IPPROTO_TCP, TCP_NODELAY, on); }),
        "conn::set_no_delay");
}

void conn::set_keep_alive(const keep_alive& how) const {
  check(control_fd(state(), [&](int native) { return apply_keep_alive(native, how); }),
        "conn::set_keep_alive");
}

void conn::set_keep_alive(std::chrono::seconds idle) const {
  set_keep_alive(keep_alive{.enabled = idle.count() > 0, .idle = idle, .interval = idle});
}

}  // namespace gofer::net
