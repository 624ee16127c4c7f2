// Connections that fail, are refused, are cut off, or never come about.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/descriptors.h"
#include "support/goroutines_and_threads.h"
#include "support/sockets.h"
#include "support/start_detached.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using namespace test;
using clock = std::chrono::steady_clock;

using NetTrouble = NetworkTest;

// The other side sees a reset instead of an end.
void reset(const net::conn& c) {
  const linger at_once{1, 0};
  EXPECT_EQ(setsockopt(c.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  c.close();
}

// ---- the other side goes away

TEST_F(NetTrouble, ResetEndsAReadThatWaits) {
  in_goroutine_and_thread([] {
    const net::listener l = net::listen("127.0.0.1:0");
    for (const bool has_read : {false, true}) {
      const Connection c = connect_to(l);
      char bytes[100];
      if (has_read) {
        c.server.write_all("first");
        EXPECT_EQ(c.client.read(bytes), 5u);
      }
      wait_group wg;
      wg.go([&] {
        EXPECT_TRUE(waiting_for_io(1));
        reset(c.server);
      });
      std::error_code ec;
      EXPECT_EQ(c.client.read(bytes, ec), 0u);
      EXPECT_EQ(ec, std::errc::connection_reset) << ec.message();
      wg.wait();
    }
  });
}

TEST_F(NetTrouble, ResetEndsAWriteThatWaits) {
  in_goroutine_and_thread([] {
    const Connection c = make_connection();
    wait_group wg;
    wg.go([&] {
      EXPECT_TRUE(waiting_for_io(1));
      reset(c.server);
    });
    const std::string much(1 << 20, 'x');
    std::error_code ec;
    while (!ec) c.client.write_all(much, ec);
    EXPECT_TRUE(ec == std::errc::connection_reset || ec == std::errc::broken_pipe) << ec.message();
    wg.wait();
  });
}

TEST_F(NetTrouble, ResetInTheMiddleOfAMessage) {
  const net::listener l = net::listen("127.0.0.1:0");
  for (int round = 0; round < scaled(200); ++round) {
    const Connection c = connect_to(l);
    wait_group wg;
    wg.go([&] {
      c.server.write_all("half of");
      if (round % 2 == 0) yield();
      reset(c.server);
    });
    char message[20];
    std::error_code ec;
    const std::size_t n = c.client.read_full(message, ec);
    EXPECT_TRUE(n == 0 || n == 7) << n;
    EXPECT_TRUE(ec == std::errc::connection_reset) << ec.message();
    wg.wait();
  }
}

// An end that came before the bytes were taken makes no event of its own.
TEST_F(NetTrouble, EndThatCameWithTheBytesIsSeen) {
  in_goroutine_and_thread([] {
    const net::listener l = net::listen("127.0.0.1:0");
    for (int round = 0; round < scaled(400); ++round) {
      const Connection c = connect_to(l);
      c.client.set_read_deadline(30s);
      wait_group wg;
      wg.go([&] {
        c.server.write_all("bytes");
        if (round % 3 == 0) yield();
        if (round % 2 == 0) {
          c.server.close();
        } else {
          c.server.shutdown_write();
        }
      });
      if (round % 5 == 0) wg.wait();
      char bytes[100];
      std::size_t sum = 0;
      std::error_code ec;
      while (const std::size_t n = c.client.read(bytes, ec)) sum += n;
      EXPECT_EQ(sum, 5u);
      EXPECT_FALSE(ec) << ec.message();
      wg.wait();
    }
  });
}

TEST_F(NetTrouble, UrgentDataHidesNothing) {
  const Connection c = make_connection();
  c.client.set_read_deadline(10s);
  c.server.write_all("before");
  if (send(c.server.native_handle(), "!", 1, MSG_OOB) != 1) GTEST_SKIP() << "no urgent data here";
  c.server.write_all("after");
  c.server.shutdown_write();
  std::string all;
  char bytes[100];
  while (const std::size_t n = c.client.read(bytes)) all.append(bytes, n);
  EXPECT_TRUE(all == "beforeafter" || all == "before!after") << all;
}

TEST_F(NetTrouble, HalfClosedPeerIsStillWrittenTo) {
  const Connection c = make_connection();
  c.client.shutdown_write();
  char bytes[1000];
  EXPECT_EQ(c.server.read(bytes), 0u);
  wait_group wg;
  const std::string much(scaled(2'000'000), 'x');
  wg.go([&] {
    c.server.write_all(much);
    c.server.close();
  });
  std::size_t sum = 0;
  while (const std::size_t n = c.client.read(bytes)) sum += n;
  EXPECT_EQ(sum, much.size());
  wg.wait();
  EXPECT_EQ(thrown_by([&] { (void)c.client.write("x"); }), std::errc::broken_pipe);
}

TEST_F(NetTrouble, PeerThatNeverReadsHoldsUpTheWriterUntilTheDeadline) {
  in_goroutine_and_thread([] {
    const Connection c = make_connection();
    const std::string much(64 << 20, 'x');
    c.server.set_write_deadline(300ms);
    std::error_code ec;
    const std::size_t n = c.server.write_all(much, ec);
    EXPECT_EQ(ec, std::errc::timed_out);
    EXPECT_LT(n, much.size());
    const auto [ctx, cancel] = with_timeout(background(), 10ms);
    c.server.set_write_deadline(clock::time_point::max());
    EXPECT_LT(c.server.write_all(ctx, much, ec), much.size());
    EXPECT_EQ(ec, std::errc::timed_out);
    c.server.set_read_deadline(2ms);
    char byte;
    EXPECT_EQ(c.server.read({&byte, 1}, ec), 0u);
    EXPECT_EQ(ec, std::errc::timed_out);
  });
}

// ---- accept

void close_in(bool thread, const net::listener& l, wait_group& wg) {
  wg.add(1);
  const auto close = [l, &wg] {
    EXPECT_TRUE(waiting_for_io(1));
    l.close();
    wg.done();
  };
  if (thread) {
    start_detached(close);
  } else {
    go(close);
  }
}

TEST_F(NetTrouble, CloseEndsAccept) {
  const SocketFolder folder;
  for (const bool thread : {false, true}) {
    in_goroutine_and_thread([&] {
      for (const std::string& at : {own_loopback(), folder.address("closed")}) {
        const net::listener l = net::listen(at);
        wait_group wg;
        close_in(thread, l, wg);
        std::error_code ec;
        EXPECT_FALSE(l.accept(ec));
        EXPECT_EQ(ec, io_errc::closed);
        wg.wait();
        EXPECT_EQ(thrown_by([&] { (void)l.accept(); }), io_errc::closed);
      }
    });
  }
}

TEST_F(NetTrouble, DeadlineAndContextEndAccept) {
  in_goroutine_and_thread([] {
    const net::listener l = net::listen("127.0.0.1:0");
    l.set_deadline(2ms);
    std::error_code ec;
    EXPECT_FALSE(l.accept(ec));
    EXPECT_EQ(ec, std::errc::timed_out);
    l.set_deadline(clock::time_point::max());
    const auto [ctx, cancel] = with_timeout(background(), 2ms);
    EXPECT_FALSE(l.accept(ctx, ec));
    EXPECT_EQ(ec, std::errc::timed_out);
    const net::conn c = net::dial(l.local_address().to_string());
    EXPECT_TRUE(l.accept(ec));
    EXPECT_FALSE(ec);
  });
}

TEST_F(NetTrouble, ManyAcceptAtOnce) {
  const net::listener l = net::listen("127.0.0.1:0");
  const std::string at = l.local_address().to_string();
  const int conns = scaled(500);
  std::atomic<int> accepted{0};
  wait_group wg;
  for (int i = 0; i < 8; ++i) {
    wg.go([&] {
      std::error_code ec;
      while (const net::conn c = l.accept(ec)) {
        ++accepted;
        c.write_all("x");
      }
    });
  }
  wait_group clients;
  for (int i = 0; i < 8; ++i) {
    clients.go([&] {
      for (int k = 0; k < conns; ++k) {
        char byte = 0;
        EXPECT_EQ(net::dial(at).read({&byte, 1}), 1u);
      }
    });
  }
  clients.wait();
  EXPECT_EQ(accepted, 8 * conns);
  l.close();
  wg.wait();
}

// No more descriptors than there are now.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const int next = dup(0);
    close(next);
    rlimit less = before_;
    less.rlim_cur = static_cast<rlim_t>(next);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &less), 0);
  }
  ~NoMoreDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreDescriptors(const NoMoreDescriptors&) = delete;
  NoMoreDescriptors& operator=(const NoMoreDescriptors&) = delete;

 private:
  rlimit before_;
};

TEST_F(NetTrouble, WithoutDescriptorsConnectionsWait) {
  in_goroutine_and_thread([] {
    const net::listener l = net::listen("127.0.0.1:0");
    std::vector<net::conn> clients;
    for (int i = 0; i < 20; ++i) {
      clients.push_back(net::dial(l.local_address().to_string()));
      clients.back().write_all({&i, sizeof i});
    }
    wait_group wg;
    std::set<int> seen;
    std::atomic<int> accepted{0};
    {
      const NoMoreDescriptors scope;
      wg.go([&] {
        for (std::size_t i = 0; i < clients.size(); ++i) {
          const net::conn c = l.accept();
          ++accepted;
          int number = -1;
          c.read_full({&number, sizeof number});
          seen.insert(number);
        }
      });
      sleep_for(30ms);  // so that it fails more than once
      EXPECT_EQ(accepted, 0);
      std::error_code ec;
      EXPECT_FALSE(net::dial(l.local_address().to_string(), ec));
      EXPECT_EQ(ec, std::errc::too_many_files_open);
      EXPECT_FALSE(net::listen("127.0.0.1:0", {}, ec));
      EXPECT_EQ(ec, std::errc::too_many_files_open);
    }
    wg.wait();
    EXPECT_EQ(seen.size(), clients.size());
  });
}

TEST_F(NetTrouble, WithoutDescriptorsAcceptCanBeEnded) {
  in_goroutine_and_thread([] {
    const net::listener l = net::listen("127.0.0.1:0");
    const net::conn c = net::dial(l.local_address().to_string());
    const NoMoreDescriptors scope;
    std::error_code ec;
    const auto [ctx, cancel] = with_timeout(background(), 20ms);
    EXPECT_FALSE(l.accept(ctx, ec));
    EXPECT_EQ(ec, std::errc::timed_out);
    l.set_deadline(20ms);
    EXPECT_FALSE(l.accept(ec));
    EXPECT_EQ(ec, std::errc::timed_out);
    l.set_deadline(clock::time_point::max());
    wait_group wg;
    wg.go([&] {
      sleep_for(10ms);
      l.close();
    });
    EXPECT_FALSE(l.accept(ec));
    EXPECT_EQ(ec, io_errc::closed);
    wg.wait();
  });
}

// ---- dial

TEST_F(NetTrouble, ClosedPortRefuses) {
  in_goroutine_and_thread([] {
    // The port is bound, so that no other program gets it, and it does not listen.
    const int native = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(bind(native, reinterpret_cast<sockaddr*>(&in), sizeof in), 0);
    socklen_t size = sizeof in;
    getsockname(native, reinterpret_cast<sockaddr*>(&in), &size);
    const std::string at = "127.0.0.1:" + std::to_string(ntohs(in.sin_port));
    const auto refused = std::errc::connection_refused;
    std::error_code ec;
    EXPECT_FALSE(net::dial(at, ec));
    EXPECT_EQ(ec, refused);
    EXPECT_EQ(thrown_by([&] { (void)net::dial(at, 10s); }), refused);
    EXPECT_EQ(
        thrown_by([&] { (void)net::dial("localhost:" + std::to_string(ntohs(in.sin_port))); }),
        refused);
    for (int i = 0; i < scaled(300); ++i)
      EXPECT_EQ(thrown_by([&] { (void)net::dial(at); }), refused);
    ::close(native);
  });
}

// A socket that dials a port without a listener may get that very port, and is then connected to
// itself.
TEST_F(NetTrouble, DialNeverConnectsToItself) {
  std::string at;
  for (int port = 40000; at.empty() && port < 50000; port += 2) {  // as the kernel takes for dials
    std::error_code ec;
    if (net::listen("127.0.0.1:" + std::to_string(port), {}, ec)) {
      at = "127.0.0.1:" + std::to_string(port);
    }
  }
  for (int i = 0; i < scaled(30'000); ++i) {
    std::error_code ec;
    const net::conn c = net::dial(at, ec);
    if (!c) continue;
    ASSERT_NE(c.local_address().to_string(), c.remote_address().to_string()) << "dial " << i;
  }
}

// A listener that takes no connection any more: SYNs get no answer.
struct Full {
  net::listener l = net::listen("127.0.0.1:0", {.backlog = 1});
  std::string at = l.local_address().to_string();
  std::vector<net::conn> waiting;
  bool is_full = false;

  Full() {
    for (int i = 0; i < 64 && !is_full; ++i) {
      std::error_code ec;
      const auto [ctx, cancel] = with_timeout(background(), 300ms);
      waiting.push_back(net::dial(ctx, at, ec));
      is_full = ec == std::errc::timed_out;
      cancel();
    }
  }
};

TEST_F(NetTrouble, ManyDialsAreCancelled) {
  const Full full;
  if (!full.is_full) GTEST_SKIP() << "the backlog has no end here";
  const int dials = internal::sanitizers_enabled ? 100 : 1000;
  const auto [ctx, cancel] = with_cancel(background());
  std::atomic<int> cancelled{0};
  wait_group wg;
  for (int i = 0; i < dials; ++i) {
    wg.go([&, ctx = ctx] {
      std::error_code ec;
      EXPECT_FALSE(net::dial(ctx, full.at, ec));
      cancelled += ec == std::errc::operation_canceled;
    });
  }
  EXPECT_TRUE(waiting_for_io(dials));
  cancel();
  wg.wait();
  EXPECT_EQ(cancelled, dials);
  std::error_code ec;
  EXPECT_FALSE(net::dial(ctx, full.at, ec));
  EXPECT_EQ(ec, std::errc::operation_canceled);
}

TEST_F(NetTrouble, ManyDialsTimeOut) {
  const Full full;
  if (!full.is_full) GTEST_SKIP() << "the backlog has no end here";
  std::atomic<int> late{0};
  wait_group wg;
  const int dials = internal::sanitizers_enabled ? 20 : 200;
  for (int i = 0; i < dials; ++i) {
    wg.go([&, i] {
      late += thrown_by([&] { (void)net::dial(full.at, 1ms * (i % 20)); }) == std::errc::timed_out;
    });
  }
  wg.wait();
  EXPECT_EQ(late, dials);
}

TEST_F(NetTrouble, DialToAFullUnixBacklogWaits) {
  in_goroutine_and_thread([] {
    const SocketFolder folder;
    const std::string at = folder.address("full");
    const net::listener l = net::listen(at, {.backlog = 1});
    std::vector<net::conn> waiting;
    std::error_code ec;
    while (!ec) {
      const auto [ctx, cancel] = with_timeout(background(), 30ms);
      waiting.push_back(net::dial(ctx, at, ec));
      cancel();
      ASSERT_LT(waiting.size(), 100u);
    }
    EXPECT_EQ(ec, std::errc::timed_out);
    waiting.pop_back();
    const auto [ctx, cancel] = with_cancel(background());
    wait_group wg;
    wg.go([cancel = cancel] { cancel(); });
    EXPECT_FALSE(net::dial(ctx, at, ec));
    EXPECT_EQ(ec, std::errc::operation_canceled);
    std::atomic<int> connected{0};
    for (int i = 0; i < 10; ++i) {
      wg.go([&] {
        const net::conn c = net::dial(at);
        ++connected;
        char byte = 0;
        EXPECT_EQ(c.read({&byte, 1}), 1u);
      });
    }
    for (std::size_t i = 0; i < waiting.size() + 10; ++i) l.accept().write_all("x");
    wg.wait();
    EXPECT_EQ(connected, 10);
  });
}

TEST_F(NetTrouble, ClosingListenerRefusesWaitingConnections) {
  for (const bool thread : {false, true}) {
    const SocketFolder folder;
    const std::string at = folder.address("closing");
    const net::listener l = net::listen(at, {.backlog = 1});
    std::vector<net::conn> waiting;
    std::error_code ec;
    while (!ec) {
      const auto [ctx, cancel] = with_timeout(background(), 20ms);
      waiting.push_back(net::dial(ctx, at, ec));
      cancel();
      ASSERT_LT(waiting.size(), 100u);
    }
    wait_group wg;
    std::atomic<bool> begun{false};
    wg.go([&] {
      begun = true;
      std::error_code error;
      EXPECT_FALSE(net::dial(at, error));
      EXPECT_TRUE(error == std::errc::connection_refused ||
                  error == std::errc::no_such_file_or_directory)
          << error.message();
    });
    EXPECT_TRUE(wait_until([&] { return begun.load(); }));
    if (thread) {
      std::thread([&] { l.close(); }).join();
    } else {
      wg.go([&] { l.close(); });
    }
    wg.wait();
    waiting.pop_back();
    char byte;
    for (const net::conn& c : waiting) {
      (void)c.read({&byte, 1}, ec);
      EXPECT_TRUE(!ec || ec == std::errc::connection_reset) << ec.message();
    }
  }
}

}  // namespace
}  // namespace gofer
