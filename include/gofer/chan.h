// Channels: how goroutines and threads hand each other values.
//
//   gofer::chan<int> jobs(64);                  // buffered; chan<int> c(0) is unbuffered
//   gofer::go([jobs] { for (int j : jobs) work(j); });
//   jobs.send(1);
//   jobs.close();                               // the loop above ends when all is received
//
// A chan is a handle: copies stand for the same channel, which lives as long as one of them. A
// default-constructed handle is Go's nil channel: sending and receiving block for ever, and in a
// select its cases are never ready.
//
// Waiters are served in the order in which they arrived, and a value goes directly from a waiting
// sender to a waiting receiver. Everything works in goroutines and in foreign threads (threads that
// are not the runtime's).
#pragma once

#include <gofer/detail/chan_core.h>

#include <cstddef>
#include <iterator>
#include <new>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace gofer {

class context;

/// Thrown where Go panics: a send on a closed channel, the close of a closed or nil channel.
class GOFER_API channel_error : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {

[[noreturn]] GOFER_API void throw_close_of(bool nil);

/// A counted handle of a channel, with the operations that both sides have.
class chan_handle {
 public:
  chan_handle() = default;
  chan_handle(const chan_handle& other) noexcept : core_(other.core_) {
    if (core_ != nullptr) chan_retain(core_);
  }
  chan_handle(chan_handle&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  chan_handle& operator=(chan_handle other) noexcept {
    std::swap(core_, other.core_);
    return *this;
  }
  ~chan_handle() {
    if (core_ != nullptr) chan_release(core_);
  }

  /// The number of values that are buffered now.
  std::size_t len() const noexcept { return chan_len(core_); }
  std::size_t cap() const noexcept { return chan_cap(core_); }
  /// True if the channel is closed and nothing is left to be received.
  bool closed() const noexcept { return chan_closed(core_); }
  /// False for Go's nil channel.
  explicit operator bool() const noexcept { return core_ != nullptr; }
  /// True if both are handles of the same channel.
  friend bool operator==(const chan_handle& a, const chan_handle& b) { return a.core_ == b.core_; }

  chan_core* core() const noexcept { return core_; }

 protected:
  explicit chan_handle(chan_core* core) : core_(core) {}

 private:
  chan_core* core_ = nullptr;
};

/// A value on its way out of a channel.
template <class T>
class recv_place {
 public:
  recv_place() = default;
  recv_place(const recv_place&) = delete;
  recv_place& operator=(const recv_place&) = delete;
  void* get() { return &bytes_; }
  /// Called once, after something was received. If the move throws, the value goes back to the
  /// channel.
  std::optional<T> take(chan_core* core) {
    auto* stored = std::launder(reinterpret_cast<stored_t<T>*>(&bytes_));
    if constexpr (stored_inline<T>) {
      struct guard {
        T* value;
        ~guard() { value->~T(); }
      } g{stored};
      return std::optional<T>(std::move(*stored));
    } else {
      struct guard {
        chan_node<T>* node;
        ~guard() { delete node; }
      } g{*stored};
      try {
        return std::optional<T>(std::move_if_noexcept(g.node->value));
      } catch (...) {
        chan_give_back(core, std::exchange(g.node, nullptr));
        throw;
      }
    }
  }

 private:
  alignas(stored_t<T>) std::byte bytes_[sizeof(stored_t<T>)];
};

/// A value on its way into a channel. The caller's object keeps it until it is sent, or gets it
/// back.
template <class T>
class send_place {
 public:
  explicit send_place(T& value) : value_(&value) {
    if constexpr (!stored_inline<T>) node_ = new chan_node<T>(std::move_if_noexcept(value));
  }
  send_place(const send_place&) = delete;
  send_place& operator=(const send_place&) = delete;
  ~send_place() {
    if constexpr (!stored_inline<T>) {
      if (node_ == nullptr) return;
      if constexpr (std::is_nothrow_move_constructible_v<T>) {
        value_->~T();
        ::new (static_cast<void*>(value_)) T(std::move(node_->value));
      } else if constexpr (!std::is_copy_constructible_v<T> && std::is_move_assignable_v<T>) {
        try {
          *value_ = std::move(node_->value);
        } catch (...) {  // as good as it gets with a move that throws and no copy
        }
      }
      delete node_;
    }
  }
  void* get() {
    if constexpr (stored_inline<T>) {
      return value_;
    } else {
      return &node_;
    }
  }
  void sent() { node_ = nullptr; }

 private:
  T* value_;
  chan_node<T>* node_ = nullptr;
};

template <class T>
bool send_until(chan_core* core, T& value, std::int64_t deadline_ns) {
  send_place<T> place(value);
  const chan_result r = chan_send(core, place.get(), deadline_ns);
  if (r == chan_result::closed) throw_send_on_closed();
  if (r != chan_result::ok) return false;
  place.sent();
  return true;
}

template <class T>
std::optional<T> recv_until(chan_core* core, std::int64_t deadline_ns) {
  recv_place<T> place;
  if (chan_recv(core, place.get(), deadline_ns) != chan_result::ok) return std::nullopt;
  return place.take(core);
}

template <class U, class T>
concept loses_fraction_as =
    std::is_floating_point_v<std::remove_cvref_t<U>> && std::is_integral_v<T>;

/// What a channel can carry. T may still be incomplete, as in struct node { chan<node> next; }.
template <class T>
concept chan_value = std::is_object_v<T> && !std::is_const_v<T> && !std::is_volatile_v<T>;

/// One value of a range-for over a channel.
template <class T>
class recv_iterator {
 public:
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  recv_iterator() = default;
  explicit recv_iterator(chan_core* core) : core_(core) { ++*this; }
  T& operator*() const { return *value_; }
  recv_iterator& operator++() {
    // Constructed, not assigned: T needs no assignment, and a move less can throw.
    value_.~optional();
    try {
      ::new (&value_) std::optional<T>(recv_until<T>(core_, no_deadline));
    } catch (...) {
      ::new (&value_) std::optional<T>();
      throw;
    }
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const recv_iterator& i, std::default_sentinel_t) { return !i.value_; }

 private:
  chan_core* core_ = nullptr;
  mutable std::optional<T> value_;
};

/// The operations of a handle that receives.
template <class Self, class T>
class recv_side {
 public:
  /// Waits for a value. The result is empty once the channel is closed and everything in it was
  /// received.
  std::optional<T> recv() const { return detail::recv_until<T>(self(), no_deadline); }
  /// The result is also empty if the context is done first; the context's err() then says so.
  [[nodiscard]] std::optional<T> recv(const context& ctx) const;
  /// Does not wait. The result is empty if there is no value now or the channel is closed (see
  /// closed()).
  [[nodiscard]] std::optional<T> try_recv() const { return detail::recv_until<T>(self(), 0); }
  /// The result is also empty if the time is over.
  template <detail::duration_like D>
  [[nodiscard]] std::optional<T> recv_for(D d) const {
    return detail::recv_until<T>(self(), deadline_after(d));
  }
  template <detail::time_point_like Time>
  [[nodiscard]] std::optional<T> recv_until(Time t) const {
    return detail::recv_until<T>(self(), deadline_at(t));
  }

  /// A range of the values that are received until the channel is closed. Each value is received
  /// when the loop reaches it.
  recv_iterator<T> begin() const { return recv_iterator<T>(self()); }
  std::default_sentinel_t end() const { return {}; }

 private:
  chan_core* self() const { return static_cast<const Self*>(this)->core(); }
};

/// The operations of a handle that sends.
template <class Self, class T>
class send_side {
 public:
  /// Waits until the value is received or buffered. Throws channel_error if the channel is closed
  /// before or during the wait, and whatever T's copy throws; the caller's object then keeps its
  /// value.
  void send(const T& value) const requires std::is_copy_constructible_v<T> {
    T copy(value);
    detail::send_until(self(), copy, no_deadline);
  }
  void send(T&& value) const { detail::send_until(self(), value, no_deadline); }
  /// Returns false if the context is done first; its err() says why.
  [[nodiscard]] bool send(const context& ctx, T value) const;
  /// Does not wait. Returns false if no receiver waits and the buffer has no room.
  [[nodiscard]] bool try_send(const T& value) const requires std::is_copy_constructible_v<T> {
    T copy(value);
    return detail::send_until(self(), copy, 0);
  }
  [[nodiscard]] bool try_send(T&& value) const { return detail::send_until(self(), value, 0); }
  /// Returns false if the time is over first.
  template <detail::duration_like D>
  [[nodiscard]] bool send_for(D d, const T& value) const requires std::is_copy_constructible_v<T> {
    T copy(value);
    return detail::send_until(self(), copy, deadline_after(d));
  }
  template <detail::duration_like D>
  [[nodiscard]] bool send_for(D d, T&& value) const {
    return detail::send_until(self(), value, deadline_after(d));
  }
  template <detail::time_point_like Time>
  [[nodiscard]] bool send_until(Time t,
                                const T& value) const requires std::is_copy_constructible_v<T> {
    T copy(value);
    return detail::send_until(self(), copy, deadline_at(t));
  }
  template <detail::time_point_like Time>
  [[nodiscard]] bool send_until(Time t, T&& value) const {
    return detail::send_until(self(), value, deadline_at(t));
  }

  // Otherwise chan<int>.send(3.7) would send 3.
  template <loses_fraction_as<T> U>
  void send(U value) const = delete;
  template <loses_fraction_as<T> U>
  bool send(const context& ctx, U value) const = delete;
  template <loses_fraction_as<T> U>
  bool try_send(U value) const = delete;
  template <detail::duration_like D, loses_fraction_as<T> U>
  bool send_for(D d, U value) const = delete;
  template <detail::time_point_like Time, loses_fraction_as<T> U>
  bool send_until(Time t, U value) const = delete;

  /// Closes the channel: receivers get the buffered values, then the end. Throws channel_error if
  /// the channel is already closed, or nil.
  void close() const {
    if (self() == nullptr || !chan_close(self())) throw_close_of(self() == nullptr);
  }

 private:
  chan_core* self() const { return static_cast<const Self*>(this)->core(); }
};

}  // namespace detail

/// A channel of T, an object type with a move constructor (use std::monostate if there is nothing
/// to send). A T of at most 128 bytes whose move does not throw is stored in the channel itself;
/// its move constructor must not block. Any other T is allocated on the heap while it is in the
/// channel.
template <detail::chan_value T>
class chan : public detail::chan_handle,
             public detail::recv_side<chan<T>, T>,
             public detail::send_side<chan<T>, T> {
 public:
  using value_type = T;
  /// The nil channel.
  chan() = default;
  /// Has room for `capacity` values. With 0 a sender waits for a receiver.
  explicit chan(std::size_t capacity)
      : chan_handle(detail::chan_new(capacity, &detail::chan_ops_of<T>::ops)) {
    static_assert(std::is_move_constructible_v<T>, "chan<T>: T needs a move constructor");
  }
};

/// The receiving side of a channel alone.
template <detail::chan_value T>
class recv_chan : public detail::chan_handle, public detail::recv_side<recv_chan<T>, T> {
 public:
  using value_type = T;
  recv_chan() = default;
  recv_chan(chan<T> c) noexcept : chan_handle(std::move(c)) {}
};

/// The sending side of a channel alone.
template <detail::chan_value T>
class send_chan : public detail::chan_handle, public detail::send_side<send_chan<T>, T> {
 public:
  using value_type = T;
  send_chan() = default;
  send_chan(chan<T> c) noexcept : chan_handle(std::move(c)) {}
};

/// make_chan<int>() and make_chan<int>(64), as Go spells it.
template <detail::chan_value T>
[[nodiscard]] chan<T> make_chan(std::size_t capacity = 0) {
  return chan<T>(capacity);
}

}  // namespace gofer
