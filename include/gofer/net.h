// Network connections of goroutines.
//
//   gofer::net::listener server = gofer::net::listen("127.0.0.1:8080");
//   for (;;) {
//     gofer::go([c = server.accept()] {
//       char bytes[4096];
//       while (std::size_t n = c.read(bytes)) c.write_all({bytes, n});
//     });
//   }
//
//   gofer::net::conn c = gofer::net::dial("example.org:80", 5s);
//
// Addresses are "host:port", "[ipv6]:port", ":port" for all of this machine's addresses, port 0 for
// one that is free, and "unix:/path" or "unix:@abstract-name". A host may be a name, which is
// looked up without holding up other goroutines.
//
// Errors are those of fd, and net::resolve_category() for names that cannot be looked up.
#pragma once

#include <gofer/context.h>
#include <gofer/detail/config.h>
#include <gofer/fd.h>

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
  /// Of no socket.
  address() noexcept = default;
  address(const sockaddr* data, socklen_t size) noexcept;

  /// "127.0.0.1:80", "[::1]:80", "unix:/path", "unix:@name", "unix:" for a socket without a name.
  std::string to_string() const;
  /// The part before the port, or the path.
  std::string host() const;
  /// 0 if the family has none.
  std::uint16_t port() const noexcept;
  int family() const noexcept { return storage_.ss_family; }

  const sockaddr* data() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const noexcept { return size_; }

  friend GOFER_API bool operator==(const address& a, const address& b) noexcept;

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

/// A connection: a descriptor with two addresses. TCP connections have TCP_NODELAY set.
class GOFER_API conn : public fd {
 public:
  conn() noexcept = default;
  /// Owns a socket that somebody else has connected.
  explicit conn(int native) : fd(native) {}
  conn(int native, std::error_code& ec) noexcept : fd(native, ec) {}

  address local_address() const;
  address local_address(std::error_code& ec) const noexcept;
  address remote_address() const;
  address remote_address(std::error_code& ec) const noexcept;

  /// Nothing more will be sent: the other side reads to the end of the input.
  void shutdown_write() const;
  void shutdown_write(std::error_code& ec) const noexcept;
  /// Nothing more will be received: reads, of those that wait too, return 0.
  void shutdown_read() const;
  void shutdown_read(std::error_code& ec) const noexcept;

  /// false: small packets may wait for an answer to the one before (Nagle's algorithm).
  void set_no_delay(bool on) const;
  /// Asks for a sign of life when the other side has been silent for so long; zero: never.
  void set_keep_alive(std::chrono::seconds idle) const;

 private:
  friend struct access;
  explicit conn(internal::FdState* state) noexcept : fd(state) {}
};

struct listen_options {
  int backlog = SOMAXCONN;  ///< connections that wait to be accepted
  bool reuse_port = false;  ///< several listeners, of other processes too, share the port
};

/// A copyable handle of a socket that listens.
class GOFER_API listener : private fd {
 public:
  listener() noexcept = default;
  /// Owns a socket that listens already.
  explicit listener(int native);

  /// The next connection. Those that were aborted before are passed over; while there is no
  /// descriptor or memory for one, it stays in the backlog and is tried again after a while.
  conn accept() const;
  conn accept(std::error_code& ec) const noexcept;
  conn accept(const context& ctx) const;
  conn accept(const context& ctx, std::error_code& ec) const noexcept;

  /// Where it listens: with port 0 asked for, the port that was given.
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

GOFER_API listener listen(std::string_view at, const listen_options& options = {});
GOFER_API listener listen(std::string_view at, const listen_options& options, std::error_code& ec);

/// Connects. The addresses that a name has are tried in turn; with a deadline each gets its share
/// of the time. The error is that of the first.
GOFER_API conn dial(std::string_view to);
GOFER_API conn dial(std::string_view to, std::error_code& ec);
GOFER_API conn dial(const context& ctx, std::string_view to);
GOFER_API conn dial(const context& ctx, std::string_view to, std::error_code& ec);
template <class Rep, class Period>
conn dial(std::string_view to, std::chrono::duration<Rep, Period> timeout) {
  const auto [ctx, cancel] = with_timeout(background(), timeout);
  conn c = dial(ctx, to);
  cancel();
  return c;
}

/// Values are getaddrinfo()'s (EAI_NONAME and others).
GOFER_API const std::error_category& resolve_category() noexcept;

}  // namespace gofer::net
