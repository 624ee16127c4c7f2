#include <gofer/net.h>
#include <gofer/timer.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "net/access.h"
#include "net/resolve.h"
#include "net/socket_options.h"
#include "os/file.h"
#include "os/socket.h"

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

// What accept(2) says of a connection that has failed before it could be taken.
bool is_of_the_connection(const std::error_code& ec) {
  if (ec.category() != std::system_category()) return false;
  switch (ec.value()) {
    case ECONNABORTED:
    case ECONNRESET:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
    case ENONET:
    case ENOPROTOOPT:
    case EPROTO:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

// A firewall refuses one connection; a filter of system calls refuses them all.
bool is_refused(const std::error_code& ec) {
  return ec.category() == std::system_category() && ec.value() == EPERM;
}

using Trouble = std::function<void(const std::error_code&)>;

// While others give back what is missing.
class Pause {
 public:
  /// `trouble` is told of the first one.
  explicit Pause(const Trouble* trouble) : trouble_(trouble) {}

  /// False: ec says why there is no use in waiting.
  bool wait(FdState* s, const context* ctx, std::error_code& ec) {
    if (trouble_ != nullptr) (*trouble_)(ec);
    trouble_ = nullptr;
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
  const Trouble* trouble_;
  std::chrono::milliseconds length_ = 5ms;
};

conn accept_one(FdState* s, const context* ctx, std::error_code& ec, address* remote = nullptr,
                const Trouble* trouble = nullptr) noexcept {
  Pause pause(trouble);
  sockaddr_storage storage;
  auto* at = remote != nullptr ? reinterpret_cast<sockaddr*>(&storage) : nullptr;
  int native = -1;
  bool refused = false;
  for (;;) {
    socklen_t size = sizeof storage;
    native = static_cast<int>(do_io(s, IoSide::in, ctx, ec, [&](int listening) -> ssize_t {
      return os::accept(listening, at, &size);
    }));
    if (!ec) {
      if (remote != nullptr) *remote = address(at, size);
      break;
    }
    if (is_of_the_connection(ec)) continue;
    if (is_refused(ec) && !std::exchange(refused, true)) continue;
    if (!is_short_of_resources(ec) || !pause.wait(s, ctx, ec)) return {};
  }
  for (;;) {
    if (FdState* state = open_fd(native, s->kind, ec); state != nullptr) {
      return access::make_conn(state);
    }
    if (!is_short_of_resources(ec) || !pause.wait(s, ctx, ec)) {
      os::close(native);
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

int set_up(int native, const address& at, const listen_options& options) {
  if (is_tcp(at)) {
    set_option(native, SOL_SOCKET, SO_REUSEADDR, 1);
    if (const int error = prepare_tcp(native, options.keep_alive)) return error;
  }
  if (at.family() == AF_INET6) set_option(native, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (options.reuse_port) {
    if (const int error = set_option(native, SOL_SOCKET, SO_REUSEPORT, 1)) return error;
  }
  return -os::bind(native, at.data(), at.size());
}

// Not an abstract name, and not the empty one that asks the kernel for one.
bool is_path(const std::string& name) { return !name.empty() && name[0] != '@'; }

FdState* listen_at(const address& at, const listen_options& options, std::error_code& ec) {
  const int native = os::open_socket(at.family(), SOCK_STREAM);
  if (native < 0) {
    ec = system_error_code(-native);
    return nullptr;
  }
  if (const int error = set_up(native, at, options); error != 0) {
    ec = system_error_code(error);
    os::close(native);
    return nullptr;
  }
  FdState* s = open_fd(native, kind_of(at), ec);
  const bool has_file = at.family() == AF_UNIX && is_path(at.host());
  if (s == nullptr) {
    if (has_file) os::unlink(at.host().c_str());
    os::close(native);
    return nullptr;
  }
  if (has_file) s->socket_file = strdup(at.host().c_str());
  const int error = -os::listen(native, options.backlog);
  if (error == 0) return s;
  ec = system_error_code(error);
  close_fd(s);
  delete s;
  return nullptr;
}

bool is_without_family(const std::error_code& ec) {
  return ec == std::errc::address_family_not_supported || ec == std::errc::address_not_available;
}

// Of all addresses of the machine those of IPv6 take the others' connections, too. Those of IPv4
// are for machines without IPv6 alone, not for a port that is taken.
void prefer_ipv6(std::vector<address>& addresses) {
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const address& a) { return a.family() == AF_INET6; });
}

}  // namespace

listener::listener(int native) : fd(native) { prepare_tcp(native, {}); }

conn listener::accept() const { return checked(state(), nullptr); }
conn listener::accept(std::error_code& ec) const noexcept {
  return accept_one(state(), nullptr, ec);
}
conn listener::accept(const context& ctx) const { return checked(state(), &ctx); }
conn listener::accept(const context& ctx, std::error_code& ec) const noexcept {
  return accept_one(state(), &ctx, ec);
}

conn access::accept(const listener& l, const context& ctx, address& remote, std::error_code& ec,
                    const Trouble& short_of) noexcept {
  return accept_one(l.state(), &ctx, ec, &remote, &short_of);
}

address listener::local_address(std::error_code& ec) const noexcept {
  return name_of(state(), os::local_address, ec);
}

address listener::local_address() const {
  std::error_code ec;
  const address a = local_address(ec);
  check(ec, "listener::local_address");
  return a;
}

namespace {

listener listen_until(const context* ctx, std::string_view at, const listen_options& options,
                      std::error_code& ec) {
  std::vector<address> addresses = resolve(ctx, at, true, ec);
  if (ec) return {};
  const bool any = at.starts_with(':');
  if (any) prefer_ipv6(addresses);
  std::error_code first;
  for (const address& a : addresses) {
    if (FdState* s = listen_at(a, options, ec); s != nullptr) return access::make_listener(s);
    if (!first) first = ec;
    if (any && !is_without_family(ec)) break;
  }
  ec = first;
  return {};
}

}  // namespace

listener listen(std::string_view at, const listen_options& options, std::error_code& ec) {
  return listen_until(nullptr, at, options, ec);
}

listener listen(std::string_view at, const listen_options& options) {
  std::error_code ec;
  listener l = listen(at, options, ec);
  check(ec, "listen", at);
  return l;
}

listener listen(const context& ctx, std::string_view at, const listen_options& options,
                std::error_code& ec) {
  ec = ctx.err();
  return ec ? listener() : listen_until(&ctx, at, options, ec);
}

listener listen(const context& ctx, std::string_view at, const listen_options& options) {
  std::error_code ec;
  listener l = listen(ctx, at, options, ec);
  check(ec, "listen", at);
  return l;
}

}  // namespace gofer::net
