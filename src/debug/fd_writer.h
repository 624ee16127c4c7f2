// A small buffered writer to a file descriptor, for every report that the process makes about
// itself: traces, fatal errors, dumps. It can also hand its text to a function, for reports that
// are collected.
//
// Invariants:
//  - It uses no malloc, no stdio stream and no lock, so it works in a signal handler and after a
//    heap corruption. The one libc function with a body of its own is vsnprintf. It allocates only
//    for floating point and for very wide fields, so keep both out of formats.
//  - Every call preserves errno, so a report can be made between a failed call and the look at its
//    errno.
//  - A report that cannot be written is dropped, because there is no other place for it.
//
// Rejected: dprintf and FILE streams (they lock and allocate); one write(2) per piece (the lines of
// two reporting threads would mix, while a line that fits in the buffer is written in one piece).
#pragma once

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace gofer::internal {

class FdWriter {
 public:
  using Sink = void (*)(void* argument, std::string_view text);

  explicit FdWriter(int fd) : fd_(fd) {}
  FdWriter(Sink sink, void* argument) : sink_(sink), argument_(argument) {}
  ~FdWriter() { flush(); }
  FdWriter(const FdWriter&) = delete;
  FdWriter& operator=(const FdWriter&) = delete;

  // Writes formatted text. One call writes at most `capacity` - 1 bytes; the rest is cut off. Text
  // of unknown length goes through write().
  void print(const char* format, ...) __attribute__((format(printf, 2, 3))) {
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    if (!try_format(format, args)) {
      flush();
      if (!try_format(format, again)) used_ = capacity - 1;  // vsnprintf filled all but its NUL
    }
    va_end(again);
    va_end(args);
  }

  void write(std::string_view text) {
    while (!text.empty()) {
      if (used_ == capacity) flush();
      const size_t n = text.size() < capacity - used_ ? text.size() : capacity - used_;
      std::memcpy(buffer_ + used_, text.data(), n);
      used_ += n;
      text.remove_prefix(n);
    }
  }

  void flush() {
    if (sink_ != nullptr) {
      sink_(argument_, {buffer_, used_});
      used_ = 0;
      return;
    }
    const int saved_errno = errno;
    const char* p = buffer_;
    size_t left = used_;
    while (left > 0) {
      const ssize_t n = ::write(fd_, p, left);
      if (n > 0) {
        p += n;
        left -= static_cast<size_t>(n);
      } else if (n == 0 || !may_go_on(errno)) {
        break;
      }
    }
    used_ = 0;
    errno = saved_errno;
  }

  static constexpr size_t capacity = 1024;

 private:
  bool try_format(const char* format, va_list args) {
    const int saved_errno = errno;
    const int n = vsnprintf(buffer_ + used_, capacity - used_, format, args);
    errno = saved_errno;
    if (n < 0) return true;  // a bad format: nothing to add, nothing gained by a second try
    if (static_cast<size_t>(n) >= capacity - used_) return false;
    used_ += static_cast<size_t>(n);
    return true;
  }

  // Another process may have made the descriptor non-blocking (a shared terminal or pipe). So wait
  // for room, but not for ever, because the reader may be gone or stopped.
  bool may_go_on(int error) const {
    if (error == EINTR) return true;
    if (error != EAGAIN) return false;
    constexpr int patience_ms = 1000;
    pollfd room{fd_, POLLOUT, 0};
    const int n = poll(&room, 1, patience_ms);
    return n > 0 || (n < 0 && errno == EINTR);
  }

  const int fd_ = -1;
  const Sink sink_ = nullptr;
  void* const argument_ = nullptr;
  size_t used_ = 0;
  char buffer_[capacity];
};

}  // namespace gofer::internal
