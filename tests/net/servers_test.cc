// The servers of examples/, as their users see them: child processes that are talked to.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "runtime/base/sanitizer.h"
#include "support/pipe.h"
#include "support/sockets.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 60s;

std::string read_line(const fd& from) {
  std::string line;
  char c;
  while (from.read({&c, 1}) == 1 && c != '\n') line += c;
  return line;
}

// A server that runs until stop().
class Server {
 public:
  explicit Server(const std::string& name, std::vector<std::string> arguments) {
    std::string path = std::string(GOFER_EXAMPLE_SERVERS) + "/" + name;
    std::vector<char*> argv{path.data()};
    for (std::string& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    test::Pipe out;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, out.ends[1], STDOUT_FILENO);
    EXPECT_EQ(posix_spawn(&pid_, path.c_str(), &actions, nullptr, argv.data(), environ), 0) << path;
    posix_spawn_file_actions_destroy(&actions);
    const fd said(dup(out.ends[0]));
    said.set_read_deadline(patience);
    const std::string line = read_line(said);
    const std::string prefix = "listening at ";
    EXPECT_TRUE(line.starts_with(prefix)) << line;
    if (line.size() > prefix.size()) address_ = line.substr(prefix.size());
  }
  ~Server() {
    if (pid_ > 0) stop();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const std::string& address() const { return address_; }
  net::conn dial() const {
    net::conn c = net::dial(address_, patience);
    c.set_deadline(patience);
    return c;
  }
  void stop() {
    kill(pid_, SIGTERM);
    int status = -1;
    EXPECT_EQ(blocking([&] { return waitpid(pid_, &status, 0); }), pid_);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  std::string address_;
};

TEST(Servers, EchoGivesEverythingBack) {
  run([] {
    const Server server("echo", {"127.0.0.1:0"});
    const int connections = internal::sanitizers_enabled ? 10 : 50;
    wait_group clients;
    for (int i = 0; i < connections; ++i) {
      clients.go([&, i] {
        const net::conn c = server.dial();
        for (int k = 0; k < 50; ++k) {
          const std::string said(static_cast<size_t>(1 + (i * 37 + k * 101) % 9000),
                                 static_cast<char>('a' + k % 26));
          std::string heard(said.size(), '\0');
          c.write_all(said);
          c.read_full(heard);
          EXPECT_EQ(heard, said);
        }
        c.shutdown_write();
        char end;
        EXPECT_EQ(c.read({&end, 1}), 0u);
      });
    }
    clients.wait();
  });
}

TEST(Servers, EndsWithConnectionsOpen) {
  run([] {
    Server server("echo", {"127.0.0.1:0"});
    const net::conn c = server.dial();
    c.write_all("x");
    char byte;
    c.read_full({&byte, 1});
    server.stop();
    EXPECT_EQ(c.read({&byte, 1}), 0u);
  });
}

TEST(Servers, ProxyPassesEverythingOnAndBothEnds) {
  run([] {
    const Server echo("echo", {"127.0.0.1:0"});
    const Server proxy("proxy", {"127.0.0.1:0", echo.address()});
    const net::conn c = proxy.dial();
    const std::string said(internal::sanitizers_enabled ? 300'000 : 3'000'000, 'p');
    wait_group writer;
    writer.go([&] {
      c.write_all(said);
      c.shutdown_write();
    });
    std::string heard;
    char bytes[8192];
    while (const size_t n = c.read(bytes)) heard.append(bytes, n);
    writer.wait();
    EXPECT_TRUE(heard == said) << heard.size();
  });
}

TEST(Servers, ProxyClosesItsSideWhenTheTargetIsNotThere) {
  run([] {
    std::string nobody;
    {
      const net::listener gone = net::listen(test::own_loopback());
      nobody = gone.local_address().to_string();
    }
    const Server proxy("proxy", {"127.0.0.1:0", nobody});
    const net::conn c = proxy.dial();
    char byte;
    EXPECT_EQ(c.read({&byte, 1}), 0u);
  });
}

TEST(Servers, ChatTellsAllOtherClients) {
  run([] {
    const Server chat("chat", {"unix:@gofer-chat-" + std::to_string(getpid())});
    const net::conn anna = chat.dial();
    anna.write_all("anna\n");
    EXPECT_EQ(read_line(anna), "* welcome, anna");
    const net::conn ben = chat.dial();
    ben.write_all("ben\r\n");
    EXPECT_EQ(read_line(ben), "* welcome, ben");
    EXPECT_EQ(read_line(anna), "* ben is here");
    ben.write_all("hello\nand ");
    EXPECT_EQ(read_line(anna), "ben: hello");
    ben.write_all("good bye\n");
    EXPECT_EQ(read_line(anna), "ben: and good bye");
    anna.write_all("so soon?\n");
    EXPECT_EQ(read_line(ben), "anna: so soon?");
    ben.close();
    EXPECT_EQ(read_line(anna), "* ben has left");
  });
}

std::string get(const Server& server, const std::string& path) {
  const net::conn c = server.dial();
  c.write_all("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  std::string heard;
  char bytes[8192];
  while (const size_t n = c.read(bytes)) heard.append(bytes, n);
  return heard;
}

TEST(Servers, MetricsAreServedAsTextAndAsJson) {
  run([] {
    const Server server("metrics", {"127.0.0.1:0"});
    const std::string text = get(server, "/metrics");
    EXPECT_TRUE(text.starts_with("HTTP/1.1 200 OK\r\n")) << text;
    EXPECT_NE(text.find("Content-Type: text/plain; version=0.0.4\r\n"), text.npos) << text;
    EXPECT_NE(text.find("\ngofer_sched_latency_seconds_count "), text.npos) << text;
    const auto body = text.find("\r\n\r\n") + 4;
    EXPECT_NE(text.find("Content-Length: " + std::to_string(text.size() - body) + "\r\n"),
              text.npos);
    const std::string json = get(server, "/metrics.json");
    EXPECT_NE(json.find("\"/sched/latencies:seconds\": {\"count\": "), json.npos) << json;
    EXPECT_TRUE(get(server, "/").starts_with("HTTP/1.1 404 "));
    const net::conn c = server.dial();
    c.write_all("nonsense\r\n\r\n");
    EXPECT_EQ(read_line(c), "HTTP/1.1 400 Bad Request\r");
  });
}

}  // namespace
}  // namespace gofer
