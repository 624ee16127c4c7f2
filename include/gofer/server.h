// net::serve: a goroutine for each connection, and an orderly shutdown.
//
//   const auto [ctx, stop] = gofer::notify_context(gofer::background(), {SIGINT, SIGTERM});
//   gofer::net::serve(ctx, gofer::net::listen("127.0.0.1:8080"), [](gofer::net::conn c) {
//     char bytes[4096];
//     while (std::size_t n = c.read(bytes)) c.write_all({bytes, n});
//   });
//
// A handler is called with the connection, and with a context if it takes one. When the handler
// ends, also by an exception or goexit(), the server closes its connection and ends nothing else;
// an exception is reported. While the process is short of descriptors or memory, connections wait
// in the backlog; the server reports that and tries again, after pauses that grow.
//
// Shutting down has two steps. First the server accepts nothing more and lets the handlers finish.
// A handler that only waits for the next request learns of this by net::serving(ctx):
//
//   [](gofer::net::conn c, const gofer::context& ctx) {
//     const gofer::context serving = gofer::net::serving(ctx);
//     for (;;) {
//       c.wait_readable(serving);             // only the wait between requests is cut short
//       if (!read_request(ctx, c)) return;    // what has begun is read to its end
//       answer(ctx, c);
//     }
//   }
//
// If the handler has seen nothing of a request when the shutdown begins, the request is not
// answered: its client sees the end of the connection, and has to send it again elsewhere.
//
// When the time for this is over, the handlers' context is cancelled and their connections are
// closed, so that every operation on either fails.
#pragma once

#include <gofer/context.h>
#include <gofer/detail/config.h>
#include <gofer/detail/function.h>
#include <gofer/detail/invoke.h>
#include <gofer/net.h>

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace gofer::net {

/// The code that serves a connection: any callable that takes (conn) or (conn, const context&).
/// Many goroutines call the same object at the same time.
class handler {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, handler> &&
             (std::is_invocable_v<std::decay_t<F>&, conn, const context&> ||
              std::is_invocable_v<std::decay_t<F>&, conn>))
  handler(F&& f) {  // NOLINT(google-explicit-constructor): lambdas are handlers
    using callable = std::decay_t<F>;
    call_ = [f = callable(std::forward<F>(f))](conn c, const context& ctx) mutable {
      if constexpr (std::is_invocable_v<callable&, conn, const context&>) {
        detail::call(f, std::move(c), ctx);
      } else {
        detail::call(f, std::move(c));
      }
    };
  }
  void operator()(conn c, const context& ctx) const { call_(std::move(c), ctx); }

 private:
  detail::shared_function<void(conn, const context&)> call_;
};

struct serve_options {
  /// How many connections are served at once; others wait in the backlog. 0: no limit.
  std::size_t max_connections = 0;
  /// How long serve(ctx, …) lets handlers finish once ctx is done.
  std::chrono::nanoseconds grace = std::chrono::seconds(5);
  /// Called with an exception of a handler and the remote address of its connection, in the
  /// handler's goroutine; also called, with an empty address, with an error that keeps the server
  /// from accepting for now. If it throws, that is one line on stderr. It may call close(), but not
  /// shutdown(), which would wait for its caller. If it is empty, each error is one line on stderr.
  /// Exceptions of handlers that a shutdown has cancelled, or of a wait with net::serving(ctx), are
  /// not reported.
  detail::shared_function<void(const std::exception_ptr& error, const address& remote)> on_error{};
};

/// Serves any number of listeners until it is shut down.
class GOFER_API server {
 public:
  /// The handlers' context has the values of `values`, but is not done with it.
  explicit server(handler h, serve_options options = {}, const context& values = background());
  server(const server&) = delete;
  server& operator=(const server&) = delete;
  /// Calls close(), then waits for the handlers and for the calls of serve().
  ~server();

  /// Accepts and serves connections until the server is shut down. Then it closes the listener and
  /// returns when the last handler of the server has returned. Throws std::system_error if nothing
  /// can be accepted there any more, for example io_errc::closed if the program has closed the
  /// listener; the handlers then continue. May be called for several listeners at the same time.
  void serve(const listener& l);

  /// Stops accepting, for good, and lets the handlers finish. Calls close() once ctx is done.
  /// Returns true if all handlers have finished by themselves. A handler or on_error must not call
  /// it: it would wait for its own end, until ctx is done.
  bool shutdown(const context& ctx);
  /// Stops accepting, cancels the handlers' context and closes their connections. Waits neither for
  /// the handlers nor for serve(), which closes its listener.
  void close();

  /// The number of connections that are served now.
  std::size_t connections() const;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Takes a handler's context, or one that is derived from it, and returns a context with the same
/// values and deadline that is also done as soon as the server begins to shut down. A handler calls
/// this once, not for each request. Any other context is returned as it is.
[[nodiscard]] GOFER_API context serving(const context& ctx);

/// Serves until ctx is done, then lets the handlers finish for options.grace, then ends them.
/// Returns when the last one has returned. Throws what server::serve throws, after close().
GOFER_API void serve(const context& ctx, const listener& l, handler h, serve_options options = {});
/// Serves for ever, or until accepting fails.
GOFER_API void serve(const listener& l, handler h, serve_options options = {});

}  // namespace gofer::net
