// What chan.h and select.h share with the library: a channel without the type of its elements.
//
// An element travels as its `stored` form: the element itself if it is small and its move cannot
// throw, else a pointer to a node on the heap. So nothing that can throw, and nothing large,
// happens under a channel's lock.
#pragma once

#include <gofer/detail/config.h>
#include <gofer/detail/deadline.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace gofer::detail {

struct chan_core;

struct chan_ops {
  std::size_t size;
  std::size_t align;
  bool trivial;                                 // move is a copy of the bytes
  void (*move)(void* to, void* from) noexcept;  // constructs *to; *from is still to be destroyed
  void (*destroy)(void* stored) noexcept;       // nullptr: nothing to do
  void (*discard)(void* stored) noexcept;       // for an element that was never received
};

inline constexpr std::size_t max_inline_element = 128;

template <class T>
inline constexpr bool stored_inline = std::is_nothrow_move_constructible_v<T> &&
                                      sizeof(T) <= max_inline_element &&
                                      alignof(T) <= alignof(std::max_align_t);

/// An element that travels by its address. The link is for the channel.
template <class T>
struct chan_node {
  void* link = nullptr;
  T value;
  template <class... Args>
  explicit chan_node(Args&&... args) : value(std::forward<Args>(args)...) {}
};

template <class T>
using stored_t = std::conditional_t<stored_inline<T>, T, chan_node<T>*>;

template <class T>
struct chan_ops_of {
  using stored = stored_t<T>;
  static void move(void* to, void* from) noexcept {
    ::new (to) stored(std::move(*static_cast<stored*>(from)));
  }
  static void destroy(void* p) noexcept { static_cast<stored*>(p)->~stored(); }
  static void discard(void* p) noexcept {
    if constexpr (stored_inline<T>) {
      destroy(p);
    } else {
      delete *static_cast<stored*>(p);
    }
  }
  static constexpr chan_ops ops{
      sizeof(stored),
      alignof(stored),
      std::is_trivially_copyable_v<stored>,
      &move,
      std::is_trivially_destructible_v<stored> ? nullptr : &destroy,
      stored_inline<T>&& std::is_trivially_destructible_v<T> ? nullptr : &discard};
};

enum class chan_result { ok, closed, would_block, timed_out };

/// Throws std::bad_alloc, std::length_error.
GOFER_API chan_core* chan_new(std::size_t capacity, const chan_ops* ops);
GOFER_API void chan_retain(chan_core* c) noexcept;
GOFER_API void chan_release(chan_core* c) noexcept;

/// *value is moved from if the result is ok. With deadline 0 it does not block. c may be nullptr.
GOFER_API chan_result chan_send(chan_core* c, void* value, std::int64_t deadline_ns);
/// Constructs the stored form in *place if the result is ok.
GOFER_API chan_result chan_recv(chan_core* c, void* place, std::int64_t deadline_ns);
/// The receiver of a node could not take it: the node becomes the next one to be received.
GOFER_API void chan_give_back(chan_core* c, void* node) noexcept;
/// Returns false if the channel was closed already.
GOFER_API bool chan_close(chan_core* c);
GOFER_API std::size_t chan_len(const chan_core* c) noexcept;
GOFER_API std::size_t chan_cap(const chan_core* c) noexcept;
GOFER_API bool chan_closed(const chan_core* c) noexcept;
/// Drops the buffered elements.
GOFER_API void chan_clear(chan_core* c) noexcept;

struct select_case {
  chan_core* chan = nullptr;
  void* elem = nullptr;  // as for chan_send and chan_recv
  bool sends = false;
  bool ok = false;  // receive: got a value, channel not closed; send: not closed
};

inline constexpr std::size_t select_timed_out = static_cast<std::size_t>(-1);

[[noreturn]] GOFER_API void throw_send_on_closed();

/// The only case beside a default. Returns true if it was done.
inline bool select_one(select_case& c) {
  const chan_result r = c.sends ? chan_send(c.chan, c.elem, 0) : chan_recv(c.chan, c.elem, 0);
  if (r == chan_result::would_block) return false;
  if (c.sends && r == chan_result::closed) throw_send_on_closed();
  c.ok = r == chan_result::ok;
  return true;
}

/// Returns the index of the case that was done, or select_timed_out at the deadline (0: does not
/// block).
GOFER_API std::size_t select_cases(select_case* cases, std::size_t n, std::int64_t deadline_ns);

}  // namespace gofer::detail
