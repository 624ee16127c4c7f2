// fd: a descriptor that goroutines wait for without holding a thread.
//
//   gofer::fd in(fds[0]);                       // a socket, pipe, eventfd, timerfd, inotify, tty…
//   char bytes[4096];
//   while (std::size_t n = in.read(bytes)) use(bytes, n);
//
// Every call that has to wait parks the goroutine; in a foreign thread it blocks the thread. Each
// comes in four forms: it throws std::system_error, or sets an error_code, as in std::filesystem;
// and it may take a context first, whose end ends the call. A deadline, of the descriptor and not
// of a call, ends every call that waits there then or later.
//
// Calls on one descriptor may come from anywhere at the same time. Those that read take turns, and
// so do those that write; write_all is not interrupted by the bytes of another.
//
// SIGPIPE is not raised by any of them: they fail with std::errc::broken_pipe. Files on disk are
// always ready as far as the kernel is concerned: their calls go through gofer::blocking().
#pragma once

#include <gofer/buffer.h>
#include <gofer/context.h>
#include <gofer/detail/config.h>
#include <gofer/detail/deadline.h>
#include <gofer/io_error.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <utility>

namespace gofer {

namespace internal {
struct FdState;
}

/// A copyable handle, as a channel is: the descriptor is closed with the last of its handles, or by
/// close() before that.
class GOFER_API fd {
 public:
  /// No descriptor: every call fails with io_errc::closed.
  fd() noexcept = default;
  /// Owns `native` from now on, also if it throws. Sets O_NONBLOCK, which duplicates share. For a
  /// descriptor that a library keeps and closes itself, give it dup(native).
  explicit fd(int native);
  fd(int native, std::error_code& ec) noexcept;
  fd(const fd& other) noexcept;
  fd(fd&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  fd& operator=(fd other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~fd();

  /// Whether it has a descriptor that is not closed.
  explicit operator bool() const noexcept { return native_handle() >= 0; }
  /// For calls that this class does not have; -1 if there is none. The fd still owns the
  /// descriptor.
  int native_handle() const noexcept;

  /// Waits for bytes and takes what is there, at most to.size(). 0: the end of the input.
  [[nodiscard]] std::size_t read(buffer to) const;
  [[nodiscard]] std::size_t read(buffer to, std::error_code& ec) const noexcept;
  [[nodiscard]] std::size_t read(const context& ctx, buffer to) const;
  [[nodiscard]] std::size_t read(const context& ctx, buffer to, std::error_code& ec) const noexcept;

  /// Fills `to`; io_errc::unexpected_end if the input ends before. The count is what was read, also
  /// if the call failed.
  std::size_t read_full(buffer to) const;
  std::size_t read_full(buffer to, std::error_code& ec) const noexcept;
  std::size_t read_full(const context& ctx, buffer to) const;
  std::size_t read_full(const context& ctx, buffer to, std::error_code& ec) const noexcept;

  /// Waits for room and writes what fits.
  [[nodiscard]] std::size_t write(const_buffer from) const;
  [[nodiscard]] std::size_t write(const_buffer from, std::error_code& ec) const noexcept;
  [[nodiscard]] std::size_t write(const context& ctx, const_buffer from) const;
  [[nodiscard]] std::size_t write(const context& ctx, const_buffer from,
                                  std::error_code& ec) const noexcept;

  /// Writes everything. The count is what was written, also if the call failed.
  std::size_t write_all(const_buffer from) const;
  std::size_t write_all(const_buffer from, std::error_code& ec) const noexcept;
  std::size_t write_all(const context& ctx, const_buffer from) const;
  std::size_t write_all(const context& ctx, const_buffer from, std::error_code& ec) const noexcept;

  /// The same with a temporary std::string or the like, which lives until the call returns.
  template <detail::owns_bytes R, class... ErrorCode>
  [[nodiscard]] std::size_t write(R&& from, ErrorCode&... ec) const {
    return write(const_buffer(std::ranges::data(from), std::ranges::size(from)), ec...);
  }
  template <detail::owns_bytes R, class... ErrorCode>
  [[nodiscard]] std::size_t write(const context& ctx, R&& from, ErrorCode&... ec) const {
    return write(ctx, const_buffer(std::ranges::data(from), std::ranges::size(from)), ec...);
  }
  template <detail::owns_bytes R, class... ErrorCode>
  std::size_t write_all(R&& from, ErrorCode&... ec) const {
    return write_all(const_buffer(std::ranges::data(from), std::ranges::size(from)), ec...);
  }
  template <detail::owns_bytes R, class... ErrorCode>
  std::size_t write_all(const context& ctx, R&& from, ErrorCode&... ec) const {
    return write_all(ctx, const_buffer(std::ranges::data(from), std::ranges::size(from)), ec...);
  }

  /// read() and write() with several buffers, filled or emptied in turn.
  [[nodiscard]] std::size_t readv(std::span<const buffer> to) const;
  [[nodiscard]] std::size_t readv(std::span<const buffer> to, std::error_code& ec) const noexcept;
  [[nodiscard]] std::size_t readv(const context& ctx, std::span<const buffer> to) const;
  [[nodiscard]] std::size_t readv(const context& ctx, std::span<const buffer> to,
                                  std::error_code& ec) const noexcept;
  [[nodiscard]] std::size_t writev(std::span<const const_buffer> from) const;
  [[nodiscard]] std::size_t writev(std::span<const const_buffer> from,
                                   std::error_code& ec) const noexcept;
  [[nodiscard]] std::size_t writev(const context& ctx, std::span<const const_buffer> from) const;
  [[nodiscard]] std::size_t writev(const context& ctx, std::span<const const_buffer> from,
                                   std::error_code& ec) const noexcept;

  /// Waits until a read, or a write, would not have to wait: before the calls of other libraries on
  /// the descriptor, which must not block.
  void wait_readable() const;
  void wait_readable(std::error_code& ec) const noexcept;
  void wait_readable(const context& ctx) const;
  void wait_readable(const context& ctx, std::error_code& ec) const noexcept;
  void wait_writable() const;
  void wait_writable(std::error_code& ec) const noexcept;
  void wait_writable(const context& ctx) const;
  void wait_writable(const context& ctx, std::error_code& ec) const noexcept;

  /// From then on calls fail with io_errc::deadline_exceeded, and those that wait do so, too; a
  /// time in the past: at once. A point in time, or how long from now on; time_point::max(): no
  /// deadline any more. Files on disk have none
  /// (std::errc::operation_not_supported).
  template <class Time>
  void set_deadline(Time t) const {
    set_deadlines(true, true, to_deadline(t));
  }
  template <class Time>
  void set_read_deadline(Time t) const {
    set_deadlines(true, false, to_deadline(t));
  }
  template <class Time>
  void set_write_deadline(Time t) const {
    set_deadlines(false, true, to_deadline(t));
  }

  /// Ends all calls on it, which fail with io_errc::closed, waits until they have, and closes the
  /// descriptor. Does nothing if it is closed already. Never fails: what close(2) says is too late
  /// to act on.
  void close() const noexcept;

  friend bool operator==(const fd&, const fd&) = default;

 protected:
  /// The descriptor's state of `handle`, for the rest of the library.
  explicit fd(internal::FdState* handle) noexcept : state_(handle) {}
  internal::FdState* state() const noexcept { return state_; }

 private:
  template <class Clock, class Duration>
  static std::int64_t to_deadline(std::chrono::time_point<Clock, Duration> t) {
    return detail::deadline_at(t);
  }
  template <class Rep, class Period>
  static std::int64_t to_deadline(std::chrono::duration<Rep, Period> d) {
    return detail::deadline_after(d);
  }
  void set_deadlines(bool reads, bool writes, std::int64_t deadline_ns) const;

  internal::FdState* state_ = nullptr;
};

}  // namespace gofer
