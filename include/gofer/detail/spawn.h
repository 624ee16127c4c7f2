// How a callable becomes a goroutine: for go.h and wait_group.h only.
//
// A goroutine's record has room for a small closure, so that `go` allocates nothing for the usual
// lambda. User code (copies, moves) builds the closure, and it may block or throw. Therefore a
// record is first taken, then filled, and only then shown to the scheduler.
#pragma once

#include <gofer/detail/config.h>
#include <gofer/detail/invoke.h>

#include <cstddef>
#include <new>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace gofer {

class wait_group;

/// Options of a goroutine.
struct go_options {
  /// Shown in reports and by this_goroutine::name(). Copied.
  std::string_view name{};
  /// Bytes of stack that the goroutine may use; rounded up. 0: the default (GOFER_STACK_SIZE, else
  /// 960 KiB). Only pages that are touched cost memory.
  std::size_t stack_size = 0;
};

namespace detail {

inline constexpr std::size_t closure_size = 64;
inline constexpr std::size_t closure_align = 16;

/// Takes a goroutine's record and returns the place of its closure. Throws std::bad_alloc.
GOFER_API void* new_goroutine(const go_options* options);
/// Gives back a record that was not started.
GOFER_API void discard_goroutine(void* closure) noexcept;
/// Makes the goroutine runnable. It calls `entry(closure)` and then ends.
GOFER_API void start_goroutine(void* closure, void (*entry)(void*)) noexcept;

/// True if goexit() is unwinding the calling goroutine: a catch (...) must then rethrow.
GOFER_API bool goroutine_exits() noexcept;

template <class F, class... Args>
struct bound {
  F f;
  std::tuple<Args...> args;
  void operator()() {
    std::apply([this](Args&... a) { detail::call(std::move(f), std::move(a)...); }, args);
  }
};

template <class F>
struct bound<F> {
  F f;
  void operator()() { detail::call(std::move(f)); }
};

/// Precedes the closure of a goroutine of a wait_group.
struct alignas(closure_align) member_head {
  wait_group* group;
  void (*body)(void*);  // runs and destroys the closure
};
/// The entry of such a goroutine. It calls done() when the body has returned, from the library's
/// own code: the goroutine or thread that waits may then unload the code of the body.
GOFER_API void enter_member(void* place);

template <class Closure>
constexpr bool fits_record(std::size_t room) {
  return sizeof(Closure) <= room && alignof(Closure) <= closure_align;
}

// The guards also run when goexit() unwinds the goroutine.
template <class Closure>
void enter_small(void* place) {
  struct guard {
    Closure* closure;
    ~guard() { closure->~Closure(); }
  } g{std::launder(static_cast<Closure*>(place))};
  (*g.closure)();
}

template <class Closure>
void enter_large(void* place) {
  struct guard {
    Closure* closure;
    ~guard() { delete closure; }
  } g{*static_cast<Closure**>(place)};
  (*g.closure)();
}

struct record_guard {
  void* place;
  ~record_guard() {
    if (place != nullptr) discard_goroutine(place);
  }
  void* release() { return std::exchange(place, nullptr); }
};

// Always inlined, so that the return address of start_goroutine is in the function that the user
// wrote: reports show it as "created by". With a group, the goroutine is one of its members.
template <bool Member, class F, class... Args>
[[gnu::always_inline]] inline void spawn_as(const go_options* options, wait_group* group, F&& f,
                                            Args&&... args) {
  using closure = bound<std::decay_t<F>, std::decay_t<Args>...>;
  constexpr std::size_t head_size = Member ? sizeof(member_head) : 0;
  record_guard record{new_goroutine(options)};
  void* const place = static_cast<std::byte*>(record.place) + head_size;
  void (*entry)(void*);
  if constexpr (fits_record<closure>(closure_size - head_size)) {
    if constexpr (sizeof...(Args) == 0) {
      ::new (place) closure{std::forward<F>(f)};
    } else {
      ::new (place) closure{std::forward<F>(f), {std::forward<Args>(args)...}};
    }
    entry = &enter_small<closure>;
  } else {
    closure* heap;
    if constexpr (sizeof...(Args) == 0) {
      heap = new closure{std::forward<F>(f)};
    } else {
      heap = new closure{std::forward<F>(f), {std::forward<Args>(args)...}};
    }
    ::new (place)(closure*)(heap);
    entry = &enter_large<closure>;
  }
  if constexpr (Member) {
    ::new (record.place) member_head{group, entry};
    entry = &enter_member;
  }
  start_goroutine(record.release(), entry);
}

template <class F, class... Args>
[[gnu::always_inline]] inline void spawn(const go_options* options, F&& f, Args&&... args) {
  spawn_as<false>(options, nullptr, std::forward<F>(f), std::forward<Args>(args)...);
}

template <class F, class... Args>
[[gnu::always_inline]] inline void spawn_member(const go_options* options, wait_group* group, F&& f,
                                                Args&&... args) {
  spawn_as<true>(options, group, std::forward<F>(f), std::forward<Args>(args)...);
}

}  // namespace detail
}  // namespace gofer
