// Dialling: one address at a time, or several in a race.
//
// The race is that of RFC 8305. Each attempt is a goroutine; the caller starts them one after the
// other and waits for their results. Before it returns, it cancels and awaits those that are on
// their way, so that a dial leaves neither goroutines nor sockets behind.
#include <gofer/chan.h>
#include <gofer/net.h>
#include <gofer/timer.h>
#include <gofer/wait_group.h>

#include <algorithm>
#include <string>
#include <vector>

#include "net/access.h"
#include "net/resolve.h"
#include "net/socket_options.h"
#include "os/file.h"
#include "os/socket.h"

namespace gofer::net {

using namespace internal;
using namespace std::chrono_literals;

namespace {

constexpr auto longest_pause = 50ms;

// The error, 0 if it is connected already, or EINPROGRESS.
int begin_connecting(int native, const address& to) {
  const int error = -os::connect(native, to.data(), to.size());
  if (error == EINTR) return EINPROGRESS;
  return error == EAGAIN ? EBUSY : error;  // the backlog of a unix-domain listener is full
}

std::error_code wait_until_connected(FdState* s, const context* ctx) {
  std::error_code ec;
  do_io(s, IoSide::out, ctx, ec, [&](int native) -> ssize_t {
    int error = 0;
    os::get_option(native, SOL_SOCKET, SO_ERROR, error);
    if (error != 0) return -error;
    // An event without an error may also be an early one: is there a peer at the other end?
    sockaddr_storage peer;
    socklen_t room = sizeof peer;
    const int n = os::remote_address(native, reinterpret_cast<sockaddr*>(&peer), &room);
    return n == -ENOTCONN ? -EAGAIN : n;
  });
  return ec;
}

conn connect_to(const context* ctx, const address& to, const dial_options& options,
                std::error_code& ec) {
  const int native = os::open_socket(to.family(), SOCK_STREAM);
  if (native < 0) {
    ec = system_error_code(-native);
    return {};
  }
  int error = is_tcp(to) ? prepare_tcp(native, options.keep_alive) : 0;
  // Before the netpoller watches it: of a socket that is not connected the kernel says that it has
  // ended.
  if (error == 0) error = begin_connecting(native, to);
  ec = system_error_code(error == EINPROGRESS ? 0 : error);
  FdState* state = ec ? nullptr : open_fd(native, kind_of(to), ec);
  if (state == nullptr) {
    os::close(native);
    return {};
  }
  conn c = access::make_conn(state);
  ec = wait_until_connected(state, ctx);
  // Without a listener there, the kernel may choose the very port that was asked for, and connect
  // the socket with itself.
  std::error_code unknown;
  if (!ec && is_tcp(to) && c.local_address(unknown) == to) {
    ec = std::make_error_code(std::errc::connection_refused);
  }
  return ec ? conn() : c;
}

// A unix-domain listener whose backlog is full says so at once, and gives no event when it is not
// any more.
conn connect_patiently(const context* ctx, const address& to, const dial_options& options,
                       std::error_code& ec) {
  auto pause = 1ms;
  for (;;) {
    conn c = connect_to(ctx, to, options, ec);
    if (ec != std::errc::device_or_resource_busy || to.family() != AF_UNIX) return c;
    if (ctx == nullptr) {
      sleep_for(pause);
    } else if (!sleep_for(*ctx, pause)) {
      ec = ctx->err();
      return c;
    }
    pause = std::min(pause * 2, std::chrono::milliseconds(longest_pause));
  }
}

// The first stays the first, then the families take turns; within each the order stays.
std::vector<address> interleaved(std::vector<address> list) {
  const auto other =
      std::stable_partition(list.begin(), list.end(),
                            [f = list[0].family()](const address& a) { return a.family() == f; });
  std::vector<address> result;
  for (auto a = list.begin(), b = other; a != other || b != list.end();) {
    if (a != other) result.push_back(*a++);
    if (b != list.end()) result.push_back(*b++);
  }
  return result;
}

// This machine cannot even send there.
bool is_without_route(const std::error_code& ec) {
  return ec == std::errc::network_unreachable || ec == std::errc::address_not_available ||
         ec == std::errc::address_family_not_supported;
}

class Race {
 public:
  Race(const context* ctx, std::vector<address> addresses, const dial_options& options)
      : addresses_(std::move(addresses)),
        options_(options),
        life_(with_cancel(ctx != nullptr ? *ctx : background())),
        results_(addresses_.size()),
        errors_(addresses_.size()) {}
  Race(const Race&) = delete;
  Race& operator=(const Race&) = delete;
  ~Race() {
    life_.cancel();
    attempts_.wait();
  }

  /// The error that stands for all, and in `details` the others.
  conn run(std::error_code& ec, std::string& details) {
    size_t ended = 0;
    while (ended < started_ || may_start()) {
      if (ended == started_) start();
      auto result = may_start() ? results_.recv_for(options_.attempt_delay) : results_.recv();
      if (!result) {
        if (may_start()) start();
        continue;
      }
      if (result->c) return std::move(result->c);
      errors_[result->number] = result->error;
      ++ended;
      if (may_start()) start();
    }
    ec = life_.ctx.err() ? life_.ctx.err() : worst();
    details = to_string();
    return {};
  }

 private:
  struct Result {
    size_t number;
    conn c;
    std::error_code error;
  };

  bool may_start() const { return started_ < addresses_.size() && !life_.ctx.err(); }

  void start() {
    const size_t i = started_++;
    attempts_.go([this, i] {
      std::error_code ec;
      conn c = connect_to(&life_.ctx, addresses_[i], options_, ec);
      results_.send({i, std::move(c), ec});
    });
  }

  std::error_code worst() const {
    for (const std::error_code& ec : errors_) {
      if (ec && !is_without_route(ec)) return ec;
    }
    return errors_[0];
  }

  std::string to_string() const {
    std::string text;
    for (size_t i = 0; i < errors_.size(); ++i) {
      if (!errors_[i]) continue;
      text += (text.empty() ? " (" : ", ") + addresses_[i].to_string() + " " + errors_[i].message();
    }
    return text.empty() ? text : text + ")";
  }

  const std::vector<address> addresses_;
  const dial_options& options_;
  const cancellable life_;
  const chan<Result> results_;  // has room for all: no attempt waits
  std::vector<std::error_code> errors_;
  size_t started_ = 0;
  wait_group attempts_;
};

conn dial_any(const context* ctx, std::string_view to, const dial_options& options,
              std::error_code& ec, std::string& details) {
  ec.clear();
  if (ctx != nullptr && (ec = ctx->err())) return {};
  std::vector<address> addresses = resolve(ctx, to, false, ec);
  if (ec) return {};
  if (addresses.size() == 1) return connect_patiently(ctx, addresses[0], options, ec);
  return Race(ctx, interleaved(std::move(addresses)), options).run(ec, details);
}

conn dial_code(const context* ctx, std::string_view to, const dial_options& options,
               std::error_code& ec) {
  std::string details;
  return dial_any(ctx, to, options, ec, details);
}

conn checked(const context* ctx, std::string_view to, const dial_options& options) {
  std::error_code ec;
  std::string details;
  conn c = dial_any(ctx, to, options, ec, details);
  check(ec, "dial", std::string(to) + details);
  return c;
}

}  // namespace

conn dial(std::string_view to) { return checked(nullptr, to, {}); }
conn dial(std::string_view to, std::error_code& ec) { return dial_code(nullptr, to, {}, ec); }
conn dial(const context& ctx, std::string_view to, const dial_options& options) {
  return checked(&ctx, to, options);
}
conn dial(const context& ctx, std::string_view to, std::error_code& ec) {
  return dial_code(&ctx, to, {}, ec);
}
conn dial(const context& ctx, std::string_view to, const dial_options& options,
          std::error_code& ec) {
  return dial_code(&ctx, to, options, ec);
}

}  // namespace gofer::net
