// Answers of the kernel that are rare. The library calls libc for sockets and files in src/os
// alone, and each call of ours is one call of libc: so functions of this program, which stand in
// front of libc's, can give any answer.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <string>

#include "support/descriptors.h"
#include "support/sockets.h"

namespace {

// What the next calls answer.
struct Faults {
  std::atomic<bool> interrupts{false};   // every other call of read and send
  std::atomic<bool> short_sends{false};  // one byte goes
  std::atomic<int> send_error{0};        // of the next send
  std::atomic<int> accept_error{0};      // of the next `accepts` calls
  std::atomic<int> accepts{0};
  std::atomic<unsigned> turn{0};
  std::atomic<int> made{0};
};
Faults faults;

ssize_t fail(int error) {
  ++faults.made;
  errno = error;
  return -1;
}

bool is_interrupted() { return faults.interrupts && faults.turn++ % 2 == 0; }

}  // namespace

extern "C" {

ssize_t read(int fd, void* to, size_t size) {
  if (is_interrupted()) return fail(EINTR);
  return syscall(SYS_read, fd, to, size);
}

ssize_t send(int fd, const void* from, size_t size, int flags) {
  if (const int error = faults.send_error.exchange(0); error != 0) return fail(error);
  if (is_interrupted()) return fail(EINTR);
  if (faults.short_sends) size = std::min(size, size_t{1});
  return syscall(SYS_sendto, fd, from, size, flags, nullptr, 0);
}

int accept4(int fd, sockaddr* from, socklen_t* size, int flags) {
  if (faults.accept_error != 0 && faults.accepts-- > 0) {
    return static_cast<int>(fail(faults.accept_error));
  }
  return static_cast<int>(syscall(SYS_accept4, fd, from, size, flags));
}

}  // extern "C"

namespace gofer {
namespace {

class Fault : public test::NetworkTest {
 protected:
  void SetUp() override { faults.made = 0; }
  void TearDown() override {
    faults.interrupts = false;
    faults.short_sends = false;
    faults.accept_error = 0;
  }
};

TEST_F(Fault, InterruptedAndShortCallsAreMadeAgain) {
  run([] {
    const net::listener l = net::listen("127.0.0.1:0");
    const test::Connection c = test::connect_to(l);
    const std::string text(2000, 'x');
    std::string got(text.size(), '\0');
    faults.interrupts = true;
    faults.short_sends = true;
    wait_group wg;
    wg.go([&] { c.client.write_all(text); });
    EXPECT_EQ(c.server.read_full({got.data(), got.size()}), text.size());
    wg.wait();
    EXPECT_EQ(got, text);
    EXPECT_GT(faults.made, 1000);
  });
}

TEST_F(Fault, AnErrorOfTheCallIsTheErrorOfTheFunction) {
  run([] {
    const net::listener l = net::listen("127.0.0.1:0");
    const test::Connection c = test::connect_to(l);
    for (const int error : {ENOBUFS, ENOMEM, EIO}) {
      faults.send_error = error;
      std::error_code ec;
      EXPECT_EQ(c.client.write("x", ec), 0u);
      EXPECT_EQ(ec, std::error_code(error, std::system_category()));
    }
    EXPECT_EQ(faults.made, 3);
  });
}

TEST_F(Fault, AcceptGoesOnAfterConnectionsThatHaveFailed) {
  run([] {
    for (const int error : {ECONNABORTED, EPROTO, ENETDOWN, EMFILE}) {
      const net::listener l = net::listen("127.0.0.1:0");
      faults.accepts = 3;
      faults.accept_error = error;
      const test::Connection c = test::connect_to(l);
      faults.accept_error = 0;
      EXPECT_TRUE(c.server);
    }
    EXPECT_EQ(faults.made, 12);
  });
}

}  // namespace
}  // namespace gofer
