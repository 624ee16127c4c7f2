#include <gofer/net.h>
#include <gofer/timer.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "net/access.h"
#include "net/resolve.h"

namespace gofer::net {

using namespace internal;
using namespace std::chrono_literals;

namespace {

// At least as much for each of several addresses, if that much is left.
constexpr int64_t least_share_ns = 2'000'000'000;
constexpr auto longest_pause = 50ms;

// The error, 0 if it is connected already, or EINPROGRESS.
int begin_connecting(int native, const address& to) {
  if (connect(native, to.data(), to.size()) == 0) return 0;
  const int error = last_error();
  if (error == EINTR) return EINPROGRESS;
  return error == EAGAIN ? EBUSY : error;  // the backlog of a unix-domain listener is full
}

std::error_code wait_until_connected(FdState* s, const context* ctx) {
  std::error_code ec;
  do_io(s, IoSide::out, ctx, ec, [&](int native) -> ssize_t {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(native, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return -error;
    // An event without an error may also be an early one: is there anybody at the other end?
    sockaddr_storage peer;
    socklen_t room = sizeof peer;
    if (getpeername(native, reinterpret_cast<sockaddr*>(&peer), &room) == 0) return 0;
    return last_error() == ENOTCONN ? -EAGAIN : -last_error();
  });
  return ec;
}

conn connect_to(const context* ctx, const address& to, int64_t deadline_ns, std::error_code& ec) {
  const int native = socket(to.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (native < 0) {
    ec = system_error_code(last_error());
    return {};
  }
  if (is_tcp(to)) {
    const int on = 1;
    setsockopt(native, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  // Before anybody watches it: of a socket that is not connected the kernel says that it has ended.
  const int error = begin_connecting(native, to);
  ec = system_error_code(error == EINPROGRESS ? 0 : error);
  FdState* state = ec ? nullptr : open_fd(native, kind_of(to), ec);
  if (state == nullptr) {
    ::close(native);
    return {};
  }
  conn c = access::make_conn(state);
  poll_set_deadline(state->poll->out, deadline_ns);
  ec = wait_until_connected(state, ctx);
  // With nobody there, the kernel may choose the very port that was asked for, and connect the
  // socket with itself.
  std::error_code unknown;
  if (!ec && is_tcp(to) && c.local_address(unknown) == to) {
    ec = std::make_error_code(std::errc::connection_refused);
  }
  poll_set_deadline(state->poll->out, no_deadline);
  return ec ? conn() : c;
}

// A unix-domain listener whose backlog is full says so at once, and tells nobody when it is not any
// more.
conn connect_patiently(const context* ctx, const address& to, int64_t deadline_ns,
                       std::error_code& ec) {
  auto pause = 1ms;
  for (;;) {
    conn c = connect_to(ctx, to, deadline_ns, ec);
    if (ec != std::errc::device_or_resource_busy || to.family() != AF_UNIX) return c;
    if (detail::now_ns() >= deadline_ns) {
      ec = std::make_error_code(std::errc::timed_out);
      return c;
    }
    if (ctx == nullptr) {
      sleep_for(pause);
    } else if (!sleep_for(*ctx, pause)) {
      ec = ctx->err();
      return c;
    }
    pause = std::min(pause * 2, std::chrono::milliseconds(longest_pause));
  }
}

conn dial_any(const context* ctx, std::string_view to, std::error_code& ec) {
  ec.clear();
  if (ctx != nullptr && (ec = ctx->err())) return {};
  const std::vector<address> addresses = resolve(ctx, to, false, ec);
  if (ec) return {};
  int64_t deadline = no_deadline;
  if (ctx != nullptr && ctx->deadline()) deadline = detail::deadline_at(*ctx->deadline());
  std::error_code first;
  for (size_t i = 0; i < addresses.size(); ++i) {
    int64_t share = no_deadline;
    if (deadline != no_deadline) {
      const int64_t now = detail::now_ns();
      const auto left = static_cast<int64_t>(addresses.size() - i);
      share = std::min(deadline, now + std::max((deadline - now) / left, least_share_ns));
    }
    conn c = connect_patiently(ctx, addresses[i], share, ec);
    if (!ec) return c;
    if (!first) first = ec;
    if (ctx != nullptr && ctx->err()) break;
  }
  ec = first;
  return {};
}

conn checked(const context* ctx, std::string_view to) {
  std::error_code ec;
  conn c = dial_any(ctx, to, ec);
  check(ec, "dial", to);
  return c;
}

}  // namespace

conn dial(std::string_view to) { return checked(nullptr, to); }
conn dial(std::string_view to, std::error_code& ec) { return dial_any(nullptr, to, ec); }
conn dial(const context& ctx, std::string_view to) { return checked(&ctx, to); }
conn dial(const context& ctx, std::string_view to, std::error_code& ec) {
  return dial_any(&ctx, to, ec);
}

}  // namespace gofer::net
