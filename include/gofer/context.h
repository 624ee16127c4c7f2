// context: a request's deadline, its cancellation and its values, handed from call to call.
//
//   auto [ctx, cancel] = gofer::with_timeout(gofer::background(), 2s);
//   if (auto row = rows.recv(ctx)) use(*row);
//   else if (ctx.err()) ...                       // context_errc, as std::errc::timed_out
//
// A context is an immutable handle. Cancelling it cancels every context that was derived from it,
// and ends every call that waits with it. A call with a context that is done refuses at once, even
// if it would not have to wait. (The wait of cond for a predicate checks the predicate first.)
//
// A deadline or a cancel reaches every done() channel, every function of after_func and every stop
// token of the context, even if all handles of the context are gone.
#pragma once

#include <gofer/chan.h>
#include <gofer/context_error.h>
#include <gofer/detail/config.h>
#include <gofer/detail/deadline.h>
#include <gofer/detail/function.h>
#include <gofer/select.h>

#include <any>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

namespace gofer {

namespace detail {
struct context_state;
}

/// The key of a value: an object at namespace scope, whose address is the key.
///   inline constexpr gofer::context_key<std::string> user;
template <class T>
class context_key {
 public:
  constexpr context_key() = default;
  context_key(const context_key&) = delete;
};

class GOFER_API context {
 public:
  /// The empty context, which is never done.
  context() = default;

  /// Closed when the context is done. The nil channel if the context can never be done.
  recv_chan<std::monostate> done() const;
  /// Empty while the context is not done. Then context_errc::canceled, which equals
  /// std::errc::operation_canceled, or deadline_exceeded, which equals std::errc::timed_out.
  std::error_code err() const;
  /// Why the context is done: the reason given to the cancel function, or else err() as a
  /// std::system_error. nullptr while it is not done.
  std::exception_ptr cause() const;
  /// Throws cause() if the context is done.
  void throw_if_done() const {
    if (std::exception_ptr why = cause()) std::rethrow_exception(std::move(why));
  }
  std::optional<std::chrono::steady_clock::time_point> deadline() const;
  /// The value for a key, from this context or the nearest one above; nullptr if there is none.
  template <class T>
  const T* value(const context_key<T>& key) const {
    return std::any_cast<T>(find(&key));
  }
  /// A token that is stopped when the context is done, right after done() is closed: a caller that
  /// has seen the one may see the other a moment later.
  std::stop_token stop_token() const;

 private:
  friend struct detail::context_state;
  explicit context(std::shared_ptr<detail::context_state> state) : state_(std::move(state)) {}
  const std::any* find(const void* key) const;
  std::shared_ptr<detail::context_state> state_;
};

/// Cancels the context that it was returned with. It may be called any number of times, in any
/// goroutine or thread; the first call counts. When a call returns, the context and all contexts
/// derived from it are done.
class GOFER_API cancel_func {
 public:
  cancel_func() = default;
  void operator()() const { (*this)(nullptr); }
  /// Cancels with a reason, for context::cause().
  void operator()(std::exception_ptr cause) const;

 private:
  friend struct detail::context_state;
  explicit cancel_func(std::shared_ptr<detail::context_state> state) : state_(std::move(state)) {}
  std::shared_ptr<detail::context_state> state_;
};

/// The root: no deadline, no values, never done.
inline context background() { return {}; }

struct [[nodiscard]] cancellable {
  context ctx;
  cancel_func cancel;
};

/// Cancels at the end of a scope, whether or not by an exception.
///   auto [ctx, cancel] = gofer::with_cancel(parent);
///   gofer::cancel_guard at_end(cancel);
class [[nodiscard]] cancel_guard {
 public:
  [[nodiscard]] explicit cancel_guard(cancel_func cancel) noexcept : cancel_(std::move(cancel)) {}
  cancel_guard(const cancel_guard&) = delete;
  cancel_guard& operator=(const cancel_guard&) = delete;
  ~cancel_guard() { cancel_(); }
  /// The guard will not cancel any more.
  void release() noexcept { cancel_ = cancel_func(); }

 private:
  cancel_func cancel_;
};

GOFER_API cancellable with_cancel(const context& parent);

namespace detail {
GOFER_API cancellable with_deadline_ns(const context& parent, std::int64_t deadline_ns);
[[nodiscard]] GOFER_API context with_any(const context& parent, const void* key, std::any value);
/// Equals done().closed(), but needs no handle, whose count all callers would share.
GOFER_API bool is_done(const context& ctx) noexcept;
GOFER_API shared_function<bool()> after_done(const context& ctx, shared_function<void()> f);
}  // namespace detail

/// The context is done at that time at the latest. A parent's earlier deadline still counts.
template <class Clock, class Duration>
cancellable with_deadline(const context& parent, std::chrono::time_point<Clock, Duration> t) {
  return detail::with_deadline_ns(parent, detail::deadline_at(t));
}
template <class Rep, class Period>
cancellable with_timeout(const context& parent, std::chrono::duration<Rep, Period> d) {
  return detail::with_deadline_ns(parent, detail::deadline_after(d));
}

template <class T>
[[nodiscard]] context with_value(const context& parent, const context_key<T>& key,
                                 std::type_identity_t<T> value) {
  return detail::with_any(parent, &key, std::any(std::move(value)));
}

/// Has the parent's values, but is not done with the parent.
[[nodiscard]] GOFER_API context without_cancel(const context& parent);

/// Cancelled when the parent is done or the token is stopped.
[[nodiscard]] GOFER_API context with_stop_token(const context& parent, std::stop_token token);

/// Calls f in a goroutine of its own once ctx is done. The returned function revokes this; it
/// returns true if f will not be called. It can be copied, and kept in a std::function<bool()>.
template <class F>
  requires(std::is_invocable_v<std::decay_t<F>&>)
detail::shared_function<bool()> after_func(const context& ctx, F&& f) {
  return detail::after_done(ctx, std::forward<F>(f));
}

/// The case of a select that happens when the context is done.
template <class F = detail::nothing>
[[nodiscard]] auto on_done(const context& ctx, F f = {}) {
  return on_recv(ctx.done(), std::move(f));
}

template <class Self, class T>
std::optional<T> detail::recv_side<Self, T>::recv(const context& ctx) const {
  const recv_chan<std::monostate> done = ctx.done();
  if (done.closed()) return std::nullopt;
  std::optional<T> value;
  const Self& self = static_cast<const Self&>(*this);
  select(on_recv(self, value), on_recv(done));
  return value;
}

template <class Self, class T>
bool detail::send_side<Self, T>::send(const context& ctx, T value) const {
  const recv_chan<std::monostate> done = ctx.done();
  if (done.closed()) return false;
  const Self& self = static_cast<const Self&>(*this);
  return select(on_send(self, std::move(value)), on_recv(done)) == 0;
}

}  // namespace gofer
