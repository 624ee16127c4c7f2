// fd: a descriptor that goroutines wait for without holding a thread.
//
//   gofer::fd in(fds[0]);                       // a socket, pipe, eventfd, timerfd, inotify, tty…
//   char bytes[4096];
//   while (std::size_t n = in.read(bytes)) use(bytes, n);
//
// Every call that has to wait parks the goroutine; in a foreign thread it blocks the thread. Each
// call has four forms: it throws std::system_error or sets an error_code, as in std::filesystem,
// and each of these may take a context first, which ends the call when it is done. A deadline
// belongs to the descriptor, not to one call: it ends every call that waits there then or later.
//
// Goroutines and threads may call one descriptor at the same time. Calls that read take turns, and
// so do calls that write; the bytes of one write_all are never mixed with those of another write.
//
// None of them raises SIGPIPE: they fail with std::errc::broken_pipe. The kernel always reports
// files on disk as ready, so calls on them go through gofer::blocking().
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

/// A copyable handle, like a channel. The descriptor is closed with the last of its handles, or
/// earlier by close().
class GOFER_API fd {
 public:
  /// Has no descriptor: every call fails with io_errc::closed.
  fd() noexcept = default;
  /// Owns `native` from now on, even if it throws. Sets O_NONBLOCK, which duplicates share. If a
  /// library keeps the descriptor and closes it itself, pass dup(native).
  explicit fd(int native);
  fd(int native, std::error_code& ec) noexcept;
  fd(const fd& other) noexcept;
  fd(fd&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  fd& operator=(fd other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~fd();

  /// True if it has a descriptor that is not closed.
  explicit operator bool() const noexcept { return native_handle() >= 0; }
  /// The descriptor, for calls that this class does not have; -1 if there is none. The fd still
  /// owns it.
  int native_handle() const noexcept;

  /// Waits for bytes and takes those that are there, at most to.size(). Returns 0 at the end of the
  /// input.
  [[nodiscard]] std::size_t read(buffer to) const;
  [[nodiscard]] std::size_t read(buffer to, std::error_code& ec) const noexcept;
  [[nodiscard]] std::size_t read(const context& ctx, buffer to) const;
  [[nodiscard]] std::size_t read(const context& ctx, buffer to, std::error_code& ec) const noexcept;

  /// Fills `to`. Fails with io_errc::unexpected_end if the input ends before. Returns the number of
  /// bytes read, also if the call failed.
  std::size_t read_full(buffer to) const;
  std::size_t read_full(buffer to, std::error_code& ec) const noexcept;
  std::size_t read_full(const context& ctx, buffer to) const;
  std::size_t read_full(const context& ctx, buffer to, std::error_code& ec) const noexcept;

  /// Waits for room and writes as much as fits.
  [[nodiscard]] std::size_t write(const_buffer from) const;
  [[nodiscard]] std::size_t write(const_buffer from, std::error_code& ec) const noexcept;
  [[nodiscard]] std::size_t write(const context& ctx, const_buffer from) const;
  [[nodiscard]] std::size_t write(const context& ctx, const_buffer from,
                                  std::error_code& ec) const noexcept;

  /// Writes everything. Returns the number of bytes written, also if the call failed.
  std::size_t write_all(const_buffer from) const;
  std::size_t write_all(const_buffer from, std::error_code& ec) const noexcept;
  std::size_t write_all(const context& ctx, const_buffer from) const;
  std::size_t write_all(const context& ctx, const_buffer from, std::error_code& ec) const noexcept;

  /// The same for a temporary such as a std::string, which lives until the call returns.
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

  /// Waits until a read, or a write, would not have to wait. Use it before another library's call
  /// on the descriptor if that call must not block.
  void wait_readable() const;
  void wait_readable(std::error_code& ec) const noexcept;
  void wait_readable(const context& ctx) const;
  void wait_readable(const context& ctx, std::error_code& ec) const noexcept;
  void wait_writable() const;
  void wait_writable(std::error_code& ec) const noexcept;
  void wait_writable(const context& ctx) const;
  void wait_writable(const context& ctx, std::error_code& ec) const noexcept;

  /// Once the deadline has passed, all calls fail with io_errc::deadline_exceeded, including those
  /// that wait at that time. The deadline is a point in time or a duration from now. One in the
  /// past takes effect at once; time_point::max() removes it. Files on disk cannot have one
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

  /// Ends all calls on the descriptor, which fail with io_errc::closed, waits until they have
  /// returned, and closes it. Does nothing if it is closed already. Never fails, because a caller
  /// could not act on an error of close(2) any more.
  void close() const noexcept;

  friend bool operator==(const fd&, const fd&) = default;

 protected:
  /// The state of the descriptor of `handle`, for the rest of the library.
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
