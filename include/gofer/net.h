// Network connections of goroutines.
//
//   gofer::net::conn c = gofer::net::dial("example.org:80", 5s);
//   c.write_all("GET / HTTP/1.0\r\n\r\n");
//   while (std::size_t n = c.read(bytes)) use(bytes, n);
//
//   gofer::net::serve(gofer::net::listen("127.0.0.1:8080"), [](gofer::net::conn c) { … });
//
// <gofer/server.h> has serve(). Without it, a goroutine that handles a connection has to catch what
// reads and writes throw: otherwise a client that resets its connection would end the process.
//
// Addresses are "host:port", "[ipv6]:port", "unix:/path" and "unix:@abstract-name". A host may be a
// name; other goroutines run while it is looked up. A listener takes ":port" and "[::]:port" as all
// addresses of this machine, those of IPv4 and, where it exists, of IPv6, and "0.0.0.0:port" as
// those of IPv4 alone (Go includes IPv6). Port 0, or no port after the colon, is a free port, and
// "unix:" is a free abstract name. For dial, all of those hosts are this machine.
//
// Errors are those of fd and of <gofer/net_error.h>.
#pragma once

#include <gofer/context.h>
#include <gofer/detail/config.h>
#include <gofer/fd.h>
#include <gofer/net_error.h>

#include <sys/socket.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace gofer::net {

/// The address of one end of a connection.
class GOFER_API address {
 public:
  /// The address of no socket.
  address() noexcept = default;
  address(const sockaddr* data, socklen_t size) noexcept;

  /// "127.0.0.1:80", "[::1]:80", "unix:/path", "unix:@name", "unix:" for a socket without a name.
  std::string to_string() const;
  /// The part before the port, or the path.
  std::string host() const;
  /// 0 if the address family has no ports.
  std::uint16_t port() const noexcept;
  int family() const noexcept { return storage_.ss_family; }

  const sockaddr* data() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const noexcept { return size_; }

  friend GOFER_API bool operator==(const address& a, const address& b) noexcept;

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

/// How a TCP connection notices that the other side has vanished. After `idle` without data it
/// sends a probe every `interval`, and it fails with ETIMEDOUT after `probes` of them without an
/// answer. The defaults are Go's. Calls with numbers that the kernel does not accept (less than 1,
/// or more than 32767 seconds or 127 probes) fail with std::errc::invalid_argument.
struct keep_alive {
  bool enabled = true;
  std::chrono::seconds idle = std::chrono::seconds(15);
  std::chrono::seconds interval = std::chrono::seconds(15);
  int probes = 9;
};

/// A connection: a descriptor with two addresses. TCP connections have TCP_NODELAY set, and the
/// keep_alive of the options of dial() or of their listener.
class GOFER_API conn : public fd {
 public:
  conn() noexcept = default;
  /// Owns `native`, a connected socket.
  explicit conn(int native) : fd(native) {}
  conn(int native, std::error_code& ec) noexcept : fd(native, ec) {}

  address local_address() const;
  address local_address(std::error_code& ec) const noexcept;
  address remote_address() const;
  address remote_address(std::error_code& ec) const noexcept;

  /// Ends sending: the other side reads to the end of the input.
  void shutdown_write() const;
  void shutdown_write(std::error_code& ec) const noexcept;
  /// Ends receiving: reads return 0, including those that wait now.
  void shutdown_read() const;
  void shutdown_read(std::error_code& ec) const noexcept;

  /// With false, small packets may wait for an answer to the one before (Nagle's algorithm).
  void set_no_delay(bool on) const;
  void set_keep_alive(const keep_alive& how) const;
  /// Uses `idle` for both times; zero turns keep-alive off.
  void set_keep_alive(std::chrono::seconds idle) const;

 private:
  friend struct access;
  explicit conn(internal::FdState* state) noexcept : fd(state) {}
};

struct listen_options {
  int backlog = SOMAXCONN;       ///< connections that wait to be accepted
  bool reuse_port = false;       ///< several listeners, also of other processes, share the port
  net::keep_alive keep_alive{};  ///< of the connections that are accepted
};

/// A copyable handle of a listening socket.
class GOFER_API listener : private fd {
 public:
  listener() noexcept = default;
  /// Owns a socket that listens already.
  explicit listener(int native);

  /// Returns the next connection. Skips connections that were aborted before. While there is no
  /// descriptor or memory for a connection, it stays in the backlog, and accept() tries again after
  /// a while.
  [[nodiscard]] conn accept() const;
  [[nodiscard]] conn accept(std::error_code& ec) const noexcept;
  [[nodiscard]] conn accept(const context& ctx) const;
  [[nodiscard]] conn accept(const context& ctx, std::error_code& ec) const noexcept;

  /// The address at which it listens. If port 0 was asked for, it has the port that was assigned.
  address local_address() const;
  address local_address(std::error_code& ec) const noexcept;

  using fd::close;  ///< a socket file is removed, too
  using fd::native_handle;
  using fd::set_deadline;
  using fd::operator bool;
  friend bool operator==(const listener&, const listener&) = default;

 private:
  friend struct access;
  explicit listener(internal::FdState* state) noexcept : fd(state) {}
};

[[nodiscard]] GOFER_API listener listen(std::string_view at, const listen_options& options = {});
[[nodiscard]] GOFER_API listener listen(std::string_view at, const listen_options& options,
                                        std::error_code& ec);
/// The same for a name, which may take long to look up, or a context that may be done already.
[[nodiscard]] GOFER_API listener listen(const context& ctx, std::string_view at,
                                        const listen_options& options = {});
[[nodiscard]] GOFER_API listener listen(const context& ctx, std::string_view at,
                                        const listen_options& options, std::error_code& ec);

struct dial_options {
  net::keep_alive keep_alive{};
  /// How long one address of a name is tried alone before the next one is tried in parallel.
  std::chrono::milliseconds attempt_delay = std::chrono::milliseconds(250);
};

/// Connects. A name may have several addresses, of both families. They are tried in the resolver's
/// order of preference, but with the families alternating. The next address is tried as soon as an
/// attempt fails, or attempt_delay after the attempt began, in parallel with the attempts that are
/// still under way. The first connection is taken, and the others are given up ("Happy Eyeballs",
/// RFC 8305). If all fail, the error is that of the first address that this machine has a route to;
/// the exception names them all.
[[nodiscard]] GOFER_API conn dial(std::string_view to);
[[nodiscard]] GOFER_API conn dial(std::string_view to, std::error_code& ec);
[[nodiscard]] GOFER_API conn dial(const context& ctx, std::string_view to,
                                  const dial_options& options = {});
[[nodiscard]] GOFER_API conn dial(const context& ctx, std::string_view to, std::error_code& ec);
[[nodiscard]] GOFER_API conn dial(const context& ctx, std::string_view to,
                                  const dial_options& options, std::error_code& ec);
template <class Rep, class Period>
[[nodiscard]] conn dial(std::string_view to, std::chrono::duration<Rep, Period> timeout) {
  const auto [ctx, cancel] = with_timeout(background(), timeout);
  conn c = dial(ctx, to);
  cancel();
  return c;
}

}  // namespace gofer::net
