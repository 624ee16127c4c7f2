// async: a goroutine with a result. promise: a result that any goroutine or thread provides.
//
//   gofer::future<int> sum = gofer::async(add_up, std::move(numbers));
//   use(sum.get());                             // the result, or what the function threw
//
// No exception is lost silently: if get() never threw it, one line on stderr reports it when the
// future and its goroutine are gone.
#pragma once

#include <gofer/chan.h>
#include <gofer/context.h>
#include <gofer/detail/invoke.h>
#include <gofer/detail/spawn.h>
#include <gofer/detail/word.h>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace gofer {

template <class T>
class promise;

namespace detail {

/// "gofer: an exception was lost with its <holder>: ...", on stderr.
GOFER_API void report_untaken(const std::exception_ptr& error, const char* holder) noexcept;

/// As std::future_errc. The library makes the std::future_error: <future> costs more than all of
/// this header.
enum class future_fault { no_state, already_retrieved, already_satisfied, broken_promise };
[[noreturn]] GOFER_API void throw_future_error(future_fault why);
GOFER_API std::exception_ptr make_future_error(future_fault why);

template <class T>
struct future_state {
  using stored = std::conditional_t<
      std::is_void_v<T>, std::monostate,
      std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, T>>;
  chan<std::monostate> ready{0};  // closed when there is a result
  std::optional<stored> value;
  std::exception_ptr error;
  bool untaken = false;  // the error must be reported unless get() throws it
  detail::word<bool> satisfied{false};
  detail::word<bool> retrieved{false};

  future_state() = default;
  future_state(const future_state&) = delete;
  future_state& operator=(const future_state&) = delete;
  ~future_state() {
    if (untaken) report_untaken(error, "future");
  }
};

// Whether set_value of a promise<T> takes these arguments: nothing for void, the object itself for
// a reference, and otherwise anything that converts implicitly to T. A temporary would be destroyed
// before get() returns it.
template <class T, class... V>
inline constexpr bool promise_takes = false;
template <>
inline constexpr bool promise_takes<void> = true;
template <class T, class V>
inline constexpr bool promise_takes<T, V> = std::is_convertible_v<V, T> && !loses_fraction_as<V, T>;
template <class T, class V>
inline constexpr bool promise_takes<T&, V> =
    std::is_lvalue_reference_v<V>&& std::is_convertible_v<std::remove_reference_t<V>*, T*>;

}  // namespace detail

/// The result of a goroutine or a promise, to be taken once. Any goroutine or thread may wait for
/// it. Dropping a future does not wait: the goroutine continues and its result is lost.
template <class T>
class [[nodiscard]] future {
 public:
  /// A future that is not valid: all other calls throw std::future_error. A program that catches it
  /// includes <future>.
  future() = default;

  bool valid() const noexcept { return state_ != nullptr; }
  /// True if there is a result, so that get() does not wait.
  [[nodiscard]] bool ready() const { return checked().ready.closed(); }
  void wait() const { checked().ready.recv(); }
  /// Returns false if the context was done first.
  [[nodiscard]] bool wait(const context& ctx) const {
    const auto end = ctx.done();
    if (end.closed()) return false;
    select(on_recv(checked().ready), on_recv(end));
    return ready();
  }
  /// Returns false if the time was over first.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> d) const {
    static_cast<void>(checked().ready.recv_for(d));
    return ready();
  }
  template <class Clock, class Duration>
  [[nodiscard]] bool wait_until(std::chrono::time_point<Clock, Duration> t) const {
    static_cast<void>(checked().ready.recv_until(t));
    return ready();
  }
  /// Closed once there is a result; for select.
  [[nodiscard]] recv_chan<std::monostate> done() const { return checked().ready; }
  /// Waits, then returns the result or throws what the function threw. Afterwards the future is not
  /// valid. Throws std::future_error if it was not valid before.
  T get() {
    wait();
    const auto state = std::move(state_);
    state->untaken = false;
    if (state->error) std::rethrow_exception(state->error);
    if constexpr (std::is_reference_v<T>) {
      return static_cast<T>(**state->value);
    } else if constexpr (!std::is_void_v<T>) {
      return std::move(*state->value);
    }
  }
  /// Throws the context's cause() if the context is done first; the future then stays valid.
  T get(const context& ctx) {
    if (!wait(ctx)) ctx.throw_if_done();
    return get();
  }

 private:
  friend class promise<T>;
  using state = detail::future_state<T>;
  explicit future(std::shared_ptr<state> s) : state_(std::move(s)) {}

  state& checked() const {
    if (state_ == nullptr) detail::throw_future_error(detail::future_fault::no_state);
    return *state_;
  }
  std::shared_ptr<state> state_;
};

/// The source of a future's result, as std::promise. If it is destroyed without a result, the
/// future gets std::future_errc::broken_promise.
template <class T>
class promise {
 public:
  promise() : state_(std::make_shared<state>()) {}
  promise(promise&&) noexcept = default;
  promise& operator=(promise&& other) noexcept {
    promise old = std::move(other);
    std::swap(state_, old.state_);
    return *this;
  }
  ~promise() {
    if (state_ == nullptr || state_->satisfied.exchange(true, detail::order::seq_cst)) return;
    state_->error = detail::make_future_error(detail::future_fault::broken_promise);
    state_->ready.close();
  }

  /// May be called once. Further calls throw std::future_error.
  [[nodiscard]] future<T> get_future() {
    if (checked().retrieved.exchange(true, detail::order::seq_cst))
      detail::throw_future_error(detail::future_fault::already_retrieved);
    return future<T>(state_);
  }
  /// Sets the result: nothing for void, an lvalue for a reference, else a value that converts
  /// implicitly to T and is no fraction for an integer. Throws std::future_error if there is a
  /// result already, and whatever T's constructor throws; in that case there is no result.
  template <class... V>
    requires detail::promise_takes<T, V&&...>
  void set_value(V&&... value) {
    claim();
    try {
      if constexpr (std::is_reference_v<T>) {
        state_->value.emplace(std::addressof(value)...);
      } else {
        state_->value.emplace(std::forward<V>(value)...);
      }
    } catch (...) {
      state_->satisfied.store(false, detail::order::seq_cst);
      throw;
    }
    state_->ready.close();
  }
  /// The same for a value in braces: p.set_value({1, 2}).
  void set_value(typename detail::future_state<T>::stored&& value) requires std::is_object_v<T> {
    set_value<T>(std::move(value));
  }
  template <detail::loses_fraction_as<T> U>
  void set_value(U&& value) = delete;
  /// Sets the exception that get() throws.
  void set_exception(std::exception_ptr error) {
    claim();
    state_->error = std::move(error);
    state_->untaken = true;
    state_->ready.close();
  }

 private:
  using state = detail::future_state<T>;
  state& checked() const {
    if (state_ == nullptr) detail::throw_future_error(detail::future_fault::no_state);
    return *state_;
  }
  void claim() {
    if (checked().satisfied.exchange(true, detail::order::seq_cst))
      detail::throw_future_error(detail::future_fault::already_satisfied);
  }
  std::shared_ptr<state> state_;
};

namespace detail {

template <class F, class... Args>
auto async_with(const go_options* options, F&& f, Args&&... args) {
  using T = std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>;
  // However the function ends, goexit() included, the promise's destructor wakes the waiters.
  promise<T> p;
  future<T> result = p.get_future();
  spawn(options, [p = std::move(p), function = std::decay_t<F>(std::forward<F>(f)),
                  ... arguments = std::decay_t<Args>(std::forward<Args>(args))]() mutable {
    try {
      if constexpr (std::is_void_v<T>) {
        detail::call(std::move(function), std::move(arguments)...);
        p.set_value();
      } else {
        p.set_value(detail::call(std::move(function), std::move(arguments)...));
      }
    } catch (...) {
      if (goroutine_exits()) throw;
      p.set_exception(std::current_exception());
    }
  });
  return result;
}

}  // namespace detail

/// Calls f(args...) in a goroutine, with copied or moved arguments. Throws std::bad_alloc.
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
[[nodiscard]] auto async(F&& f, Args&&... args) {
  return detail::async_with(nullptr, std::forward<F>(f), std::forward<Args>(args)...);
}
/// The same, with a name or a stack size: async({.name = "sum"}, f).
template <class F, class... Args>
  requires std::is_invocable_v<std::decay_t<F>, std::decay_t<Args>...>
[[nodiscard]] auto async(const go_options& options, F&& f, Args&&... args) {
  return detail::async_with(&options, std::forward<F>(f), std::forward<Args>(args)...);
}

}  // namespace gofer
