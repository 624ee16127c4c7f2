// Time: sleeping, and timers that fire into a channel or a function.
//
//   gofer::sleep_for(10ms);
//   gofer::select(gofer::on_recv(c, f), gofer::on_recv(gofer::after(1s), give_up));
//   gofer::timer t = gofer::after_func(5s, [] { log("slow"); });
//   if (t.stop()) { /* it had not begun */ }
//
// Timers need no thread of their own: they lie in heaps of the scheduler's processors.
#pragma once

#include <gofer/chan.h>
#include <gofer/detail/config.h>
#include <gofer/detail/deadline.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
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

/// How a function that a timer calls lies behind its state.
struct timer_func {
  std::size_t size;
  std::size_t align;
  void (*call)(void* f);
  void (*destroy)(void* f) noexcept;
};

/// With a channel (func nullptr) or room for a function, to be constructed at timer_place.
GOFER_API timer_state* timer_new(const timer_func* func);
GOFER_API void* timer_place(timer_state* t) noexcept;
GOFER_API chan_core* timer_chan(timer_state* t) noexcept;
GOFER_API void timer_delete_unused(timer_state* t) noexcept;
GOFER_API void timer_release(timer_state* t) noexcept;
/// Starts it, or starts it anew; period 0: fires once. True if it was waiting until now.
GOFER_API bool timer_reset(timer_state* t, std::int64_t when_ns, std::int64_t period_ns);
GOFER_API bool timer_stop(timer_state* t);

/// Fires at once if d is not positive.
template <class Rep, class Period>
std::int64_t fire_at(std::chrono::duration<Rep, Period> d) {
  const std::int64_t ns = to_ns(d);
  return ns <= 0 ? now_ns() : after_ns(ns);
}

template <class F>
struct timer_func_of {
  static void call(void* f) { std::invoke(*static_cast<F*>(f)); }
  static void destroy(void* f) noexcept { static_cast<F*>(f)->~F(); }
  static constexpr timer_func func{sizeof(F), alignof(F), &call, &destroy};
};

class GOFER_API time_chan : public chan_handle, public recv_side<time_chan, time_point> {
 public:
  using value_type = time_point;
  time_chan() = default;
  explicit time_chan(chan_core* core) : chan_handle(core) {}
  /// As with an unbuffered channel: what has fired can still be taken back by stop() and reset().
  std::size_t len() const noexcept { return 0; }
  std::size_t cap() const noexcept { return 0; }
};

}  // namespace detail

/// Returns after at least that long; at once if d is not positive.
template <class Rep, class Period>
void sleep_for(std::chrono::duration<Rep, Period> d) {
  detail::sleep_until_ns(detail::deadline_after(d));
}
template <class Clock, class Duration>
void sleep_until(std::chrono::time_point<Clock, Duration> t) {
  detail::sleep_until_ns(detail::deadline_at(t));
}
/// False: the context was done first.
template <class Rep, class Period>
bool sleep_for(const context& ctx, std::chrono::duration<Rep, Period> d) {
  return detail::sleep_until_ns(ctx, detail::deadline_after(d));
}
template <class Clock, class Duration>
bool sleep_until(const context& ctx, std::chrono::time_point<Clock, Duration> t) {
  return detail::sleep_until_ns(ctx, detail::deadline_at(t));
}

/// What a timer's channel gives: the time at which it fired.
using time_chan = detail::time_chan;

/// One event in the future. With a channel, or, from after_func, with a function that is called in
/// a goroutine of its own.
///
/// As since Go 1.23: once stop() or reset() has returned, nothing of the time before is received
/// from the channel. The handle may be dropped: the timer fires all the same.
class GOFER_API timer {
 public:
  /// A timer with a channel, started.
  template <class Rep, class Period>
  explicit timer(std::chrono::duration<Rep, Period> d) : state_(detail::timer_new(nullptr)) {
    detail::timer_reset(state_.get(), detail::fire_at(d), 0);
  }

  /// The channel; nil if the timer has a function.
  time_chan c() const {
    detail::chan_core* core = detail::timer_chan(state_.get());
    if (core != nullptr) detail::chan_retain(core);
    return time_chan(core);
  }
  /// True if this call kept the timer from firing: its function is not started, nothing is
  /// received.
  bool stop() { return detail::timer_stop(state_.get()); }
  /// Fires after d, once, as if it were new. True if it was waiting until now.
  template <class Rep, class Period>
  bool reset(std::chrono::duration<Rep, Period> d) {
    return detail::timer_reset(state_.get(), detail::fire_at(d), 0);
  }

 private:
  template <class Rep, class Period, class F>
  friend timer after_func(std::chrono::duration<Rep, Period> d, F&& f);
  struct release {
    void operator()(detail::timer_state* t) const { detail::timer_release(t); }
  };
  explicit timer(detail::timer_state* state) : state_(state) {}
  std::unique_ptr<detail::timer_state, release> state_;
};

/// Calls f in a goroutine of its own after d. An exception that leaves f ends the process, as in
/// any goroutine.
template <class Rep, class Period, class F>
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
time_chan after(std::chrono::duration<Rep, Period> d) {
  return timer(d).c();
}

/// Fires every d into its channel until it is stopped or destroyed. Who is too slow misses ticks;
/// they do not pile up. d must be positive (std::invalid_argument).
class GOFER_API ticker {
 public:
  template <class Rep, class Period>
  explicit ticker(std::chrono::duration<Rep, Period> d) : timer_(detail::timer_new(nullptr)) {
    reset(d);
  }
  ticker(ticker&&) = default;
  ticker& operator=(ticker&& other) noexcept {
    std::swap(timer_, other.timer_);
    return *this;
  }
  ~ticker() {
    if (timer_ != nullptr) stop();
  }

  time_chan c() const {
    detail::chan_core* core = detail::timer_chan(timer_.get());
    detail::chan_retain(core);
    return time_chan(core);
  }
  void stop() { detail::timer_stop(timer_.get()); }
  template <class Rep, class Period>
  void reset(std::chrono::duration<Rep, Period> d) {
    const std::int64_t period = detail::to_ns(d);
    if (period <= 0) throw_not_positive();
    detail::timer_reset(timer_.get(), detail::after_ns(period), period);
  }

 private:
  [[noreturn]] static void throw_not_positive();
  struct release {
    void operator()(detail::timer_state* t) const { detail::timer_release(t); }
  };
  std::unique_ptr<detail::timer_state, release> timer_;
};

}  // namespace gofer
