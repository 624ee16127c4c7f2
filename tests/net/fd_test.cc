// Reading from and writing to descriptors of every kind, and what their handles are.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/poll/netpoll.h"
#include "runtime/sched/verify.h"
#include "support/descriptors.h"
#include "support/goroutines_and_threads.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using namespace test;

std::string pattern(std::size_t size, unsigned seed = 1) {
  std::string s(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    s[i] = static_cast<char>((i * 31 + i / 251 + seed * 17) & 0xff);
  }
  return s;
}

std::string read_to_end(const fd& in, std::size_t step = 1000) {
  std::string all;
  std::string part(step, '\0');
  while (const std::size_t n = in.read(part)) all.append(part, 0, n);
  return all;
}

class Fd : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(wait_until([] { return num_goroutine() == 0; }));
    EXPECT_EQ(internal::poll_state.waiters.load(), 0);
    internal::verify_scheduler();
  }
};

// ---- bytes

TEST_F(Fd, GivesBytesInOrderHoweverTheyAreCut) {
  const std::string text = pattern(static_cast<std::size_t>(scaled(300'000)));
  in_goroutine_and_thread([&] {
    for (const bool socket : {false, true}) {
      for (const std::size_t write_step : {std::size_t{7}, std::size_t{4096}, text.size()}) {
        Ends e = socket ? make_pair() : make_pipe();
        wait_group wg;
        wg.go([&, out = std::move(e.out)] {
          for (std::size_t i = 0; i < text.size(); i += write_step) {
            const std::size_t n = std::min(write_step, text.size() - i);
            EXPECT_EQ(out.write_all({text.data() + i, n}), n);
          }
          out.close();
        });
        EXPECT_EQ(read_to_end(e.in, 1 + write_step / 3), text);
        wg.wait();
      }
    }
  });
}

TEST_F(Fd, GivesBytesOneAtATime) {
  in_goroutine_and_thread([] {
    const std::string text = pattern(2000);
    Ends e = make_pipe();
    wait_group wg;
    wg.go([&] {
      for (const char& c : text) EXPECT_EQ(e.out.write({&c, 1}), 1u);
    });
    std::string got(text.size(), '\0');
    for (char& c : got) EXPECT_EQ(e.in.read({&c, 1}), 1u);
    EXPECT_EQ(got, text);
    wg.wait();
  });
}

TEST_F(Fd, MovesNothingWithoutWaiting) {
  in_goroutine_and_thread([] {
    for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
      Ends e = make_pair(type);
      EXPECT_EQ(e.in.read(buffer()), 0u);
      EXPECT_EQ(e.in.read_full(buffer()), 0u);
      EXPECT_EQ(e.in.readv({}), 0u);
      const std::array<buffer, 3> nothing{};
      EXPECT_EQ(e.in.readv(nothing), 0u);
    }
    for (Ends e : {make_pair(), make_pipe()}) {
      fill(e.out);
      EXPECT_EQ(e.out.write(const_buffer()), 0u);
      EXPECT_EQ(e.out.write_all(""), 0u);
      EXPECT_EQ(e.out.writev({}), 0u);
      const std::array<const_buffer, 3> nothing{};
      EXPECT_EQ(e.out.writev(nothing), 0u);
    }
  });
}

TEST_F(Fd, ReadOfNothingTakesNoDatagram) {
  Ends e = make_pair(SOCK_DGRAM);
  (void)e.out.write("one");
  EXPECT_EQ(e.in.read(buffer()), 0u);
  char bytes[10];
  EXPECT_EQ(e.in.read(bytes), 3u);
}

TEST_F(Fd, ReadFullCollectsAndTellsOfAnEarlyEnd) {
  in_goroutine_and_thread([] {
    Ends e = make_pipe();
    wait_group wg;
    wg.go([out = e.out] {
      for (const char* part : {"ab", "c", "defg"}) {
        EXPECT_TRUE(waiting_for_io(1));
        out.write_all(part);
      }
      out.close();
    });
    std::array<char, 5> five;
    EXPECT_EQ(e.in.read_full(five), 5u);
    EXPECT_EQ(std::string(five.data(), 5), "abcde");
    std::error_code ec;
    EXPECT_EQ(e.in.read_full(five, ec), 2u);
    EXPECT_EQ(ec, io_errc::unexpected_end);
    EXPECT_EQ(std::string(five.data(), 2), "fg");
    EXPECT_EQ(thrown_by([&] { e.in.read_full(five); }), io_errc::unexpected_end);
    EXPECT_EQ(e.in.read_full(buffer(), ec), 0u);
    EXPECT_FALSE(ec);
    wg.wait();
  });
}

TEST_F(Fd, TakesBuffersOfEveryKind) {
  Ends e = make_pair();
  const auto got = [&](std::size_t n) {
    std::string s(n, '\0');
    EXPECT_EQ(e.in.read_full(s), n);
    return s;
  };
  EXPECT_EQ(e.out.write_all("literal"), 7u);
  EXPECT_EQ(got(7), "literal");
  EXPECT_EQ(e.out.write_all(std::string("a\0b", 3)), 3u);
  EXPECT_EQ(got(3), std::string("a\0b", 3));
  EXPECT_EQ(e.out.write_all(std::string_view("view")), 4u);
  EXPECT_EQ(got(4), "view");
  EXPECT_EQ(e.out.write_all(std::vector<unsigned char>{'v', 'e', 'c'}), 3u);
  EXPECT_EQ(got(3), "vec");
  const std::array<std::byte, 2> two{std::byte{'x'}, std::byte{'y'}};
  EXPECT_EQ(e.out.write_all(two), 2u);
  EXPECT_EQ(got(2), "xy");
  EXPECT_EQ(e.out.write_all(std::span(two).first(1)), 1u);
  EXPECT_EQ(got(1), "x");
  char line[] = {'l', 'i', 'n', 'e'};
  EXPECT_EQ(e.out.write_all(line), 4u);
  EXPECT_EQ(e.out.write_all({line, 2}), 2u);
  EXPECT_EQ(got(6), "lineli");

  e.out.write_all("0123456789abcdef");
  std::array<std::byte, 2> bytes;
  EXPECT_EQ(e.in.read_full(bytes), 2u);
  EXPECT_EQ(bytes[1], std::byte{'1'});
  std::vector<std::uint8_t> vector(3);
  EXPECT_EQ(e.in.read_full(vector), 3u);
  EXPECT_EQ(vector[2], '4');
  char array[4];
  EXPECT_EQ(e.in.read_full(array), 4u);
  EXPECT_EQ(array[3], '8');
  EXPECT_EQ(e.in.read_full(std::span(array).subspan(2)), 2u);
  EXPECT_EQ(array[2], '9');
  EXPECT_EQ(e.in.read_full({array, 1}), 1u);
  EXPECT_EQ(array[0], 'b');
  static_assert(!std::is_constructible_v<buffer, const std::string&>);
  static_assert(!std::is_constructible_v<buffer, std::string_view>);
  static_assert(!std::is_constructible_v<const_buffer, std::vector<int>>);
}

// A zero ends a literal, not an array of bytes that happens to be const. An array of const char on
// the stack is refused by the compiler: tests/refused.
TEST_F(Fd, ConstArraysAreTakenWhole) {
  static constexpr char bytes[] = {'a', '\0', 'b', 'c'};
  EXPECT_EQ(const_buffer(bytes).size(), 4u);
  static constexpr unsigned char unsigned_bytes[] = {'a', '\0', 'b', 'c'};
  EXPECT_EQ(const_buffer(unsigned_bytes).size(), 4u);
  static constexpr char zero_at_the_end[] = {1, 2, 3, 0};
  EXPECT_EQ(const_buffer(zero_at_the_end).size(), 4u);
  static const char made_at_run_time[] = {static_cast<char>(getpid()), 2, 3, 0};
  Ends e = make_pair();
  EXPECT_EQ(e.out.write_all(made_at_run_time), 4u);
  const char on_the_stack[] = {1, 2, 3, 0};
  EXPECT_EQ(e.out.write_all({on_the_stack, sizeof on_the_stack}), 4u);
  EXPECT_EQ(e.out.write_all(std::span(on_the_stack)), 4u);
  EXPECT_EQ(e.out.write_all(std::as_bytes(std::span(on_the_stack))), 4u);
}

TEST_F(Fd, LiteralsAreTakenWithoutTheirFinalZero) {
  EXPECT_EQ(const_buffer("").size(), 0u);
  EXPECT_EQ(const_buffer("text").size(), 4u);
  EXPECT_EQ(const_buffer("a\0b\0").size(), 4u);
  EXPECT_EQ(const_buffer(u8"text").size(), 4u);
  const const_buffer several[] = {"one", "", u8"two"};
  EXPECT_EQ(several[0].size() + several[1].size() + several[2].size(), 6u);
  const char* const pointer = "pointer";
  EXPECT_EQ(const_buffer(pointer).size(), 7u);
}

// ---- several buffers

TEST_F(Fd, ReadvAndWritevGoThroughTheirBuffersInTurn) {
  in_goroutine_and_thread([] {
    for (Ends e : {make_pair(), make_pipe()}) {
      const std::array<const_buffer, 4> from{"one", "", "two", "three"};
      EXPECT_EQ(e.out.writev(from), 11u);
      char a[2], b[5], c[100];
      const std::array<buffer, 4> to{buffer(a), buffer(), buffer(b), buffer(c)};
      EXPECT_EQ(e.in.readv(to), 11u);
      EXPECT_EQ(std::string(a, 2) + std::string(b, 5) + std::string(c, 4), "onetwothree");
      std::error_code ec;
      const auto [ctx, cancel] = with_timeout(background(), 1ms);
      EXPECT_EQ(e.in.readv(ctx, to, ec), 0u);
      EXPECT_EQ(ec, std::errc::timed_out);
    }
  });
}

// Both ends of a TCP connection, which is read with fewer system calls.
Ends make_tcp() {
  const net::listener l = net::listen("127.0.0.1:0");
  net::conn out = net::dial(l.local_address().to_string());
  return {l.accept(), out};
}

TEST_F(Fd, MoreBuffersThanTheKernelTakesAreEnoughCalls) {
  constexpr std::size_t count = IOV_MAX + 500;
  const std::string text = pattern(count * 3);
  for (Ends e : {make_pair(), make_pipe(), make_tcp()}) {
    std::vector<const_buffer> from;
    for (std::size_t i = 0; i < count; ++i) from.emplace_back(text.data() + i * 3, 3);
    std::size_t written = 0;
    while (written < text.size()) {  // all of them are of one size
      written += e.out.writev(std::span(from).subspan(written / 3));
      ASSERT_EQ(written % 3, 0u);
    }
    std::string got(text.size(), '\0');
    e.in.set_read_deadline(5s);
    std::size_t had = 0;
    while (had < got.size()) {
      std::vector<buffer> to;
      for (std::size_t i = had; i < got.size(); ++i) to.emplace_back(got.data() + i, 1);
      std::error_code ec;
      const std::size_t n = e.in.readv(to, ec);
      ASSERT_TRUE(n > 0 && !ec) << had << ": " << ec.message();
      had += n;
    }
    EXPECT_EQ(got, text);
  }
}

TEST_F(Fd, ManyEmptyBuffersAreNotTheEndOfTheInput) {
  for (Ends e : {make_pair(), make_pipe(), make_tcp()}) {
    e.out.write_all("there");
    char bytes[5];
    std::vector<buffer> to(IOV_MAX + 10);
    to.emplace_back(bytes);
    EXPECT_EQ(e.in.readv(to), 5u);
  }
}

// ---- kinds of descriptors

TEST_F(Fd, WriteToAPipeWithoutAReaderFailsWithoutASignal) {
  in_goroutine_and_thread([] {
    for (const bool socket : {false, true}) {
      Ends e = socket ? make_pair() : make_pipe();
      e.in.close();
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(thrown_by([&] { (void)e.out.write("x"); }), std::errc::broken_pipe);
      }
    }
    sigset_t set;
    sigpending(&set);
    EXPECT_EQ(sigismember(&set, SIGPIPE), 0);
    pthread_sigmask(SIG_SETMASK, nullptr, &set);
    EXPECT_EQ(sigismember(&set, SIGPIPE), 0);
  });
}

TEST_F(Fd, ASignalThatWasPendingStays) {
  std::thread([] {
    sigset_t pipe_signal;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
    for (const bool raised : {false, true}) {
      if (raised) pthread_kill(pthread_self(), SIGPIPE);
      Ends e = make_pipe();
      e.in.close();
      EXPECT_EQ(thrown_by([&] { (void)e.out.write("x"); }), std::errc::broken_pipe);
      sigset_t pending;
      sigpending(&pending);
      EXPECT_EQ(sigismember(&pending, SIGPIPE), raised ? 1 : 0);
    }
    const timespec at_once{};
    EXPECT_EQ(sigtimedwait(&pipe_signal, nullptr, &at_once), SIGPIPE);
  }).join();
}

TEST_F(Fd, WriterOfAPipeIsToldWhenItsReaderLeaves) {
  in_goroutine_and_thread([] {
    Ends e = make_pipe();
    fill(e.out);
    wait_group wg;
    wg.go([&] {
      EXPECT_TRUE(waiting_for_io(1));
      e.in.close();
    });
    EXPECT_EQ(thrown_by([&] { (void)e.out.write("x"); }), std::errc::broken_pipe);
    wg.wait();
  });
}

TEST_F(Fd, EventfdCountsUp) {
  in_goroutine_and_thread([] {
    const fd event(eventfd(0, EFD_CLOEXEC));
    wait_group wg;
    wg.go([&] {
      EXPECT_TRUE(waiting_for_io(1));
      const std::uint64_t three = 3;
      EXPECT_EQ(event.write({&three, sizeof three}), sizeof three);
    });
    std::uint64_t value = 0;
    EXPECT_EQ(event.read({&value, sizeof value}), sizeof value);
    EXPECT_EQ(value, 3u);
    char small;
    EXPECT_EQ(thrown_by([&] { (void)event.read({&small, 1}); }), std::errc::invalid_argument);
    wg.wait();
    value = ~std::uint64_t{0} - 1;
    (void)event.write({&value, sizeof value});
    wg.go([&] {
      EXPECT_TRUE(waiting_for_io(1));
      std::uint64_t got = 0;
      (void)event.read({&got, sizeof got});
      EXPECT_EQ(got, value);
    });
    const std::uint64_t one = 1;
    EXPECT_EQ(event.write({&one, sizeof one}), sizeof one);
    wg.wait();
  });
}

TEST_F(Fd, TimerfdTicks) {
  in_goroutine_and_thread([] {
    const fd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
    const itimerspec each_ms{{0, 1'000'000}, {0, 1'000'000}};
    ASSERT_EQ(timerfd_settime(timer.native_handle(), 0, &each_ms, nullptr), 0);
    for (int i = 0; i < 10; ++i) {
      std::uint64_t ticks = 0;
      EXPECT_EQ(timer.read({&ticks, sizeof ticks}), sizeof ticks);
      EXPECT_GE(ticks, 1u);
    }
  });
}

TEST_F(Fd, SignalfdGivesSignals) {
  std::thread([] {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    const fd signals(signalfd(-1, &set, SFD_CLOEXEC));
    for (int i = 0; i < 3; ++i) {
      pthread_kill(pthread_self(), SIGUSR2);
      signalfd_siginfo info{};
      EXPECT_EQ(signals.read({&info, sizeof info}), sizeof info);
      EXPECT_EQ(info.ssi_signo, static_cast<std::uint32_t>(SIGUSR2));
    }
    EXPECT_EQ(thrown_by([&] {
                signals.set_deadline(1ms);
                signals.wait_readable();
              }),
              std::errc::timed_out);
  }).join();
}

// A folder of its own, removed at the end.
struct Folder {
  std::string path = testing::TempDir() + "gofer-fd-XXXXXX";
  Folder() { EXPECT_NE(mkdtemp(path.data()), nullptr); }
  ~Folder() {
    unlink(file().c_str());
    rmdir(path.c_str());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file() const { return path + "/file"; }
};

TEST_F(Fd, InotifyTellsOfNewFiles) {
  const Folder folder;
  const fd watch(inotify_init1(IN_CLOEXEC));
  ASSERT_GE(inotify_add_watch(watch.native_handle(), folder.path.c_str(), IN_CREATE), 0);
  wait_group wg;
  wg.go([&] {
    alignas(inotify_event) char bytes[4096];
    EXPECT_GT(watch.read(bytes), sizeof(inotify_event));
    EXPECT_STREQ(reinterpret_cast<inotify_event*>(bytes)->name, "file");
  });
  EXPECT_TRUE(waiting_for_io(1));
  const fd file(open(folder.file().c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  wg.wait();
}

TEST_F(Fd, DatagramsKeepTheirBounds) {
  in_goroutine_and_thread([] {
    for (const int type : {SOCK_DGRAM, SOCK_SEQPACKET}) {
      Ends e = make_pair(type);
      wait_group wg;
      wg.go([&] {
        for (std::size_t n = 1; n < 500; ++n) EXPECT_EQ(e.out.write(pattern(n)), n);
      });
      char bytes[1000];
      for (std::size_t n = 1; n < 500; ++n) {
        ASSERT_EQ(e.in.read(bytes), n);
        ASSERT_EQ(std::string(bytes, n), pattern(n));
      }
      wg.wait();
    }
    Ends e = make_pair(SOCK_DGRAM);
    const std::array<const_buffer, 2> parts{"ab", "cd"};
    EXPECT_EQ(e.out.writev(parts), 4u);
    char bytes[3];
    EXPECT_EQ(e.in.read(bytes), 3u);
    EXPECT_EQ(thrown_by([&] { (void)e.out.write(std::string(16 << 20, 'x')); }),
              std::errc::message_size);
  });
}

TEST_F(Fd, FilesOnDiskAreReadAndWritten) {
  in_goroutine_and_thread([] {
    const Folder folder;
    const std::string text = pattern(100'000);
    const fd file(open(folder.file().c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    EXPECT_EQ(file.write_all(text), text.size());
    const std::array<const_buffer, 2> tail{"ta", "il"};
    EXPECT_EQ(file.writev(tail), 4u);
    file.wait_readable();
    file.wait_writable();
    lseek(file.native_handle(), 0, SEEK_SET);
    EXPECT_EQ(read_to_end(file), text + "tail");
    char byte;
    EXPECT_EQ(file.read({&byte, 1}), 0u);
    std::error_code ec;
    file.read_full({&byte, 1}, ec);
    EXPECT_EQ(ec, io_errc::unexpected_end);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(thrown_by([&] { file.set_deadline(1s); }), std::errc::operation_not_supported);
    }
    const auto [ctx, cancel] = with_cancel(background());
    cancel();
    EXPECT_EQ(thrown_by([&, ctx = ctx] {
                (void)file.read(ctx, {&byte, 1});
              }),
              std::errc::operation_canceled);
    file.close();
    EXPECT_EQ(thrown_by([&] { (void)file.read({&byte, 1}); }), io_errc::closed);
  });
}

TEST_F(Fd, DevicesThatAreAlwaysReady) {
  in_goroutine_and_thread([] {
    const fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
    EXPECT_EQ(null.write_all(pattern(1000)), 1000u);
    char bytes[10] = "xxxxxxxxx";
    EXPECT_EQ(null.read(bytes), 0u);
    const fd zero(open("/dev/zero", O_RDWR | O_CLOEXEC));
    EXPECT_EQ(zero.read_full(bytes), 10u);
    EXPECT_EQ(std::accumulate(bytes, bytes + 10, 0), 0);
    const fd full(open("/dev/full", O_RDWR | O_CLOEXEC));
    EXPECT_EQ(thrown_by([&] { full.write_all("x"); }), std::errc::no_space_on_device);
    const fd folder(open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    EXPECT_EQ(thrown_by([&] { (void)folder.read(bytes); }), std::errc::is_a_directory);
  });
}

TEST_F(Fd, EndThatCannotBeUsedSaysSo) {
  Ends e = make_pipe();
  char byte;
  EXPECT_EQ(thrown_by([&] { (void)e.out.read({&byte, 1}); }), std::errc::bad_file_descriptor);
  EXPECT_EQ(thrown_by([&] { (void)e.in.write("x"); }), std::errc::bad_file_descriptor);
}

// ---- handles

TEST_F(Fd, CopiesAreTheSameDescriptor) {
  Ends e = make_pipe();
  const int native = e.in.native_handle();
  fd copy = e.in;
  EXPECT_EQ(copy, e.in);
  EXPECT_NE(copy, e.out);
  fd moved = std::move(copy);
  EXPECT_FALSE(copy);  // NOLINT: what is left is a handle of nothing
  EXPECT_EQ(moved, e.in);
  fd& self = moved;
  moved = self;
  EXPECT_EQ(moved.native_handle(), native);
  moved = std::move(self);
  EXPECT_EQ(moved.native_handle(), native);
  e.in = fd();
  EXPECT_EQ(moved.native_handle(), native);
  EXPECT_GE(fcntl(native, F_GETFD), 0);
  moved = e.out;
  EXPECT_EQ(fcntl(native, F_GETFD), -1) << "the last handle is gone";
}

TEST_F(Fd, ClosedByOneIsClosedForAll) {
  in_goroutine_and_thread([] {
    Ends e = make_pipe();
    const fd copy = e.in;
    EXPECT_TRUE(copy);
    e.in.close();
    e.in.close();
    copy.close();
    EXPECT_FALSE(copy);
    EXPECT_EQ(copy.native_handle(), -1);
    char byte;
    std::error_code ec;
    EXPECT_EQ(copy.read({&byte, 1}, ec), 0u);
    EXPECT_EQ(ec, io_errc::closed);
    EXPECT_EQ(thrown_by([&] { (void)copy.read(buffer()); }), io_errc::closed);
    EXPECT_EQ(thrown_by([&] { copy.write_all("x"); }), io_errc::closed);
    EXPECT_EQ(thrown_by([&] { copy.wait_readable(); }), io_errc::closed);
    EXPECT_EQ(thrown_by([&] { copy.set_deadline(1s); }), io_errc::closed);
  });
}

TEST_F(Fd, HandleOfNothingIsClosed) {
  const fd none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none, fd());
  EXPECT_EQ(none.native_handle(), -1);
  none.close();
  char byte;
  const auto closed = io_errc::closed;
  EXPECT_EQ(thrown_by([&] { (void)none.read({&byte, 1}); }), closed);
  EXPECT_EQ(thrown_by([&] { none.read_full(background(), {&byte, 1}); }), closed);
  EXPECT_EQ(thrown_by([&] { (void)none.readv({}); }), closed);
  EXPECT_EQ(thrown_by([&] { (void)none.write("x"); }), closed);
  EXPECT_EQ(thrown_by([&] { none.write_all("x"); }), closed);
  EXPECT_EQ(thrown_by([&] { (void)none.writev({}); }), closed);
  EXPECT_EQ(thrown_by([&] { none.wait_readable(); }), closed);
  EXPECT_EQ(thrown_by([&] { none.wait_writable(background()); }), closed);
  EXPECT_EQ(thrown_by([&] { none.set_read_deadline(1s); }), closed);
}

TEST_F(Fd, NumberOfNoDescriptorIsRefused) {
  for (const int bad : {-1, INT_MAX, 999'999}) {
    EXPECT_EQ(thrown_by([&] { fd f(bad); }), std::errc::bad_file_descriptor);
    std::error_code ec;
    const fd f(bad, ec);
    EXPECT_EQ(ec, std::errc::bad_file_descriptor);
    EXPECT_FALSE(f);
  }
  std::error_code ec = io_errc::closed;
  const fd good(eventfd(0, EFD_CLOEXEC), ec);
  EXPECT_FALSE(ec);
}

// A duplicate that stays open must not be in the way of the next one, which gets the same number.
TEST_F(Fd, DuplicatesOfOneDescriptorComeAndGo) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  for (int i = 0; i < 3; ++i) {
    std::error_code ec;
    const fd in(dup(ends[0]), ec);
    ASSERT_FALSE(ec) << i << ": " << ec.message();
    ASSERT_EQ(write(ends[1], "x", 1), 1);
    char byte = 0;
    EXPECT_EQ(in.read({&byte, 1}), 1u);
    EXPECT_EQ(byte, 'x');
  }
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(Fd, ErrorsHaveTextsAndConditions) {
  const std::error_code closed = io_errc::closed;
  const std::error_code end = io_errc::unexpected_end;
  EXPECT_STREQ(closed.category().name(), "gofer.io");
  EXPECT_EQ(closed.message(), "use of closed descriptor");
  EXPECT_EQ(end.message(), "unexpected end of input");
  EXPECT_FALSE(io_category().message(99).empty());
  EXPECT_EQ(closed, std::errc::bad_file_descriptor);
  EXPECT_NE(end, closed);
  try {
    (void)fd().read(buffer());
    ADD_FAILURE();
  } catch (const std::system_error& e) {
    EXPECT_EQ(std::string(e.what()), "gofer::fd::read: use of closed descriptor");
  }
  errno = 77;
  Ends e = make_pipe();
  e.in.set_read_deadline(0s);
  EXPECT_EQ(thrown_by([&] { (void)e.in.read(buffer()); }), std::errc::timed_out);
}

}  // namespace
}  // namespace gofer
