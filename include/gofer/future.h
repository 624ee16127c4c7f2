// async: a goroutine with a result.
//
//   gofer::future<int> sum = gofer::async(add_up, std::move(numbers));
//   use(sum.get());                             // the result, or what the function threw
#pragma once

#include <gofer/chan.h>
#include <gofer/context.h>
#include <gofer/detail/spawn.h>

#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace gofer {

namespace detail {

template <class T>
struct future_state {
  using stored = std::conditional_t<
      std::is_void_v<T>, std::monostate,
      std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T>*, T>>;
  chan<std::monostate> ready{0};  // closed when there is a result
  std::optional<stored> value;
  std::exception_ptr error;
};

}  // namespace detail

/// The result of a goroutine, to be taken once. May be waited for in any goroutine or thread. A
/// future that is dropped does not wait: the goroutine goes on and its result is lost.
template <class T>
class future {
 public:
  future() = default;

  bool valid() const noexcept { return state_ != nullptr; }
  /// There is a result: get() does not wait.
  bool ready() const { return checked().ready.closed(); }
  void wait() const { checked().ready.recv(); }
  /// False: the context was done first.
  bool wait(const context& ctx) const {
    const auto end = ctx.done();
    if (end.closed()) return false;
    select(on_recv(checked().ready), on_recv(end));
    return ready();
  }
  /// False: the time was over.
  template <class Rep, class Period>
  bool wait_for(std::chrono::duration<Rep, Period> d) const {
    checked().ready.recv_for(d);
    return ready();
  }
  template <class Clock, class Duration>
  bool wait_until(std::chrono::time_point<Clock, Duration> t) const {
    checked().ready.recv_until(t);
    return ready();
  }
  /// Closed once there is a result: for select.
  recv_chan<std::monostate> done() const { return checked().ready; }
  /// Waits, and gives the result or throws what the function threw. Afterwards the future is not
  /// valid any more. Throws std::future_error if it is not.
  T get() {
    wait();
    const auto state = std::move(state_);
    if (state->error) std::rethrow_exception(state->error);
    if constexpr (std::is_reference_v<T>) {
      return static_cast<T>(**state->value);
    } else if constexpr (!std::is_void_v<T>) {
      return std::move(*state->value);
    }
  }

 private:
  template <class F, class... Args>
  friend auto async(F&& f, Args&&... args);

  detail::future_state<T>& checked() const {
    if (state_ == nullptr) throw std::future_error(std::future_errc::no_state);
    return *state_;
  }
  std::shared_ptr<detail::future_state<T>> state_;
};

/// Calls f(args...), copied or moved, in a goroutine. Throws std::bad_alloc.
template <class F, class... Args>
auto async(F&& f, Args&&... args) {
  using T = std::invoke_result_t<std::decay_t<F>, std::decay_t<Args>...>;
  future<T> result;
  result.state_ = std::make_shared<detail::future_state<T>>();
  auto task = [state = result.state_](auto& function, auto&... arguments) {
    // However the function ends, goexit() included, who waits is told.
    struct finish {
      detail::future_state<T>& state;
      ~finish() {
        if (!state.value && !state.error) {
          state.error =
              std::make_exception_ptr(std::future_error(std::future_errc::broken_promise));
        }
        state.ready.close();
      }
    } at_end{*state};
    try {
      if constexpr (std::is_void_v<T>) {
        std::invoke(std::move(function), std::move(arguments)...);
        state->value.emplace();
      } else if constexpr (std::is_reference_v<T>) {
        auto&& r = std::invoke(std::move(function), std::move(arguments)...);
        state->value.emplace(std::addressof(r));
      } else {
        state->value.emplace(std::invoke(std::move(function), std::move(arguments)...));
      }
    } catch (...) {
      if (detail::goroutine_exits()) throw;
      state->error = std::current_exception();
    }
  };
  detail::spawn(nullptr, [task = std::move(task), function = std::decay_t<F>(std::forward<F>(f)),
                          ... arguments = std::decay_t<Args>(std::forward<Args>(args))]() mutable {
    task(function, arguments...);
  });
  return result;
}

}  // namespace gofer
