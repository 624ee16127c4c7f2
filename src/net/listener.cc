#include <gofer/net.h>
#include <gofer/timer.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "net/access.h"
#include "net/resolve.h"

namespace gofer::net {

using namespace internal;
using namespace std::chrono_literals;

namespace {

constexpr auto longest_pause = 100ms;

bool is_short_of_resources(const std::error_code& ec) {
  return ec == std::errc::too_many_files_open || ec == std::errc::too_many_files_open_in_system ||
         ec == std::errc::no_buffer_space || ec == std::errc::not_enough_memory ||
         ec == std::errc::no_space_on_device;
}

// What accept(2) says of a connection that has failed before anybody could take it.
bool is_of_the_connection(const std::error_code& ec) {
  return ec == std::errc::connection_aborted || ec == std::errc::protocol_error ||
         ec == std::errc::network_down || ec == std::errc::host_unreachable ||
         ec == std::errc::network_unreachable;
}

// While others give back what is missing.
class Pause {
 public:
  /// False: ec says why there is no use in waiting.
  bool wait(FdState* s, const context* ctx, std::error_code& ec) {
    if (ctx == nullptr) {
      sleep_for(length_);
    } else if (!sleep_for(*ctx, length_)) {
      ec = ctx->err();
      return false;
    }
    length_ = std::min(length_ * 2, std::chrono::milliseconds(longest_pause));
    ec = check_io(s, IoSide::in, ctx);
    return !ec;
  }

 private:
  std::chrono::milliseconds length_ = 5ms;
};

conn accept_one(FdState* s, const context* ctx, std::error_code& ec) noexcept {
  Pause pause;
  int native = -1;
  for (;;) {
    native = static_cast<int>(do_io(s, IoSide::in, ctx, ec, [&](int listening) -> ssize_t {
      return or_error(accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    }));
    if (!ec) break;
    if (is_of_the_connection(ec)) continue;
    if (!is_short_of_resources(ec) || !pause.wait(s, ctx, ec)) return {};
  }
  for (;;) {
    if (FdState* state = open_fd(native, s->kind, ec); state != nullptr) {
      return access::make_conn(state);
    }
    if (!is_short_of_resources(ec) || !pause.wait(s, ctx, ec)) {
      ::close(native);
      return {};
    }
  }
}

conn checked(FdState* s, const context* ctx) {
  std::error_code ec;
  conn c = accept_one(s, ctx, ec);
  check(ec, "listener::accept");
  return c;
}

// What is accepted inherits it.
void set_no_delay(int native) {
  const int on = 1;
  setsockopt(native, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int set_up(int native, const address& at, const listen_options& options) {
  const int on = 1;
  const int off = 0;
  if (is_tcp(at)) {
    setsockopt(native, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    set_no_delay(native);
  }
  if (at.family() == AF_INET6) setsockopt(native, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  if (options.reuse_port && setsockopt(native, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) {
    return last_error();
  }
  return bind(native, at.data(), at.size()) == 0 ? 0 : last_error();
}

FdState* listen_at(const address& at, const listen_options& options, std::error_code& ec) {
  const int native = socket(at.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (native < 0) {
    ec = system_error_code(last_error());
    return nullptr;
  }
  if (const int error = set_up(native, at, options); error != 0) {
    ec = system_error_code(error);
    ::close(native);
    return nullptr;
  }
  FdState* s = open_fd(native, kind_of(at), ec);
  const bool has_file = at.family() == AF_UNIX && at.host()[0] != '@';
  if (s == nullptr) {
    if (has_file) unlink(at.host().c_str());
    ::close(native);
    return nullptr;
  }
  if (has_file) s->socket_file = strdup(at.host().c_str());
  if (::listen(native, options.backlog) == 0) return s;
  ec = system_error_code(last_error());
  close_fd(s);
  delete s;
  return nullptr;
}

// Of all addresses of the machine those of IPv6 take the others' connections, too.
void prefer_ipv6(std::vector<address>& addresses) {
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const address& a) { return a.family() == AF_INET6; });
}

}  // namespace

listener::listener(int native) : fd(native) { set_no_delay(native); }

conn listener::accept() const { return checked(state(), nullptr); }
conn listener::accept(std::error_code& ec) const noexcept {
  return accept_one(state(), nullptr, ec);
}
conn listener::accept(const context& ctx) const { return checked(state(), &ctx); }
conn listener::accept(const context& ctx, std::error_code& ec) const noexcept {
  return accept_one(state(), &ctx, ec);
}

address listener::local_address(std::error_code& ec) const noexcept {
  return name_of(state(), getsockname, ec);
}

address listener::local_address() const {
  std::error_code ec;
  const address a = local_address(ec);
  check(ec, "listener::local_address");
  return a;
}

listener listen(std::string_view at, const listen_options& options, std::error_code& ec) {
  std::vector<address> addresses = resolve(nullptr, at, true, ec);
  if (ec) return {};
  if (at.starts_with(':')) prefer_ipv6(addresses);
  std::error_code first;
  for (const address& a : addresses) {
    if (FdState* s = listen_at(a, options, ec); s != nullptr) return access::make_listener(s);
    if (!first) first = ec;
  }
  ec = first;
  return {};
}

listener listen(std::string_view at, const listen_options& options) {
  std::error_code ec;
  listener l = listen(at, options, ec);
  check(ec, "listen", at);
  return l;
}

}  // namespace gofer::net
