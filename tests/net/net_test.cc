// Addresses, listeners and connections as users see them.
#include <arpa/inet.h>
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "runtime/poll/netpoll.h"
#include "runtime/sched/verify.h"
#include "support/descriptors.h"
#include "support/goroutines_and_threads.h"
#include "support/sockets.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using namespace test;

class Net : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(wait_until([] { return num_goroutine() == 0; }));
    EXPECT_EQ(internal::poll_state.waiters.load(), 0);
    internal::verify_scheduler();
  }
};

// ---- addresses

net::address ipv4(const char* host, std::uint16_t port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET, host, &in.sin_addr), 1);
  return {reinterpret_cast<sockaddr*>(&in), sizeof in};
}

net::address ipv6(const char* host, std::uint16_t port) {
  sockaddr_in6 in{};
  in.sin6_family = AF_INET6;
  in.sin6_port = htons(port);
  EXPECT_EQ(inet_pton(AF_INET6, host, &in.sin6_addr), 1);
  return {reinterpret_cast<sockaddr*>(&in), sizeof in};
}

net::address unix_domain(std::string_view path, std::size_t size) {
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  std::memcpy(un.sun_path, path.data(), path.size());
  return {reinterpret_cast<sockaddr*>(&un),
          static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size)};
}

TEST_F(Net, AddressesArePrinted) {
  EXPECT_EQ(ipv4("127.0.0.1", 80).to_string(), "127.0.0.1:80");
  EXPECT_EQ(ipv4("255.255.255.255", 65535).to_string(), "255.255.255.255:65535");
  EXPECT_EQ(ipv4("10.0.0.1", 0).host(), "10.0.0.1");
  EXPECT_EQ(ipv6("::1", 443).to_string(), "[::1]:443");
  EXPECT_EQ(ipv6("2001:db8::ff", 7).host(), "2001:db8::ff");
  EXPECT_EQ(ipv6("::", 9).port(), 9);
  EXPECT_EQ(ipv6("::", 9).family(), AF_INET6);
  EXPECT_EQ(unix_domain("/a/path", 8).to_string(), "unix:/a/path");
  EXPECT_EQ(unix_domain("/a/path", 7).to_string(), "unix:/a/path") << "without its zero";
  EXPECT_EQ(unix_domain(std::string(108, 'p'), 108).host(), std::string(108, 'p'));
  EXPECT_EQ(unix_domain(std::string_view("\0name", 5), 5).to_string(), "unix:@name");
  EXPECT_EQ(unix_domain(std::string_view("\0a\0b", 4), 4).host(), std::string("@a\0b", 4));
  EXPECT_EQ(unix_domain("", 0).to_string(), "unix:");
  EXPECT_EQ(unix_domain("/a", 3).port(), 0);
  EXPECT_EQ(net::address().to_string(), "");
  EXPECT_EQ(net::address().port(), 0);
  EXPECT_EQ(net::address().size(), 0u);
}

TEST_F(Net, AddressesAreCompared) {
  EXPECT_EQ(ipv4("1.2.3.4", 5), ipv4("1.2.3.4", 5));
  EXPECT_NE(ipv4("1.2.3.4", 5), ipv4("1.2.3.4", 6));
  EXPECT_NE(ipv4("1.2.3.4", 5), ipv6("::1", 5));
  EXPECT_EQ(net::address(), net::address());
  EXPECT_NE(net::address(), ipv4("0.0.0.0", 0));
}

TEST_F(Net, BadTextsAreRefusedWithTheReason) {
  using enum net::address_errc;
  struct Bad {
    std::string text;
    net::address_errc why;
    const char* says;
  };
  const Bad list[] = {
      {"", missing_port, "missing port in address"},
      {"127.0.0.1", missing_port, "missing port in address"},
      {"[::1]", missing_port, "missing port in address"},
      {"::1", too_many_colons, "too many colons in address"},
      {"::1:80", too_many_colons, "too many colons in address"},
      {"[::1]80", bad_brackets, "misplaced brackets in address"},
      {"[::1:80", bad_brackets, "misplaced brackets in address"},
      {"[]:80", bad_brackets, "misplaced brackets in address"},
      {"a[b]:80", bad_brackets, "misplaced brackets in address"},
      // getaddrinfo() would take the last 16 bits of these.
      {"127.0.0.1:65536", bad_port, "invalid port in address"},
      {"127.0.0.1:4294967296", bad_port, "invalid port in address"},
      {"127.0.0.1:-1", bad_port, "invalid port in address"},
      {"127.0.0.1: 0", bad_port, "invalid port in address"},
      {"127.0.0.1:+0", bad_port, "invalid port in address"},
      {std::string("127.0.0.1\0x:80", 14), zero_byte, "zero byte in address"},
  };
  in_goroutine_and_thread([&] {
    for (const Bad& bad : list) {
      std::error_code ec;
      EXPECT_FALSE(net::dial(bad.text, ec));
      EXPECT_EQ(ec, bad.why) << bad.text;
      EXPECT_EQ(ec, std::errc::invalid_argument) << bad.text;
      EXPECT_FALSE(net::listen(bad.text, {}, ec));
      EXPECT_EQ(ec, bad.why) << bad.text;
      try {
        (void)net::dial(bad.text);
        ADD_FAILURE();
      } catch (const std::system_error& e) {
        const std::string what = "gofer::net::dial" + (bad.text.empty() ? "" : " " + bad.text);
        EXPECT_EQ(e.what(), std::string((what + ": " + bad.says).c_str())) << "up to a zero";
      }
    }
    EXPECT_EQ(thrown_by([&] { (void)net::dial("unix:"); }), missing_path);
    const std::string long_path = "unix:/" + std::string(107, 'x');
    EXPECT_EQ(thrown_by([&] { (void)net::listen(long_path); }), path_too_long);
    EXPECT_EQ(thrown_by([&] { (void)net::dial(long_path); }), std::errc::filename_too_long);
    EXPECT_EQ(thrown_by([&] { (void)net::dial("unix:@" + std::string(108, 'x')); }), path_too_long);
  });
}

// The file would be another one than the path says.
TEST_F(Net, PathWithAZeroIsRefused) {
  const SocketFolder folder;
  std::error_code ec;
  const net::listener l = net::listen(folder.address("a") + std::string("\0b", 2), {}, ec);
  EXPECT_FALSE(l);
  EXPECT_EQ(ec, net::address_errc::zero_byte);
}

TEST_F(Net, NamesThatCannotBeLookedUpSaySo) {
  in_goroutine_and_thread([] {
    const std::string too_long = std::string(300, 'x') + ":1";
    for (const std::string& bad : {std::string("127.0.0.1:no-such-service"), too_long}) {
      std::error_code ec;
      EXPECT_FALSE(net::dial(bad, ec));
      EXPECT_EQ(&ec.category(), &net::resolve_category()) << ec.message();
      EXPECT_FALSE(ec.message().empty());
      EXPECT_FALSE(net::listen(bad, {}, ec));
      EXPECT_EQ(&ec.category(), &net::resolve_category()) << ec.message();
      EXPECT_FALSE(net::dial(background(), bad, ec));
      EXPECT_EQ(&ec.category(), &net::resolve_category()) << ec.message();
    }
    try {
      (void)net::dial("127.0.0.1:no-such-service");
      ADD_FAILURE();
    } catch (const std::system_error& e) {
      EXPECT_NE(std::string(e.what()).find("no-such-service"), std::string::npos) << e.what();
    }
    EXPECT_STREQ(net::resolve_category().name(), "gofer.resolve");
  });
}

// ---- connections

// Bytes go both ways and both ends know their addresses.
void check_connected(const net::conn& client, const net::conn& server) {
  client.write_all("from client");
  char bytes[11];
  EXPECT_EQ(server.read_full(bytes), 11u);
  EXPECT_EQ(std::string(bytes, 11), "from client");
  server.write_all("from server");
  EXPECT_EQ(client.read_full(bytes), 11u);
  EXPECT_EQ(std::string(bytes, 11), "from server");
  client.shutdown_write();
  EXPECT_EQ(server.read(bytes), 0u);
  server.write_all("a half");
  EXPECT_EQ(client.read_full({bytes, 6}), 6u);
  server.close();
  EXPECT_EQ(client.read(bytes), 0u);
  EXPECT_EQ(client.read(bytes), 0u) << "the end stays";
}

int no_delay(const net::conn& c) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(getsockopt(c.native_handle(), IPPROTO_TCP, TCP_NODELAY, &value, &size), 0);
  return value;
}

void check_tcp(const std::string& host) {
  in_goroutine_and_thread([&] {
    const net::listener l = net::listen(host + ":0");
    const net::address at = l.local_address();
    EXPECT_NE(at.port(), 0);
    const std::string text = host + ":" + std::to_string(at.port());
    for (int i = 0; i < 3; ++i) {
      const net::conn client = i == 0   ? net::dial(text)
                               : i == 1 ? net::dial(background(), text)
                                        : net::dial(text, 10s);
      const net::conn server = i == 0 ? l.accept() : l.accept(background());
      EXPECT_EQ(server.local_address().port(), at.port());
      EXPECT_EQ(client.remote_address().port(), at.port());
      EXPECT_EQ(client.local_address().port(), server.remote_address().port());
      if (!host.empty()) {
        EXPECT_EQ(client.local_address(), server.remote_address());
        EXPECT_EQ(client.remote_address(), server.local_address());
      }
      EXPECT_NE(no_delay(client), 0);
      EXPECT_NE(no_delay(server), 0);
      check_connected(client, server);
    }
  });
}

TEST_F(Net, ConnectsOverIpv4) { check_tcp("127.0.0.1"); }

TEST_F(Net, ConnectsOverIpv6) {
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6";
  check_tcp("[::1]");
}

TEST_F(Net, ConnectsToAllAddressesOfThisMachine) {
  check_tcp("");
  const net::listener l = net::listen(":0");
  const std::string port = std::to_string(l.local_address().port());
  const net::conn a = net::dial("127.0.0.1:" + port);
  check_connected(a, l.accept());
  if (has_ipv6()) {
    const net::conn b = net::dial("[::1]:" + port);
    check_connected(b, l.accept());
  }
}

// To dial "any address" is to dial this machine.
TEST_F(Net, ConnectsToThisMachineByItsAnyAddresses) {
  in_goroutine_and_thread([] {
    const net::listener l = net::listen("127.0.0.1:0");
    const std::string port = std::to_string(l.local_address().port());
    for (const char* host : {"", "0.0.0.0", "[::]"}) {
      const net::conn c = net::dial(std::string(host) + ":" + port, 60s);
      EXPECT_EQ(c.remote_address().to_string(), "127.0.0.1:" + port) << host;
      check_connected(c, l.accept());
    }
  });
}

TEST_F(Net, ListensWithTheFamiliesThatTheAddressSays) {
  for (const char* free_port : {"127.0.0.1:", "[::1]:", ":"}) {
    EXPECT_NE(net::listen(free_port).local_address().port(), 0) << free_port;
    std::error_code ec;
    EXPECT_FALSE(net::dial(free_port, ec));
    EXPECT_EQ(ec, net::address_errc::missing_port) << free_port;
  }
  EXPECT_EQ(net::listen("0.0.0.0:0").local_address().to_string().substr(0, 8), "0.0.0.0:");
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6";
  for (const char* any : {":0", "[::]:0"}) {
    const net::listener l = net::listen(any);
    EXPECT_EQ(l.local_address().family(), AF_INET6) << any;
    const std::string port = std::to_string(l.local_address().port());
    const net::conn v4 = net::dial("127.0.0.1:" + port);
    check_connected(v4, l.accept());
    const net::conn v6 = net::dial("[::1]:" + port);
    check_connected(v6, l.accept());
  }
}

// IPv4 alone would be less than what was asked for.
TEST_F(Net, PortThatIsTakenForIpv6IsTaken) {
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6";
  const int native = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ASSERT_EQ(setsockopt(native, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on), 0);
  const net::address any = ipv6("::", 0);
  ASSERT_EQ(bind(native, any.data(), any.size()), 0);
  ASSERT_EQ(listen(native, 1), 0);
  const net::listener l(native);
  const std::string port = std::to_string(l.local_address().port());
  EXPECT_EQ(thrown_by([&] { (void)net::listen(":" + port); }), std::errc::address_in_use);
}

TEST_F(Net, KernelChoosesAUnixNameThatIsFree) {
  in_goroutine_and_thread([] {
    const net::listener a = net::listen("unix:");
    const net::listener b = net::listen("unix:");
    const std::string at = a.local_address().to_string();
    EXPECT_TRUE(at.starts_with("unix:@")) << at;
    EXPECT_NE(at, b.local_address().to_string());
    const net::conn c = net::dial(at);
    check_connected(c, a.accept());
  });
}

TEST_F(Net, ConnectsByName) {
  in_goroutine_and_thread([] {
    const net::listener l = net::listen("localhost:0");
    const std::string port = std::to_string(l.local_address().port());
    const net::conn c = net::dial("localhost:" + port);
    check_connected(c, l.accept());
    // The name may have several addresses, of which one is the right one.
    const net::listener l4 = net::listen("127.0.0.1:0");
    const net::conn c4 = net::dial("localhost:" + std::to_string(l4.local_address().port()));
    check_connected(c4, l4.accept());
  });
}

TEST_F(Net, ConnectsOverAUnixSocket) {
  in_goroutine_and_thread([] {
    const SocketFolder folder;
    const std::string at = folder.address("socket");
    net::listener l = net::listen(at);
    EXPECT_EQ(l.local_address().to_string(), at);
    const net::conn client = net::dial(at);
    const net::conn server = l.accept();
    EXPECT_EQ(client.remote_address().to_string(), at);
    EXPECT_EQ(server.local_address().to_string(), at);
    EXPECT_EQ(server.remote_address().to_string(), "unix:");
    check_connected(client, server);
    EXPECT_EQ(thrown_by([&] { (void)net::listen(at); }), std::errc::address_in_use);
    struct stat info;
    EXPECT_EQ(stat(folder.path("socket").c_str(), &info), 0) << "another's file stays";
    const net::listener copy = l;
    l = net::listener();
    EXPECT_EQ(stat(folder.path("socket").c_str(), &info), 0);
    copy.close();
    EXPECT_EQ(stat(folder.path("socket").c_str(), &info), -1);
    EXPECT_EQ(thrown_by([&] { (void)net::dial(at); }), std::errc::no_such_file_or_directory);
    EXPECT_TRUE(net::listen(at)) << "and can be made again";
    EXPECT_EQ(stat(folder.path("socket").c_str(), &info), -1);
  });
}

TEST_F(Net, ConnectsOverAnAbstractName) {
  in_goroutine_and_thread([] {
    const std::string at = "unix:@gofer-net-test-" + std::to_string(getpid());
    const net::listener l = net::listen(at);
    EXPECT_EQ(l.local_address().to_string(), at);
    const net::conn client = net::dial(at);
    check_connected(client, l.accept());
    l.close();
    EXPECT_EQ(thrown_by([&] { (void)net::dial(at); }), std::errc::connection_refused);
    const std::string longest = "unix:@" + std::string(107, 'x');
    const net::listener l2 = net::listen(longest);
    const net::conn c2 = net::dial(longest);
    EXPECT_EQ(c2.remote_address().to_string(), longest);
  });
}

TEST_F(Net, AdoptedSocketsWorkTheSame) {
  const int native = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const net::address any = ipv4("127.0.0.1", 0);
  ASSERT_EQ(bind(native, any.data(), any.size()), 0);
  ASSERT_EQ(listen(native, 5), 0);
  const net::listener l(native);
  EXPECT_EQ(l.native_handle(), native);
  const net::address at = l.local_address();
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(client, at.data(), at.size()), 0);
  const net::conn c(client);
  const net::conn s = l.accept();
  EXPECT_NE(no_delay(s), 0) << "as of every connection";
  check_connected(c, s);
}

TEST_F(Net, PortCanBeShared) {
  net::listener one = net::listen("127.0.0.1:0", {.reuse_port = true});
  const std::string at = one.local_address().to_string();
  EXPECT_EQ(thrown_by([&] { (void)net::listen(at); }), std::errc::address_in_use);
  const net::listener two = net::listen(at, {.reuse_port = true});
  std::atomic<int> accepted{0};
  wait_group wg;
  for (const net::listener& l : {one, two}) {
    wg.go([&, l] {
      std::error_code ec;
      while (l.accept(ec)) ++accepted;
      EXPECT_EQ(ec, io_errc::closed);
    });
  }
  for (int i = 0; i < 50; ++i) (void)net::dial(at);
  EXPECT_TRUE(wait_until([&] { return accepted == 50; })) << accepted;
  one.close();
  two.close();
  wg.wait();
}

TEST_F(Net, PortCanBeUsedAgainAtOnce) {
  net::listener l = net::listen("127.0.0.1:0");
  const std::string at = l.local_address().to_string();
  for (int i = 0; i < 5; ++i) {
    const net::conn c = net::dial(at);
    l.accept().close();  // this end remembers the connection for a minute
    char byte;
    EXPECT_EQ(c.read({&byte, 1}), 0u);
    l.close();
    l = net::listen(at);
  }
}

TEST_F(Net, OptionsOfAConnection) {
  const net::listener l = net::listen("127.0.0.1:0");
  const net::conn c = net::dial(l.local_address().to_string());
  c.set_no_delay(false);
  EXPECT_EQ(no_delay(c), 0);
  c.set_no_delay(true);
  EXPECT_NE(no_delay(c), 0);
  const auto option = [&](int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    getsockopt(c.native_handle(), level, name, &value, &size);
    return value;
  };
  c.set_keep_alive(30s);
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPIDLE), 30);
  c.set_keep_alive({.idle = 20s, .interval = 3s, .probes = 4});
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPIDLE), 20);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPINTVL), 3);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPCNT), 4);
  c.set_keep_alive(0s);
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 0);
  c.close();
  EXPECT_EQ(thrown_by([&] { c.set_no_delay(true); }), io_errc::closed);
  EXPECT_EQ(thrown_by([&] { c.remote_address(); }), io_errc::closed);
  EXPECT_EQ(thrown_by([&] { c.shutdown_read(); }), io_errc::closed);
  const net::conn none;
  EXPECT_EQ(thrown_by([&] { none.local_address(); }), io_errc::closed);
  EXPECT_EQ(thrown_by([&] { (void)net::listener().accept(); }), io_errc::closed);
  EXPECT_EQ(thrown_by([&] { net::listener().local_address(); }), io_errc::closed);
}

// {on, idle, interval, probes}
std::vector<int> keep_alive_of(const net::conn& c) {
  std::vector<int> values;
  const auto ask = [&](int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    getsockopt(c.native_handle(), level, name, &value, &size);
    values.push_back(value);
  };
  ask(SOL_SOCKET, SO_KEEPALIVE);
  for (const int name : {TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT}) ask(IPPROTO_TCP, name);
  return values;
}

TEST_F(Net, ConnectionsAreKeptAliveAsInGo) {
  const net::listener l = net::listen("127.0.0.1:0");
  const Connection c = connect_to(l);
  const std::vector<int> as_in_go{1, 15, 15, 9};
  EXPECT_EQ(keep_alive_of(c.client), as_in_go);
  EXPECT_EQ(keep_alive_of(c.server), as_in_go);

  const net::listener other =
      net::listen("127.0.0.1:0", {.keep_alive = {.idle = 60s, .interval = 2s, .probes = 3}});
  const net::conn off = net::dial(background(), other.local_address().to_string(),
                                  {.keep_alive = {.enabled = false}});
  EXPECT_EQ(keep_alive_of(off)[0], 0);
  for (const net::keep_alive& wrong :
       {net::keep_alive{.idle = 0s}, net::keep_alive{.idle = std::chrono::seconds::max()},
        net::keep_alive{.interval = 40'000s}, net::keep_alive{.probes = 0}}) {
    std::error_code ec;
    (void)net::dial(background(), other.local_address().to_string(), {.keep_alive = wrong}, ec);
    EXPECT_EQ(ec, std::errc::invalid_argument);
    EXPECT_EQ(thrown_by([&] { (void)net::listen("127.0.0.1:0", {.keep_alive = wrong}); }),
              std::errc::invalid_argument);
  }
  EXPECT_EQ(keep_alive_of(other.accept()), (std::vector<int>{1, 60, 2, 3}));

  const int native = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const net::address any = ipv4("127.0.0.1", 0);
  ASSERT_EQ(bind(native, any.data(), any.size()), 0);
  ASSERT_EQ(listen(native, 5), 0);
  EXPECT_EQ(keep_alive_of(connect_to(net::listener(native)).server), as_in_go) << "adopted";
}

// ---- errors

TEST_F(Net, TimeOutsAreToldApart) {
  in_goroutine_and_thread([] {
    const Connection c = make_connection();
    char byte;
    const auto [ctx, cancel] = with_timeout(background(), 1ms);
    const std::error_code of_context = thrown_by([&, &ctx = ctx] {
      (void)c.client.read(ctx, {&byte, 1});
    });
    c.client.set_deadline(1ms);
    const std::error_code of_descriptor = thrown_by([&] { (void)c.client.read({&byte, 1}); });
    const std::error_code again = thrown_by([&] { (void)c.client.read({&byte, 1}); });
    const std::error_code of_kernel(ETIMEDOUT, std::system_category());
    EXPECT_EQ(of_context, context_errc::deadline_exceeded);
    EXPECT_EQ(of_context.message(), "context deadline exceeded");
    EXPECT_EQ(of_descriptor, io_errc::deadline_exceeded);
    EXPECT_EQ(of_descriptor.message(), "descriptor's deadline exceeded");
    EXPECT_EQ(again, of_descriptor) << "before it waits, too";
    EXPECT_NE(of_context, of_descriptor);
    EXPECT_NE(of_context, of_kernel);
    EXPECT_NE(of_descriptor, of_kernel);
    for (const auto& ec : {of_context, of_descriptor, of_kernel}) {
      EXPECT_EQ(ec, std::errc::timed_out) << ec.message();
      EXPECT_NE(ec, std::errc::operation_canceled);
    }
    const auto [cancelled, cancel_it] = with_cancel(background());
    cancel_it();
    EXPECT_EQ(cancelled.err(), context_errc::canceled);
    EXPECT_EQ(cancelled.err(), std::errc::operation_canceled);
    EXPECT_NE(cancelled.err(), std::errc::timed_out);
    EXPECT_EQ(cancelled.err().message(), "context canceled");
  });
}

TEST_F(Net, DescriptorsAreNotInherited) {
  const net::listener l = net::listen("127.0.0.1:0");
  const net::conn c = net::dial(l.local_address().to_string());
  const net::conn s = l.accept();
  for (const int native : {l.native_handle(), c.native_handle(), s.native_handle()}) {
    EXPECT_EQ(fcntl(native, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  }
}

TEST_F(Net, ShutdownOfReadingEndsAWait) {
  in_goroutine_and_thread([] {
    const net::listener l = net::listen("127.0.0.1:0");
    const net::conn c = net::dial(l.local_address().to_string());
    const net::conn s = l.accept();
    // One that has read before waits without trying first.
    s.write_all("xy");
    char bytes[100];
    EXPECT_EQ(c.read(bytes), 2u);
    wait_group wg;
    wg.go([&] {
      EXPECT_TRUE(waiting_for_io(1));
      c.shutdown_read();
    });
    EXPECT_EQ(c.read(bytes), 0u);
    wg.wait();
    EXPECT_EQ(c.read(bytes), 0u);
    c.write_all("still");
    EXPECT_EQ(s.read(bytes), 5u);
  });
}

// ---- many

TEST_F(Net, ManyConnectionsEchoWhatTheyGet) {
  const int conns = internal::sanitizers_enabled ? 20 : 200;
  const int messages = scaled(400);
  const net::listener l = net::listen("127.0.0.1:0");
  const std::string at = l.local_address().to_string();
  wait_group server;
  server.go([&] {
    std::error_code ec;
    while (net::conn c = l.accept(ec)) {
      server.go([c] {
        char bytes[777];
        while (const std::size_t n = c.read(bytes)) c.write_all({bytes, n});
      });
    }
  });
  wait_group clients;
  std::atomic<int> right{0};
  for (int i = 0; i < conns; ++i) {
    clients.go([&, i] {
      const net::conn c = net::dial(at);
      for (int m = 0; m < messages; ++m) {
        const std::string text =
            std::to_string(i) + "/" + std::to_string(m) + std::string((i * 7 + m * 13) % 900, '.');
        c.write_all(text);
        std::string back(text.size(), '\0');
        if (c.read_full(back) == text.size() && back == text) ++right;
      }
    });
  }
  clients.wait();
  l.close();
  server.wait();
  EXPECT_EQ(right, conns * messages);
}

}  // namespace
}  // namespace gofer
