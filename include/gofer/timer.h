// Time: sleeping, and timers that fire into a channel or call a function.
//
//   gofer::sleep_for(10ms);
//   gofer::select(gofer::on_recv(c, f), gofer::on_recv(gofer::after(1s), give_up));
//   gofer::timer t = gofer::after_func(5s, [] { log("slow"); });
//   if (t.stop()) { /* it had not begun */ }
//
// Timers need no thread of their own: they are in heaps of the scheduler's processors. A timer with
// a channel is stopped and freed when the last handle that could receive from it is gone, so the
// select above leaves nothing behind if c is first.
#pragma once

#include <gofer/chan.h>
#include <gofer/detail/config.h>
#include <gofer/detail/deadline.h>
#include <gofer/detail/invoke.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace gofer {

class context;

using time_point = std::chrono::steady_clock::time_point;

namespace detail {

struct timer_state;

GOFER_API void sleep_until_ns(std::int64_t deadline_ns);
GOFER_API bool sleep_until_ns(const context& ctx, std::int64_t deadline_ns);

/// The layout of a function that a timer calls; it lies behind the timer's state.
struct timer_func {
  std::size_t size;
  std::size_t align;
  void (*call)(void* f);
  void (*destroy)(void* f) noexcept;
};

/// Makes a timer with a channel (func is nullptr) or with room for a function, to be constructed at
/// timer_place.
GOFER_API timer_state* timer_new(const timer_func* func);
GOFER_API void* timer_place(timer_state* t) noexcept;
GOFER_API chan_core* timer_chan(timer_state* t) noexcept;
GOFER_API void timer_delete_unused(timer_state* t) noexcept;
/// Drops a handle. A timer with a channel is stopped when no handle can receive from it any more; a
/// timer with a function still fires.
GOFER_API void timer_release(timer_state* t) noexcept;
/// Starts the timer, or restarts it; with period 0 it fires once. Returns true if it was waiting
/// until now.
GOFER_API bool timer_reset(timer_state* t, std::int64_t when_ns, std::int64_t period_ns);
GOFER_API bool timer_stop(timer_state* t);
[[noreturn]] GOFER_API void throw_reset_of_no_timer();

/// The common part of timer and ticker: nothing, or the only handle of a state.
class timer_handle {
 public:
  timer_handle() = default;
  explicit timer_handle(timer_state* t) : state_(t) {}
  bool stop() const { return state_ != nullptr && timer_stop(state_.get()); }
  bool reset(std::int64_t when_ns, std::int64_t period_ns) const {
    if (state_ == nullptr) throw_reset_of_no_timer();
    return timer_reset(state_.get(), when_ns, period_ns);
  }
  chan_core* chan() const {
    chan_core* core = state_ == nullptr ? nullptr : timer_chan(state_.get());
    if (core != nullptr) chan_retain(core);
    return core;
  }
  explicit operator bool() const noexcept { return state_ != nullptr; }

 private:
  struct release {
    void operator()(timer_state* t) const { timer_release(t); }
  };
  std::unique_ptr<timer_state, release> state_;
};

/// Fires at once if d is not positive.
template <class Rep, class Period>
std::int64_t fire_at(std::chrono::duration<Rep, Period> d) {
  const std::int64_t ns = to_ns(d);
  return ns <= 0 ? now_ns() : after_ns(ns);
}

template <class F>
struct timer_func_of {
  static void call(void* f) { detail::call(*static_cast<F*>(f)); }
  static void destroy(void* f) noexcept { static_cast<F*>(f)->~F(); }
  static constexpr timer_func func{sizeof(F), alignof(F), &call, &destroy};
};

class GOFER_API time_chan : public chan_handle, public recv_side<time_chan, time_point> {
 public:
  using value_type = time_point;
  time_chan() = default;
  explicit time_chan(chan_core* core) : chan_handle(core) {}
  /// Behaves like an unbuffered channel: stop() and reset() can still take back what has fired.
  std::size_t len() const noexcept { return 0; }
  std::size_t cap() const noexcept { return 0; }
};

}  // namespace detail

/// Returns after at least that long, or at once if d is not positive.
template <class Rep, class Period>
void sleep_for(std::chrono::duration<Rep, Period> d) {
  detail::sleep_until_ns(detail::deadline_after(d));
}
template <class Clock, class Duration>
void sleep_until(std::chrono::time_point<Clock, Duration> t) {
  detail::sleep_until_ns(detail::deadline_at(t));
}
/// Returns false if the context was done first.
template <class Rep, class Period>
[[nodiscard]] bool sleep_for(const context& ctx, std::chrono::duration<Rep, Period> d) {
  return detail::sleep_until_ns(ctx, detail::deadline_after(d));
}
template <class Clock, class Duration>
[[nodiscard]] bool sleep_until(const context& ctx, std::chrono::time_point<Clock, Duration> t) {
  return detail::sleep_until_ns(ctx, detail::deadline_at(t));
}

namespace this_goroutine {
using gofer::sleep_for;
using gofer::sleep_until;
}  // namespace this_goroutine

/// The value that a timer's channel gives: the time at which it fired.
using time_chan = detail::time_chan;

/// One event in the future. It has a channel, or, if it comes from after_func, a function that is
/// called in a goroutine of its own.
///
/// As in Go since 1.23: once stop() or reset() has returned, nothing that fired before is received
/// from the channel. The timer may be dropped: a function is still called, and the channel fires as
/// long as a copy of it exists.
class GOFER_API timer {
 public:
  /// No timer, as after a move from it: stop() returns false, c() is the nil channel, and reset()
  /// throws std::logic_error.
  timer() noexcept = default;
  /// A timer with a channel, started.
  template <class Rep, class Period>
  explicit timer(std::chrono::duration<Rep, Period> d) : handle_(detail::timer_new(nullptr)) {
    handle_.reset(detail::fire_at(d), 0);
  }

  /// True if it is a timer.
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }
  /// The channel; nil if the timer has a function.
  [[nodiscard]] time_chan c() const { return time_chan(handle_.chan()); }
  /// Returns true if this call kept the timer from firing: its function is not started, nothing is
  /// received.
  bool stop() const { return handle_.stop(); }
  /// Fires after d, once, as if it were new. Returns true if it was waiting until now.
  template <class Rep, class Period>
  bool reset(std::chrono::duration<Rep, Period> d) const {
    return handle_.reset(detail::fire_at(d), 0);
  }

 private:
  template <class Rep, class Period, class F>
    requires(std::is_invocable_v<std::decay_t<F>&>)
  friend timer after_func(std::chrono::duration<Rep, Period> d, F&& f);
  explicit timer(detail::timer_state* state) : handle_(state) {}
  detail::timer_handle handle_;
};

/// Calls f in a goroutine of its own after d. An exception that leaves f ends the process, as in
/// any goroutine.
template <class Rep, class Period, class F>
  requires(std::is_invocable_v<std::decay_t<F>&>)
timer after_func(std::chrono::duration<Rep, Period> d, F&& f) {
  using function = std::decay_t<F>;
  detail::timer_state* state = detail::timer_new(&detail::timer_func_of<function>::func);
  struct guard {
    detail::timer_state* unused;
    ~guard() {
      if (unused != nullptr) detail::timer_delete_unused(unused);
    }
  } g{state};
  ::new (detail::timer_place(state)) function(std::forward<F>(f));
  g.unused = nullptr;
  timer t(state);
  detail::timer_reset(state, detail::fire_at(d), 0);
  return t;
}

/// The channel of a new timer.
template <class Rep, class Period>
[[nodiscard]] time_chan after(std::chrono::duration<Rep, Period> d) {
  return timer(d).c();
}

/// Fires every d into its channel until it is stopped or destroyed. A slow receiver misses
/// ticks; they do not pile up. d must be positive (std::invalid_argument).
class GOFER_API ticker {
 public:
  /// No ticker, as after a move from it: stop() does nothing, c() is the nil channel, and reset()
  /// throws std::logic_error.
  ticker() noexcept = default;
  template <class Rep, class Period>
  explicit ticker(std::chrono::duration<Rep, Period> d) : handle_(detail::timer_new(nullptr)) {
    reset(d);
  }
  ticker(ticker&&) noexcept = default;
  ticker& operator=(ticker&& other) noexcept {
    ticker old = std::move(other);
    std::swap(handle_, old.handle_);
    return *this;
  }
  ~ticker() { stop(); }

  /// True if it is a ticker.
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }
  /// The channel. Not for a temporary: nothing would come after the ticker is destroyed.
  [[nodiscard]] time_chan c() const&& = delete;
  [[nodiscard]] time_chan c() const& { return time_chan(handle_.chan()); }
  void stop() const { handle_.stop(); }
  template <class Rep, class Period>
  void reset(std::chrono::duration<Rep, Period> d) const {
    const std::int64_t period = detail::to_ns(d);
    if (period <= 0) throw_not_positive();
    handle_.reset(detail::after_ns(period), period);
  }

 private:
  [[noreturn]] static void throw_not_positive();
  detail::timer_handle handle_;
};

}  // namespace gofer
