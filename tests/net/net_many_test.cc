// 10,000 connections that are idle beside 100 that are busy. The clients are a process of their
// own, so that each side has all the descriptors that a process may have.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "os/thread.h"
#include "support/child.h"
#include "support/descriptors.h"
#include "support/scaled.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using namespace test;

using NetMany = NetworkTest;

int most_connections() {
  rlimit files{};
  EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  return static_cast<int>(std::min<rlim_t>(files.rlim_cur, 1'000'000)) - 500;
}

TEST_F(NetMany, IdleConnectionsHoldNoThreadAndDoNotDisturb) {
  const int busy = 100;
  const int idle = std::min(scaled(10'000), most_connections() - busy);
  ASSERT_GT(idle, 0);
  const int rounds = scaled(200);
  const net::listener l = net::listen("127.0.0.1:0");
  std::atomic<int> accepted{0};
  std::atomic<int> most_threads{0};
  wait_group server;
  server.go([&] {
    std::error_code ec;
    for (;;) {
      const net::conn c = l.accept(ec);
      if (ec) return;
      if (++accepted == idle + busy) most_threads = internal::os::count_threads();
      server.go([c] {
        c.write_all("!");
        char bytes[64];
        while (const std::size_t n = c.read(bytes)) c.write_all({bytes, n});
      });
    }
  });
  const ChildResult clients =
      run_child("net_clients",
                {"127.0.0.1", std::to_string(l.local_address().port()), std::to_string(idle),
                 std::to_string(busy), std::to_string(rounds)},
                {}, 300s);
  EXPECT_TRUE(clients.exited_with(0)) << clients;
  EXPECT_EQ(clients.out, "busy ones served\nidle ones served\n");
  l.close();
  server.wait();
  EXPECT_EQ(accepted, idle + busy);
  EXPECT_LT(most_threads, 40) << "for " << accepted << " goroutines";
}

}  // namespace
}  // namespace gofer
