// select: does whichever of several channel operations is possible first.
//
//   gofer::select(gofer::on_recv(results, [](int v) { use(v); }),
//                 gofer::on_send(requests, next, [] { ++sent; }),
//                 gofer::on_timeout(100ms, [] { give_up(); }));
//
// Exactly one case happens. If several can, one of them is chosen at random, each with the same
// chance. With on_default the call does not wait. select also returns the index of the case, from
// 0, so that a switch over it can replace the functions:
//
//   std::optional<int> v;
//   switch (gofer::select(gofer::on_recv(a, v), gofer::on_recv(quit))) { ... }
//
// on_recv takes a function of std::optional<T> (empty if the channel is closed), a function of T
// (which gets T() from a closed channel, as in Go), a function without parameters, a
// std::optional<T> to be assigned, or nothing at all.
//
// If the number of cases is not known at compile time, use a std::vector<gofer::any_case> of the
// same cases. A fixed select allocates no memory for up to 8 cases.
#pragma once

#include <gofer/chan.h>
#include <gofer/detail/config.h>
#include <gofer/detail/deadline.h>
#include <gofer/detail/invoke.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

namespace gofer {

namespace detail {

struct nothing {
  void operator()() const {}
};

/// What kind of case it is; a select needs to know this beside its channel.
enum class case_kind { chan, timeout, otherwise };

// Separate templates, so that the compiler's message names the channel's type.
template <class Chan, class F, class T = typename Chan::value_type>
struct received_by {
  // The first form that fits is used: a function of auto need not compile for the others.
  static_assert(std::disjunction_v<std::is_invocable<F&, std::optional<T>>,
                                   std::is_invocable<F&, T>, std::is_invocable<F&>>,
                "on_recv: the function must take the channel's value_type T, or std::optional<T>, "
                "or nothing");
};
template <class Chan, class Optional>
struct received_into {
  static_assert(std::is_same_v<Optional, std::optional<typename Chan::value_type>>,
                "on_recv: the variable must be a std::optional of the channel's value_type");
};
template <class Chan, class V>
struct sent_from {
  static_assert(std::is_constructible_v<typename Chan::value_type, V>,
                "on_send: the value does not convert to the channel's value_type");
  static_assert(!loses_fraction_as<V, typename Chan::value_type>,
                "on_send: a floating-point value would lose its fraction in a channel of integers");
};

template <class T, class F>
void hand_to(F& f, std::optional<T>&& value) {
  if constexpr (std::is_same_v<F, std::optional<T>*>) {
    *f = std::move(value);
  } else if constexpr (std::is_invocable_v<F&, std::optional<T>>) {
    detail::call(f, std::move(value));
  } else if constexpr (std::is_invocable_v<F&, T>) {
    if (value) {
      detail::call(f, std::move(*value));
    } else {
      static_assert(std::is_default_constructible_v<T>,
                    "on_recv: take a std::optional<T>; there is no T() for a closed channel");
      detail::call(f, T());
    }
  } else {
    detail::call(f);
  }
}

/// Handle: a chan_handle, or a chan_core* for a channel that the caller keeps alive.
template <class T, class Handle, class F>
class recv_case {
 public:
  static constexpr case_kind kind = case_kind::chan;
  recv_case(Handle handle, F f) : handle_(std::move(handle)), f_(std::move(f)) {}
  recv_case(recv_case&& other)  // before it takes part in a select
      : handle_(std::move(other.handle_)), f_(std::move(other.f_)) {}

  chan_core* core() const {
    if constexpr (std::is_pointer_v<Handle>) {
      return handle_;
    } else {
      return handle_.core();
    }
  }
  void prepare(select_case& c) {
    c.chan = core();
    c.elem = place_.get();
    c.sends = false;
  }
  void done(bool ok) { hand_to<T>(f_, ok ? place_.take(core()) : std::nullopt); }
  void not_done() {}

 private:
  Handle handle_;
  F f_;
  recv_place<T> place_;
};

/// Value: T, or T& for an object that the caller keeps until the select is over.
template <class T, class Value, class Handle, class F>
class send_case {
 public:
  static constexpr case_kind kind = case_kind::chan;
  send_case(Handle handle, Value value, F f)
      : handle_(std::move(handle)), value_(static_cast<Value&&>(value)), f_(std::move(f)) {}
  send_case(send_case&& other)  // before it takes part in a select
      : handle_(std::move(other.handle_)),
        value_(static_cast<Value&&>(other.value_)),
        f_(std::move(other.f_)) {}

  void prepare(select_case& c) {
    if constexpr (std::is_pointer_v<Handle>) {
      c.chan = handle_;
    } else {
      c.chan = handle_.core();
    }
    place_.emplace(value_);
    c.elem = place_->get();
    c.sends = true;
  }
  void done(bool) {
    place_->sent();
    detail::call(f_);
  }
  void not_done() { place_.reset(); }

 private:
  Handle handle_;
  Value value_;
  F f_;
  std::optional<send_place<T>> place_;
};

template <class F>
struct timeout_case {
  static constexpr case_kind kind = case_kind::timeout;
  std::int64_t deadline_ns;
  F f;
  void prepare(select_case&) {}
  void done(bool) { detail::call(f); }
  void not_done() {}
};

template <class F>
struct default_case {
  static constexpr case_kind kind = case_kind::otherwise;
  F f;
  void prepare(select_case&) {}
  void done(bool) { detail::call(f); }
  void not_done() {}
};

template <class C>
concept chan_like = requires(const std::remove_cvref_t<C>& c) {
  typename std::remove_cvref_t<C>::value_type;
  { c.core() } -> std::convertible_to<chan_core*>;
};

// The side that a case needs: select must not receive from a send_chan, nor send to a recv_chan.
template <class C>
concept receives = chan_like<C> && requires(const std::remove_cvref_t<C>& c) {
  c.recv();
};
template <class C>
concept sends = chan_like<C> && requires(const std::remove_cvref_t<C>& c) {
  c.close();
};

template <class C>
using handle_for = std::conditional_t<std::is_lvalue_reference_v<C>, chan_core*, chan_handle>;

template <class C>
handle_for<C> to_handle(C&& c) {
  if constexpr (std::is_lvalue_reference_v<C>) {
    return c.core();
  } else {
    return std::forward<C>(c);
  }
}

}  // namespace detail

/// Receives from c, a channel or its receiving side.
template <detail::receives C, class F = detail::nothing>
[[nodiscard]] auto on_recv(C&& c, F f = {}) {
  [[maybe_unused]] detail::received_by<std::remove_cvref_t<C>, F> check;
  using T = typename std::remove_cvref_t<C>::value_type;
  return detail::recv_case<T, detail::handle_for<C>, F>(detail::to_handle<C>(std::forward<C>(c)),
                                                        std::move(f));
}
template <detail::receives C, class T>
[[nodiscard]] auto on_recv(C&& c, std::optional<T>& value) {
  [[maybe_unused]] detail::received_into<std::remove_cvref_t<C>, std::optional<T>> check;
  return detail::recv_case<T, detail::handle_for<C>, std::optional<T>*>(
      detail::to_handle<C>(std::forward<C>(c)), &value);
}

/// Sends value to c, a channel or its sending side. An rvalue is moved from only if this case
/// happens.
template <detail::sends C, class V = typename std::remove_cvref_t<C>::value_type,
          class F = detail::nothing>
[[nodiscard]] auto on_send(C&& c, V&& value, F f = {}) {
  [[maybe_unused]] detail::sent_from<std::remove_cvref_t<C>, V> check;
  using T = typename std::remove_cvref_t<C>::value_type;
  using Value = std::conditional_t<std::is_same_v<V, T>, T&, T>;
  return detail::send_case<T, Value, detail::handle_for<C>, F>(
      detail::to_handle<C>(std::forward<C>(c)), static_cast<Value>(value), std::move(f));
}

/// Happens when no other case has happened for that long.
template <detail::duration_like D, class F = detail::nothing>
[[nodiscard]] auto on_timeout(D d, F f = {}) {
  return detail::timeout_case<F>{detail::deadline_after(d), std::move(f)};
}
template <detail::time_point_like Time, class F = detail::nothing>
[[nodiscard]] auto on_timeout(Time t, F f = {}) {
  return detail::timeout_case<F>{detail::deadline_at(t), std::move(f)};
}

/// Happens when no other case is possible now.
template <class F = detail::nothing>
[[nodiscard]] auto on_default(F f = {}) {
  return detail::default_case<F>{std::move(f)};
}

namespace detail {

template <class... Cases>
inline constexpr bool one_and_default = sizeof...(Cases) == 2 &&
                                        ((Cases::kind == case_kind::chan) + ... + 0) == 1 &&
                                        ((Cases::kind == case_kind::otherwise) || ...);

/// The earliest time limit, and its case. on_default counts as a limit that has passed.
struct select_limit {
  std::int64_t deadline_ns = no_deadline;
  std::size_t index = select_timed_out;
  template <class Case>
  void look_at(const Case& c, std::size_t i) {
    if constexpr (Case::kind == case_kind::otherwise) {
      deadline_ns = 0;
      index = i;
    } else if constexpr (Case::kind == case_kind::timeout) {
      if (index != select_timed_out && c.deadline_ns >= deadline_ns) return;
      deadline_ns = c.deadline_ns;
      index = i;
    }
  }
};

}  // namespace detail

/// Does one of the cases and returns its index. If no case can ever happen, it waits for ever.
/// Throws channel_error if the chosen case sends to a closed channel, and whatever its function
/// throws.
template <class... Cases>
  requires(requires { std::remove_cvref_t<Cases>::kind; } && ...)
std::size_t select(Cases&&... cases) {
  static_assert(((std::remove_cvref_t<Cases>::kind == detail::case_kind::otherwise) + ... + 0) <= 1,
                "select: at most one on_default");
  constexpr std::size_t n = sizeof...(Cases);
  std::array<detail::select_case, n> table;
  detail::select_limit limit;
  std::size_t at = 0;
  std::size_t chosen;
  try {
    ((limit.look_at(cases, at), cases.prepare(table[at]), ++at), ...);
    if constexpr (detail::one_and_default<std::remove_cvref_t<Cases>...>) {
      chosen = detail::select_one(table[1 - limit.index]) ? 1 - limit.index : limit.index;
    } else {
      chosen = detail::select_cases(table.data(), n, limit.deadline_ns);
      if (chosen == detail::select_timed_out) chosen = limit.index;
    }
  } catch (...) {
    (cases.not_done(), ...);
    throw;
  }
  at = 0;
  ((at++ == chosen ? void() : cases.not_done()), ...);
  at = 0;
  ((at == chosen ? cases.done(table[at].ok) : void(), ++at), ...);
  return chosen;
}

/// A case of any kind, for a select over a std::vector of them. It keeps its channel alive. It can
/// be moved but not copied: fill the vector with push_back, not from a list in braces.
class any_case {
 public:
  template <class Case>
    requires(!std::is_lvalue_reference_v<Case> && requires { Case::kind; })
  any_case(Case&& c) : case_(new holder<std::remove_cvref_t<Case>>(std::forward<Case>(c))) {}
  any_case(any_case&& other) noexcept : case_(std::exchange(other.case_, nullptr)) {}
  any_case& operator=(any_case&& other) noexcept {
    any_case old = std::move(other);
    std::swap(case_, old.case_);
    return *this;
  }
  ~any_case() { delete case_; }

 private:
  friend GOFER_API std::size_t select(std::span<any_case> cases);

  struct base {
    virtual ~base() = default;
    virtual void prepare(detail::select_case& c) = 0;
    virtual void done(bool ok) = 0;
    virtual void not_done() = 0;
    virtual void look_at(detail::select_limit& limit, std::size_t i) const = 0;
  };
  template <class Case>
  struct holder final : base {
    explicit holder(Case&& c) : value(std::move(c)) {
      detail::select_case keep;
      value.prepare(keep);
      value.not_done();
      if (keep.chan != nullptr) {
        detail::chan_retain(keep.chan);
        kept = keep.chan;
      }
    }
    ~holder() override {
      if (kept != nullptr) detail::chan_release(kept);
    }
    void prepare(detail::select_case& c) override { value.prepare(c); }
    void done(bool ok) override { value.done(ok); }
    void not_done() override { value.not_done(); }
    void look_at(detail::select_limit& limit, std::size_t i) const override {
      limit.look_at(value, i);
    }
    Case value;
    detail::chan_core* kept = nullptr;
  };
  base* case_;
};

/// The same over cases that are put together at run time (Go's reflect.Select). They may be used
/// again; a value given to on_send as an rvalue must live until then.
GOFER_API std::size_t select(std::span<any_case> cases);
/// The same for a std::vector of cases, which may be a temporary.
template <class Cases>
requires std::is_constructible_v<std::span<any_case>, Cases&> std::size_t select(Cases&& cases) {
  return select(std::span<any_case>(cases));
}

}  // namespace gofer
