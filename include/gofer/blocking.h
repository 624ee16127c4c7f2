// Calls that block the thread.
//
// A goroutine may make any call that blocks its thread, such as a read from a pipe or a call of a
// database client. The runtime notices that the thread is blocked and runs other goroutines
// meanwhile. A goroutine that announces the call makes this quicker:
//
//   const ssize_t n = gofer::blocking([&] { return pread(fd, buffer, size, 0); });
//
// An announced call that returns at once costs about as much as the bare call. If it does not
// return, the processor goes to another goroutine after some tens of microseconds. For a call that
// surely takes long, gofer::blocking(gofer::handoff, f) gives the processor away before the call
// begins.
//
// The function runs on the calling thread, and so does everything it calls. Afterwards the
// goroutine may continue in another thread; it still finds the errno of the call. GOMAXPROCS does
// not limit such calls: any number of them run at once, each with a thread of its own, unless
// set_max_blocking sets a limit.
#pragma once

#include <gofer/detail/config.h>
#include <gofer/detail/invoke.h>
#include <gofer/detail/word.h>

#include <cstdint>
#include <utility>

namespace gofer {

namespace detail {

class blocking_call {
 public:
  GOFER_API explicit blocking_call(bool at_once) noexcept;
  GOFER_API ~blocking_call();
  blocking_call(const blocking_call&) = delete;
  blocking_call& operator=(const blocking_call&) = delete;

 private:
  std::uint64_t before_ = 0;
};

/// A place among the calls that may run at once. The goroutine is parked until it gets one.
class blocking_place {
 public:
  blocking_place() {
    if (limit.load(order::relaxed) != 0) [[unlikely]]
      taken_ = take();
  }
  ~blocking_place() {
    if (taken_) [[unlikely]]
      give_back();
  }
  blocking_place(const blocking_place&) = delete;
  blocking_place& operator=(const blocking_place&) = delete;

  GOFER_API static word<int> limit;  // 0: none

 private:
  GOFER_API static bool take();
  GOFER_API static void give_back();
  bool taken_ = false;
};

}  // namespace detail

/// Sets how many calls in blocking() may run at once and returns the old setting. n < 0 only
/// returns the setting. 0, the default, means no limit. A goroutine beyond the limit is parked,
/// without a thread, until its turn comes; turns are given in the order of arrival. A call inside
/// of another one needs no further place. Calls of foreign threads are not counted.
GOFER_API int set_max_blocking(int n);

struct handoff_t {
  explicit handoff_t() = default;
};
/// Selects the form of blocking() that gives the processor away at once.
inline constexpr handoff_t handoff{};

/// Calls f, which may block the thread, and returns what it returns. In a foreign thread it does
/// nothing else.
template <class F>
decltype(auto) blocking(F&& f) {
  detail::blocking_place place;
  detail::blocking_call call(false);
  return detail::call(std::forward<F>(f));
}

/// The same for a call that surely takes long.
template <class F>
decltype(auto) blocking(handoff_t, F&& f) {
  detail::blocking_place place;
  detail::blocking_call call(true);
  return detail::call(std::forward<F>(f));
}

}  // namespace gofer
