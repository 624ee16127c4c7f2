// Reading and writing: try, wait if the kernel has nothing, try again.
//
// A TCP connection that gave fewer bytes than asked for is empty, so the next read waits for the
// event without trying first: one system call less for each request of a server. That is right as
// long as everything that comes later makes a new event. What can be there without one is an end or
// urgent data that came before the bytes were taken; the event that told of it is remembered
// (PollDesc::ended), and after that every read tries.
#include <gofer/blocking.h>
#include <gofer/fd.h>

#include <limits.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "io/fd_state.h"
#include "io/sigpipe.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/socket.h"
#include "runtime/process/process_state.h"
#include "sync/until_done.h"

namespace gofer {

using namespace internal;

static_assert(sizeof(buffer) == sizeof(iovec) && sizeof(const_buffer) == sizeof(iovec));

namespace internal {

FdState* open_fd(int native, FdKind kind, std::error_code& ec) noexcept {
  ec.clear();
  auto* s = new (std::nothrow) FdState(native, kind);
  int error = s == nullptr ? ENOMEM : 0;
  if (s != nullptr && kind != FdKind::file) {
    error = poll_open(native, s->poll);
    if (error == 0 && s->poll == nullptr) s->kind = FdKind::file;  // such as /dev/null
  }
  if (error == 0) return s;
  ec = system_error_code(error);
  delete s;
  return nullptr;
}

void close_fd(FdState* s) noexcept {
  if (s->closed.exchange(true, std::memory_order_seq_cst)) return;
  if (process.forked.load(relaxed)) {  // the waiters, epoll and the socket file are the parent's
    std::free(s->socket_file);
    os::close(s->native);
    return;
  }
  if (s->poll != nullptr) poll_close(s->poll);
  const std::scoped_lock lock_reading(s->reading);
  const std::scoped_lock lock_writing(s->writing);
  const std::scoped_lock lock_control(s->control);
  if (s->socket_file != nullptr) {
    os::unlink(s->socket_file);
    std::free(s->socket_file);
  }
  if (s->poll != nullptr) poll_free(s->poll, s->native);
  os::close(s->native);
}

void forget_fd(FdState* s) noexcept {
  if (s->closed.exchange(true, std::memory_order_seq_cst)) return;
  if (s->poll != nullptr) poll_close(s->poll);
  const std::scoped_lock lock_reading(s->reading);
  const std::scoped_lock lock_writing(s->writing);
  const std::scoped_lock lock_control(s->control);
  if (s->poll != nullptr) poll_free(s->poll, -1);
}

std::unique_lock<mutex> lock_io(mutex& m, const context* ctx, std::error_code& ec) noexcept {
  ec.clear();
  if (ctx == nullptr) return std::unique_lock(m);
  if (m.lock(*ctx)) return std::unique_lock(m, std::adopt_lock);
  ec = ctx->err();
  return {};
}

std::error_code check_io(FdState* s, IoSide side, const context* ctx) noexcept {
  if (s->closed.load(std::memory_order_acquire)) return io_errc::closed;
  if (ctx != nullptr) {
    if (const std::error_code done = ctx->err(); done) return done;
  }
  if (s->poll == nullptr) return {};
  const PollSide& half = side == IoSide::in ? s->poll->in : s->poll->out;
  const int64_t deadline = half.deadline_ns.load(relaxed);
  if (deadline != no_deadline && os::now_ns() >= deadline) {
    return io_errc::deadline_exceeded;
  }
  return {};
}

std::error_code wait_io(FdState* s, IoSide side, const context* ctx) noexcept {
  Closable* done = ctx != nullptr ? until_done(*ctx).done : nullptr;
  switch (poll_wait(s->poll, side == IoSide::in ? s->poll->in : s->poll->out, done)) {
    case PollEnd::ready:
      break;
    case PollEnd::closed:
      return io_errc::closed;
    case PollEnd::timed_out:
      return io_errc::deadline_exceeded;
    case PollEnd::cancelled:
      return ctx->err();
    case PollEnd::lost:
      return system_error_code(EBADF);
    case PollEnd::failed:
      return system_error_code(poll_failure());
  }
  return {};
}

}  // namespace internal

namespace {

FdKind kind_of(int native) {
  const os::FileType type = os::file_type(native);
  if (type == os::FileType::disk) return FdKind::file;
  if (type != os::FileType::socket) return FdKind::other;
  const auto option = [native](int name) {
    int value = -1;
    return os::get_option(native, SOL_SOCKET, name, value) == 0 ? value : -1;
  };
  if (option(SO_TYPE) != SOCK_STREAM) return FdKind::packets;
  return option(SO_PROTOCOL) == IPPROTO_TCP ? FdKind::tcp : FdKind::socket;
}

FdState* adopt(int native, std::error_code& ec) noexcept {
  const int flags = os::get_flags(native);
  if (flags < 0) {
    ec = system_error_code(-flags);
    return nullptr;
  }
  const FdKind kind = kind_of(native);
  int error = 0;
  if (kind != FdKind::file && (flags & O_NONBLOCK) == 0) {
    error = -os::set_flags(native, flags | O_NONBLOCK);
  }
  FdState* s = nullptr;
  if (error != 0) {
    ec = system_error_code(error);
  } else {
    s = open_fd(native, kind, ec);
  }
  if (s == nullptr) os::close(native);
  return s;
}

// Those that one call takes: not the empty ones at the beginning, which could be all that fit.
template <class Buffer>
std::span<const Buffer> for_one_call(std::span<const Buffer> list) {
  while (!list.empty() && list.front().size() == 0) list = list.subspan(1);
  return list.first(std::min(list.size(), size_t{IOV_MAX}));
}

size_t total(std::span<const buffer> list) {
  constexpr size_t most = 0x7ffff000;  // the kernel's limit
  size_t n = 0;
  for (const buffer& b : list) n += std::min(b.size(), most);
  return std::min(n, most);
}

// With `reading`.
ssize_t read_some(FdState* s, const context* ctx, std::span<const buffer> to, std::error_code& ec) {
  to = for_one_call(to);
  const size_t room = total(to);
  const auto* vector = reinterpret_cast<const iovec*>(to.data());
  const auto count = static_cast<int>(to.size());
  const auto attempt = [=](int native) {
    return count == 1 ? os::read(native, vector->iov_base, vector->iov_len)
                      : os::readv(native, vector, count);
  };
  if (room == 0) {  // what a datagram socket would take as a wish to drop one
    ec = check_io(s, IoSide::in, ctx);
    return 0;
  }
  if (s->kind == FdKind::file) {
    return try_until_done(s, IoSide::in, ctx, ec,
                          [&](int native) { return blocking([&] { return attempt(native); }); });
  }
  const ssize_t n = try_until_done(s, IoSide::in, ctx, ec, attempt);
  s->drained = s->kind == FdKind::tcp && n > 0 && static_cast<size_t>(n) < room &&
               !s->poll->ended.load(relaxed);
  return n;
}

// With `writing`.
ssize_t write_some(FdState* s, const context* ctx, std::span<const const_buffer> from,
                   std::error_code& ec) {
  if (s->kind != FdKind::packets) from = for_one_call(from);
  auto* vector = const_cast<iovec*>(reinterpret_cast<const iovec*>(from.data()));
  const auto count = static_cast<int>(from.size());
  const auto attempt = [=](int native) -> ssize_t {
    switch (s->kind) {
      case FdKind::tcp:
      case FdKind::socket:
      case FdKind::packets: {
        if (count == 1) return os::send(native, vector->iov_base, vector->iov_len);
        msghdr message{};
        message.msg_iov = vector;
        message.msg_iovlen = static_cast<size_t>(count);
        return os::sendmsg(native, &message);
      }
      case FdKind::file:
        return blocking([&] { return os::writev(native, vector, count); });
      case FdKind::other:
        break;
    }
    return writev_without_sigpipe(native, vector, count);
  };
  return try_until_done(s, IoSide::out, ctx, ec, attempt);
}

size_t counted(ssize_t n) { return n > 0 ? static_cast<size_t>(n) : 0; }

size_t read_call(FdState* s, const context* ctx, std::span<const buffer> to,
                 std::error_code& ec) noexcept {
  if (s == nullptr) {
    ec = io_errc::closed;
    return 0;
  }
  const auto hold = lock_io(s->reading, ctx, ec);
  return ec ? 0 : counted(read_some(s, ctx, to, ec));
}

size_t write_call(FdState* s, const context* ctx, std::span<const const_buffer> from,
                  std::error_code& ec) noexcept {
  if (s == nullptr) {
    ec = io_errc::closed;
    return 0;
  }
  const auto hold = lock_io(s->writing, ctx, ec);
  return ec ? 0 : counted(write_some(s, ctx, from, ec));
}

size_t read_full_call(FdState* s, const context* ctx, buffer to, std::error_code& ec) noexcept {
  if (s == nullptr) {
    ec = io_errc::closed;
    return 0;
  }
  const auto hold = lock_io(s->reading, ctx, ec);
  if (ec) return 0;
  size_t done = 0;
  do {
    const buffer rest = to.after(done);
    const ssize_t n = read_some(s, ctx, {&rest, 1}, ec);
    if (n == 0 && done < to.size() && !ec) ec = io_errc::unexpected_end;
    done += counted(n);
  } while (!ec && done < to.size());
  return done;
}

size_t write_all_call(FdState* s, const context* ctx, const_buffer from,
                      std::error_code& ec) noexcept {
  if (s == nullptr) {
    ec = io_errc::closed;
    return 0;
  }
  const auto hold = lock_io(s->writing, ctx, ec);
  if (ec) return 0;
  size_t done = 0;
  do {
    const const_buffer rest = from.after(done);
    done += counted(write_some(s, ctx, {&rest, 1}, ec));
  } while (!ec && done < from.size());
  return done;
}

void wait_call(FdState* s, IoSide side, const context* ctx, std::error_code& ec) noexcept {
  do_io(s, side, ctx, ec, [=](int native) -> ssize_t {
    pollfd request{native, static_cast<short>(side == IoSide::in ? POLLIN : POLLOUT), 0};
    const int n = os::poll(&request, 1, 0);
    return n == 0 ? -EAGAIN : n;
  });
}

}  // namespace

fd::fd(int native, std::error_code& ec) noexcept : state_(adopt(native, ec)) {}

fd::fd(int native) {
  std::error_code ec;
  state_ = adopt(native, ec);
  if (ec) throw std::system_error(ec, "gofer::fd");
}

fd::fd(const fd& other) noexcept : state_(other.state_) {
  if (state_ != nullptr) state_->handles.fetch_add(1, std::memory_order_relaxed);
}

fd::~fd() {
  if (state_ == nullptr) return;
  if (state_->handles.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  close_fd(state_);
  delete state_;
}

int fd::native_handle() const noexcept {
  return state_ == nullptr || state_->closed.load(std::memory_order_acquire) ? -1 : state_->native;
}

void fd::close() const noexcept {
  if (state_ != nullptr) close_fd(state_);
}

void fd::set_deadlines(bool reads, bool writes, std::int64_t deadline_ns) const {
  const std::error_code ec = control_fd(state_, [&](int) {
    if (state_->poll == nullptr) return EOPNOTSUPP;
    if (reads) poll_set_deadline(state_->poll->in, deadline_ns);
    if (writes) poll_set_deadline(state_->poll->out, deadline_ns);
    return 0;
  });
  if (ec) throw std::system_error(ec, "gofer::fd: deadline");
}

// The four forms of each call.

namespace {

// What `call`, which takes an error_code, returns; an error is thrown.
template <class F>
auto or_throw(const char* what, F call) {
  std::error_code ec;
  if constexpr (std::is_void_v<decltype(call(ec))>) {
    call(ec);
    if (ec) throw std::system_error(ec, what);
  } else {
    const auto result = call(ec);
    if (ec) throw std::system_error(ec, what);
    return result;
  }
}

}  // namespace

std::size_t fd::read(buffer to) const {
  return or_throw("gofer::fd::read", [&](auto& ec) { return read(to, ec); });
}
std::size_t fd::read(buffer to, std::error_code& ec) const noexcept {
  return read_call(state_, nullptr, {&to, 1}, ec);
}
std::size_t fd::read(const context& ctx, buffer to) const {
  return or_throw("gofer::fd::read", [&](auto& ec) { return read(ctx, to, ec); });
}
std::size_t fd::read(const context& ctx, buffer to, std::error_code& ec) const noexcept {
  return read_call(state_, &ctx, {&to, 1}, ec);
}

std::size_t fd::read_full(buffer to) const {
  return or_throw("gofer::fd::read_full", [&](auto& ec) { return read_full(to, ec); });
}
std::size_t fd::read_full(buffer to, std::error_code& ec) const noexcept {
  return read_full_call(state_, nullptr, to, ec);
}
std::size_t fd::read_full(const context& ctx, buffer to) const {
  return or_throw("gofer::fd::read_full", [&](auto& ec) { return read_full(ctx, to, ec); });
}
std::size_t fd::read_full(const context& ctx, buffer to, std::error_code& ec) const noexcept {
  return read_full_call(state_, &ctx, to, ec);
}

std::size_t fd::write(const_buffer from) const {
  return or_throw("gofer::fd::write", [&](auto& ec) { return write(from, ec); });
}
std::size_t fd::write(const_buffer from, std::error_code& ec) const noexcept {
  return write_call(state_, nullptr, {&from, 1}, ec);
}
std::size_t fd::write(const context& ctx, const_buffer from) const {
  return or_throw("gofer::fd::write", [&](auto& ec) { return write(ctx, from, ec); });
}
std::size_t fd::write(const context& ctx, const_buffer from, std::error_code& ec) const noexcept {
  return write_call(state_, &ctx, {&from, 1}, ec);
}

std::size_t fd::write_all(const_buffer from) const {
  return or_throw("gofer::fd::write_all", [&](auto& ec) { return write_all(from, ec); });
}
std::size_t fd::write_all(const_buffer from, std::error_code& ec) const noexcept {
  return write_all_call(state_, nullptr, from, ec);
}
std::size_t fd::write_all(const context& ctx, const_buffer from) const {
  return or_throw("gofer::fd::write_all", [&](auto& ec) { return write_all(ctx, from, ec); });
}
std::size_t fd::write_all(const context& ctx, const_buffer from,
                          std::error_code& ec) const noexcept {
  return write_all_call(state_, &ctx, from, ec);
}

std::size_t fd::readv(std::span<const buffer> to) const {
  return or_throw("gofer::fd::readv", [&](auto& ec) { return readv(to, ec); });
}
std::size_t fd::readv(std::span<const buffer> to, std::error_code& ec) const noexcept {
  return read_call(state_, nullptr, to, ec);
}
std::size_t fd::readv(const context& ctx, std::span<const buffer> to) const {
  return or_throw("gofer::fd::readv", [&](auto& ec) { return readv(ctx, to, ec); });
}
std::size_t fd::readv(const context& ctx, std::span<const buffer> to,
                      std::error_code& ec) const noexcept {
  return read_call(state_, &ctx, to, ec);
}

std::size_t fd::writev(std::span<const const_buffer> from) const {
  return or_throw("gofer::fd::writev", [&](auto& ec) { return writev(from, ec); });
}
std::size_t fd::writev(std::span<const const_buffer> from, std::error_code& ec) const noexcept {
  return write_call(state_, nullptr, from, ec);
}
std::size_t fd::writev(const context& ctx, std::span<const const_buffer> from) const {
  return or_throw("gofer::fd::writev", [&](auto& ec) { return writev(ctx, from, ec); });
}
std::size_t fd::writev(const context& ctx, std::span<const const_buffer> from,
                       std::error_code& ec) const noexcept {
  return write_call(state_, &ctx, from, ec);
}

void fd::wait_readable() const {
  return or_throw("gofer::fd::wait_readable", [&](auto& ec) { return wait_readable(ec); });
}
void fd::wait_readable(std::error_code& ec) const noexcept {
  wait_call(state_, IoSide::in, nullptr, ec);
}
void fd::wait_readable(const context& ctx) const {
  return or_throw("gofer::fd::wait_readable", [&](auto& ec) { return wait_readable(ctx, ec); });
}
void fd::wait_readable(const context& ctx, std::error_code& ec) const noexcept {
  wait_call(state_, IoSide::in, &ctx, ec);
}

void fd::wait_writable() const {
  return or_throw("gofer::fd::wait_writable", [&](auto& ec) { return wait_writable(ec); });
}
void fd::wait_writable(std::error_code& ec) const noexcept {
  wait_call(state_, IoSide::out, nullptr, ec);
}
void fd::wait_writable(const context& ctx) const {
  return or_throw("gofer::fd::wait_writable", [&](auto& ec) { return wait_writable(ctx, ec); });
}
void fd::wait_writable(const context& ctx, std::error_code& ec) const noexcept {
  wait_call(state_, IoSide::out, &ctx, ec);
}

}  // namespace gofer
