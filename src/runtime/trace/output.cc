#include "runtime/trace/output.h"

#include <cerrno>

#include "os/clock.h"
#include "os/socket.h"
#include "runtime/trace/events.h"

namespace gofer::internal::tracer {

constinit atomic<int64_t> longest_standstill_ns{5'000'000'000};

int Output::open(int fd, bool owned, Patience patience) {
  *this = Output{};
  fd_ = fd;
  owned_ = owned;
  patience_ = patience;
  if (const int error = os::identify(fd, &id_); error != 0) return -error;
  type_ = os::file_type(fd);
  const int error = write_header([](int64_t) { return int64_t{0}; });
  if (error != 0 && error != ETIMEDOUT) return error;
  off_t size;
  off_t position;
  if (os::measure(fd, &size, &position) == 0) begin_ = position - written_;
  mark_complete();
  return 0;
}

int Output::write(const void* bytes, size_t size) {
  const int error = write_header(patience_);
  return error != 0 ? error : write_all(bytes, size, patience_);
}

// What of it has not been written.
int Output::write_header(Patience patience) {
  constexpr auto whole = static_cast<int64_t>(sizeof header);
  if (written_ >= whole) return 0;
  return write_all(header + written_, static_cast<size_t>(whole - written_), patience);
}

int Output::write_all(const void* bytes, size_t size, Patience patience) {
  const auto* at = static_cast<const char*>(bytes);
  int64_t since_ns = os::now_ns();  // when it took something last
  bool refused = false;
  while (size != 0) {
    if (const int error = wait_until_writable(since_ns, refused, patience); error != 0) {
      return error;
    }
    if (!is_same_file()) return EBADF;
    const ssize_t n = write_some(at, size);
    refused = n == -EAGAIN;
    if (refused || n == -EINTR) continue;
    if (n <= 0) return n == 0 ? EIO : static_cast<int>(-n);
    at += n;
    size -= static_cast<size_t>(n);
    written_ += n;
    since_ns = os::now_ns();
  }
  return 0;
}

// refused: it was said to be writable, and was not. A descriptor with an error counts as writable:
// the write will tell.
int Output::wait_until_writable(int64_t since_ns, bool refused, Patience patience) const {
  constexpr int look_again_ms = 20;
  if (type_ == os::FileType::disk && !refused) return 0;
  pollfd one{fd_, POLLOUT, 0};
  if (!refused && os::poll(&one, 1, 0) > 0) return 0;
  for (;;) {
    if (patience(since_ns) <= os::now_ns()) return ETIMEDOUT;
    if (refused) {
      os::sleep_ns(1'000'000);
      return 0;
    }
    const int n = os::poll(&one, 1, look_again_ms);
    if (n > 0 || (n < 0 && n != -EINTR)) return 0;
  }
}

// A pipe that takes anything takes 4096 bytes (PIPE_BUF).
ssize_t Output::write_some(const char* bytes, size_t size) const {
  constexpr size_t atomic_size = 4096;
  switch (type_) {
    case os::FileType::disk:
      return os::write(fd_, bytes, size);
    case os::FileType::socket:
      return os::send_now(fd_, bytes, size);
    default:
      return os::write(fd_, bytes, size < atomic_size ? size : atomic_size);
  }
}

bool Output::is_same_file() const {
  os::FileId now;
  return os::identify(fd_, &now) == 0 && now == id_;
}

void Output::cut_incomplete() {
  if (complete_ == written_ || begin_ < 0 || !is_same_file()) return;
  off_t size;
  off_t position;
  if (os::measure(fd_, &size, &position) != 0) return;
  if (position != begin_ + written_ || size != position) return;  // others write there, too
  os::truncate(fd_, begin_ + complete_);
}

void Output::close() {
  if (owned_ && is_same_file()) os::close(fd_);
  fd_ = -1;
}

}  // namespace gofer::internal::tracer
