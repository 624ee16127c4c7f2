// Serving. A server has one lock, for the list of open connections and for whether it stops. A
// connection enters the list, and is counted, only under the lock and while the server does not
// stop; so a shutdown that has set `stopping` knows all handlers it has to wait for.
//
// Connections are closed without the lock, because close() waits for the calls on the connection,
// and because a handler that ends needs the lock.
#include <gofer/go.h>
#include <gofer/mutex.h>
#include <gofer/semaphore.h>
#include <gofer/server.h>
#include <gofer/timer.h>
#include <gofer/wait_group.h>

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "net/access.h"
#include "os/file.h"
#include "sync/until_done.h"

namespace gofer::net {

using namespace std::chrono_literals;

namespace {

inline constexpr context_key<context> serving_key;

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    const char* text = e.what();
    return text != nullptr ? text : "an exception without a text";
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

// One write, so that lines of several threads do not mix.
void log_error(const std::exception_ptr& error, const address& remote) {
  std::string line = "gofer::net::server: ";
  if (remote.size() != 0) line += remote.to_string() + ": ";
  line += text_of(error) + "\n";
  internal::os::write(STDERR_FILENO, line.data(), line.size());
}

constexpr std::string_view no_memory = "gofer::net::server: an error, and no memory to report it\n";

// For what cannot be reported: that needs memory, or on_error throws.
void log_unreported(std::string_view line) noexcept {
  internal::os::write(STDERR_FILENO, line.data(), line.size());
}

// What calls say when their connection was closed or their context cancelled by a shutdown.
bool is_of_a_shutdown(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::system_error& e) {
    return e.code() == io_errc::closed || e.code() == std::errc::operation_canceled;
  } catch (...) {
    return false;
  }
}

struct Connection {
  conn c;
  address remote;
  permit_guard place;
  bool ended = false;  // by the server
};

}  // namespace

struct server::state {
  handler handle;
  serve_options options;
  cancellable handlers_life;  // the context of all handlers, but for serving_key
  cancellable accepting;      // done when no more connections are wanted
  context handlers_ctx;
  std::optional<semaphore> places;
  wait_group handlers;  // that run
  wait_group loops;     // that accept
  wait_group calls;     // of serve()

  mutable mutex lock;  // for what follows
  bool stopping = false;
  std::list<Connection> open;

  state(handler h, serve_options o, const context& values)
      : handle(std::move(h)),
        options(std::move(o)),
        handlers_life(with_cancel(without_cancel(values))),
        accepting(with_cancel(handlers_life.ctx)),
        handlers_ctx(with_value(handlers_life.ctx, serving_key, accepting.ctx)) {
    if (!options.on_error) options.on_error = log_error;
    constexpr auto most = static_cast<std::size_t>(semaphore::max());
    if (options.max_connections > 0) {
      places.emplace(static_cast<std::int64_t>(std::min(options.max_connections, most)));
    }
  }

  // False: the server stops.
  bool take_place(permit_guard& place) {
    if (!places) return true;
    if (!places->acquire(accepting.ctx)) return false;
    place = permit_guard(*places, std::adopt_lock);
    return true;
  }

  void report(const std::exception_ptr& error, const address& remote) noexcept {
    if (accepting.ctx.err() && is_of_a_shutdown(error)) return;
    try {
      options.on_error(error, remote);
    } catch (const std::bad_alloc&) {
      log_unreported(no_memory);
    } catch (...) {
      log_unreported("gofer::net::server: an error, and on_error has thrown another\n");
    }
  }
  void report(const std::error_code& ec) noexcept {
    std::exception_ptr error;
    try {
      error = std::make_exception_ptr(std::system_error(ec, "gofer::net::listener::accept"));
    } catch (const std::bad_alloc&) {
      return log_unreported(no_memory);
    }
    report(error, {});
  }

  void accept_all(const listener& l, std::error_code& ec);
  void start(conn c, const address& remote, permit_guard place);
  void run(std::list<Connection>::iterator at);
  void stop_accepting();
  void end_handlers();
};

// A goroutine of its own.
void server::state::run(std::list<Connection>::iterator at) {
  struct Guard {
    state* s;
    std::list<Connection>::iterator at;
    ~Guard() {
      at->c.close();
      const std::scoped_lock hold(s->lock);
      s->open.erase(at);
    }
  } guard{this, at};
  try {
    handle(at->c, handlers_ctx);
  } catch (...) {
    if (detail::goroutine_exits()) throw;
    report(std::current_exception(), at->remote);
  }
}

// The place becomes that of the connection.
void server::state::start(conn c, const address& remote, permit_guard place) {
  const std::scoped_lock hold(lock);
  if (stopping) return;
  const auto at = open.insert(open.end(), Connection{std::move(c), remote, std::move(place)});
  try {
    handlers.go([this, at] { run(at); });
  } catch (...) {
    open.erase(at);
    throw;
  }
}

void server::state::accept_all(const listener& l, std::error_code& ec) {
  constexpr auto pause = 100ms;
  for (permit_guard place; take_place(place);) {
    address remote;
    conn c = access::accept(l, accepting.ctx, remote, ec,
                            [this](const std::error_code& trouble) { report(trouble); });
    if (ec) return;
    try {
      start(std::move(c), remote, std::move(place));
    } catch (const std::bad_alloc&) {  // the connection is lost, the server is not
      report(std::current_exception(), remote);
      (void)sleep_for(accepting.ctx, pause);
    }
  }
}

void server::state::stop_accepting() {
  {
    const std::scoped_lock hold(lock);
    stopping = true;
  }
  accepting.cancel();
}

// Those that are ended already are at the end of the list, to which no more are added. This needs
// no memory: a server ends without, too.
void server::state::end_handlers() {
  handlers_life.cancel();
  for (;;) {
    conn c;
    {
      const std::scoped_lock hold(lock);
      if (open.empty() || open.front().ended) return;
      open.front().ended = true;
      c = open.front().c;
      open.splice(open.end(), open, open.begin());
    }
    c.close();
  }
}

server::server(handler h, serve_options options, const context& values)
    : state_(std::make_unique<state>(std::move(h), std::move(options), values)) {}

server::~server() {
  close();
  state_->handlers.wait();
  state_->calls.wait();
}

void server::serve(const listener& l) {
  struct Count {
    wait_group& group;
    explicit Count(wait_group& g) : group(g) { group.add(1); }
    ~Count() { group.done(); }
  };
  const Count call(state_->calls);
  std::optional<Count> loop;
  {
    const std::scoped_lock hold(state_->lock);
    if (!state_->stopping) loop.emplace(state_->loops);
  }
  std::error_code ec;
  if (loop) state_->accept_all(l, ec);
  const bool stopped = !loop || state_->accepting.ctx.err();
  if (stopped) l.close();
  loop.reset();
  if (!stopped) throw std::system_error(ec, "gofer::net::server::serve");
  state_->handlers.wait();
}

bool server::shutdown(const context& ctx) {
  state_->stop_accepting();
  (void)state_->loops.wait(ctx);  // the listeners are closed
  const bool finished = state_->handlers.wait_for(0s) || state_->handlers.wait(ctx);
  if (!finished) state_->end_handlers();
  return finished;
}

void server::close() {
  state_->stop_accepting();
  state_->end_handlers();
}

std::size_t server::connections() const {
  const std::scoped_lock hold(state_->lock);
  return state_->open.size();
}

context serving(const context& ctx) {
  const context* accepting = ctx.value(serving_key);
  if (accepting == nullptr) return ctx;
  return internal::done_with_either(ctx, *accepting);
}

void serve(const context& ctx, const listener& l, handler h, serve_options options) {
  const auto grace = options.grace;
  server s(std::move(h), std::move(options), ctx);
  // The goroutine that shuts the server down is gone before the server is.
  wait_group ending;
  const auto [until, served] = with_cancel(ctx);
  ending.go([&s, &ctx, until = until, grace] {
    until.done().recv();
    if (!ctx.err()) return s.close();
    const auto [limit, cancel] = with_timeout(background(), grace);
    s.shutdown(limit);
    cancel();
  });
  struct Guard {
    const cancel_func& served;
    wait_group& ending;
    ~Guard() {
      served();
      ending.wait();
    }
  } guard{served, ending};
  if (ctx.err()) s.close();  // at once: nothing is accepted any more
  s.serve(l);
}

void serve(const listener& l, handler h, serve_options options) {
  server s(std::move(h), std::move(options));
  s.serve(l);
}

}  // namespace gofer::net
