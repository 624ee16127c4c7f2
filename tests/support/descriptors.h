// Descriptors to read from and write to, and the waiters of one.
#pragma once

#include <fcntl.h>
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "runtime/poll/netpoll.h"
#include "runtime/sched/verify.h"
#include "support/scaled.h"
#include "support/wait_until.h"

namespace gofer::test {

/// What is written to `out` is read from `in`; a socket pair works in the other direction, too.
struct Ends {
  fd in;
  fd out;
};

inline Ends make_pipe() {
  int ends[2] = {-1, -1};
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  return {fd(ends[0]), fd(ends[1])};
}

inline Ends make_pair(int type = SOCK_STREAM) {
  int ends[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends), 0);
  return {fd(ends[0]), fd(ends[1])};
}

/// Writes until nothing more fits, and returns how much that was.
inline std::size_t fill(const fd& out) {
  const std::string block(4096, 'f');
  std::size_t sum = 0;
  for (;;) {
    const ssize_t n = ::write(out.native_handle(), block.data(), block.size());
    if (n <= 0) return sum;
    sum += static_cast<std::size_t>(n);
  }
}

/// Whether so many goroutines and threads wait for descriptors soon.
[[nodiscard]] inline bool waiting_for_io(int n) {
  return wait_until([n] { return internal::poll_state.waiters.load() == n; });
}

/// How many descriptors the process has; 0 if that cannot be known.
inline int open_descriptors() {
  int n = 0;
  std::error_code ec;
  for (auto i = std::filesystem::directory_iterator("/proc/self/fd", ec);
       !ec && i != std::filesystem::directory_iterator(); i.increment(ec)) {
    ++n;
  }
  return n;
}

/// Tests that leave no goroutine, no wait and no descriptor behind.
class NetworkTest : public testing::Test {
 protected:
  void SetUp() override {
    gomaxprocs(0);
    before_ = open_descriptors();
  }
  void TearDown() override {
    EXPECT_TRUE(wait_until([] { return num_goroutine() == 0; }));
    EXPECT_EQ(internal::poll_state.waiters.load(), 0);
    EXPECT_LE(open_descriptors(), before_ + 8) << "the runtime has some of its own";
    internal::verify_scheduler();
  }

 private:
  int before_ = 0;
};

/// The code of the std::system_error that f throws.
template <class F>
std::error_code thrown_by(F&& f) {
  try {
    f();
  } catch (const std::system_error& e) {
    return e.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace gofer::test
