// fork() in a program with connections. The child may exec, _exit, and let go of what it has
// inherited; the parent's connections, its netpoller and its socket files are not harmed by that,
// nor by copies of descriptors that live on in the child.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/census.h"
#include "support/descriptors.h"
#include "support/goroutines_and_threads.h"
#include "support/pipe.h"
#include "support/sockets.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using namespace test;

using NetFork = NetworkTest;

// The exit code of a child, or minus the number of the signal that ended it.
int end_of(pid_t pid) {
  int status = 0;
  pid_t ended = 0;
  const bool in_time = wait_until([&] {
    ended = waitpid(pid, &status, WNOHANG);
    return ended != 0;
  });
  if (!in_time) {
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
  }
  EXPECT_TRUE(in_time) << "the child does not end";
  EXPECT_TRUE(!in_time || ended == pid) << errno;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// A child that runs f and ends with what it returns. It has all descriptors of the parent.
class Child {
 public:
  template <class F>
  explicit Child(F f) : pid_(fork()) {
    if (pid_ == 0) _exit(f());
    EXPECT_GT(pid_, 0);
  }
  ~Child() {
    if (pid_ > 0) end_of(pid_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  int end() { return end_of(std::exchange(pid_, -1)); }

 private:
  pid_t pid_;
};

// A child that does nothing but have copies of all descriptors, until its end.
class Holder {
 public:
  Holder()
      : child_([this] {
          ::close(pipe_.ends[1]);
          return pipe_.read_one() ? 21 : 22;
        }) {}
  ~Holder() {
    EXPECT_TRUE(pipe_.write_one());
    EXPECT_EQ(child_.end(), 21);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

 private:
  Pipe pipe_;
  Child child_;
};

void exchange(const fd& from, const fd& to, std::uint64_t value) {
  std::uint64_t got = 0;
  wait_group wg;
  wg.go([&] {
    std::error_code ec;
    to.read_full({&got, sizeof got}, ec);
    EXPECT_FALSE(ec) << ec.message();
  });
  EXPECT_TRUE(waiting_for_io(1));  // so that an event has to come
  from.write_all({&value, sizeof value});
  wg.wait();
  EXPECT_EQ(got, value);
}

void exchange_both_ways(const Connection& c) {
  exchange(c.client, c.server, 1);
  exchange(c.server, c.client, 2);
}

// ---- the child ends, or becomes another program

TEST_F(NetFork, ChildMayExit) {
  in_goroutine_and_thread([] {
    const Connection c = make_connection();
    Child child([] { return 5; });
    EXPECT_EQ(child.end(), 5);
    exchange_both_ways(c);
  });
}

TEST_F(NetFork, ChildThatExecsInheritsNothing) {
  in_goroutine_and_thread([] {
    const net::listener l = net::listen("127.0.0.1:0");
    const Connection c = connect_to(l);
    const Pipe said;
    Child child([&] {
      dup2(said.ends[1], STDOUT_FILENO);
      execl("/bin/ls", "ls", "-l", "/proc/self/fd/", static_cast<char*>(nullptr));
      return 51;
    });
    EXPECT_EQ(child.end(), 0);
    char text[8192];
    const ssize_t n = read(said.ends[0], text, sizeof text);
    ASSERT_GT(n, 0);
    const std::string list(text, static_cast<std::size_t>(n));
    EXPECT_NE(list.find("0 -> "), std::string::npos) << list;
    EXPECT_EQ(list.find("eventpoll"), std::string::npos) << list;
    for (const int native :
         {l.native_handle(), c.client.native_handle(), c.server.native_handle()}) {
      EXPECT_EQ(list.find(" " + std::to_string(native) + " -> socket:"), std::string::npos) << list;
    }
    exchange_both_ways(c);
  });
}

// ---- the child lets go of what it has inherited

struct Inherited {
  net::listener listener;
  Connection connection;
};

// Runs `child` on copies of handles of the parent's, which are as good as new afterwards.
void check_after(const std::function<int(Inherited)>& child) {
  in_goroutine_and_thread([&] {
    const SocketFolder folder;
    const net::listener l = net::listen(folder.address("socket"));
    const Connection c = make_connection();
    const int watched = watched_descriptors();
    Child process([&] { return child({l, c}); });
    EXPECT_EQ(process.end(), 6);
    EXPECT_EQ(watched_descriptors(), watched) << "what the parent waits for is its own";
    struct stat info;
    EXPECT_EQ(stat(folder.path("socket").c_str(), &info), 0) << "and so is its socket file";
    exchange_both_ways(c);
    exchange_both_ways(connect_to(l));
  });
}

TEST_F(NetFork, ChildMayCloseWhatItHasInherited) {
  check_after([](const Inherited& has) {
    const int native = has.connection.client.native_handle();
    has.listener.close();
    has.connection.client.close();
    has.connection.server.close();
    return fcntl(native, F_GETFD) < 0 && errno == EBADF && !has.listener ? 6 : 7;
  });
}

TEST_F(NetFork, ChildMayCloseADescriptorThatIsInUse) {
  const Connection c = make_connection();
  wait_group wg;
  char byte = 0;
  std::error_code ec;
  wg.go([&] { EXPECT_EQ(c.server.read({&byte, 1}, ec), 1u); });
  EXPECT_TRUE(waiting_for_io(1));
  for (const bool again : {false, true}) {
    Child process([&] {
      c.server.close();
      c.client.close();
      return 6;
    });
    EXPECT_EQ(process.end(), 6) << again;
  }
  c.client.write_all("x");
  wg.wait();
  EXPECT_EQ(byte, 'x');
}

// Handles go out of scope: those that the goroutine's function has, too.
TEST_F(NetFork, ChildThatReturnsFromItsGoroutineEndsQuietly) {
  const SocketFolder folder;
  const net::listener l = net::listen(folder.address("socket"));
  const Connection c = make_connection();
  chan<pid_t> forked(1);
  go([forked, l, mine = c] {
    const pid_t pid = fork();
    if (pid == 0) return;
    forked.send(pid);
  });
  EXPECT_EQ(end_of(*forked.recv()), 0);
  exchange_both_ways(c);
  exchange_both_ways(connect_to(l));
}

TEST_F(NetFork, ChildThatWaitsIsAborted) {
  in_goroutine_and_thread([] {
    const Connection c = make_connection();
    for (const bool reads : {false, true}) {
      const Pipe said;
      Child process([&] {
        dup2(said.ends[1], STDERR_FILENO);
        char byte;
        std::error_code ec;
        if (reads) {
          (void)c.client.read({&byte, 1}, ec);
        } else {
          (void)net::listen("127.0.0.1:0", {}, ec);
        }
        return 8;
      });
      EXPECT_EQ(process.end(), -SIGABRT) << reads;
      char text[1000] = "";
      EXPECT_GT(read(said.ends[0], text, sizeof text - 1), 0);
      EXPECT_NE(std::string(text).find("in the child of a fork()"), std::string::npos) << text;
    }
    exchange_both_ways(c);
  });
}

// ---- the child lives on with its copies

// A closed descriptor whose copy lives makes events still, as long as epoll knows it.
TEST_F(NetFork, EventsOfACopyInTheChildAreIgnored) {
  in_goroutine_and_thread([] {
    const net::listener l = net::listen("127.0.0.1:0");
    const int watched = watched_descriptors();
    std::vector<net::conn> others;  // the other ends of what the parent closes
    std::vector<net::conn> closed;
    for (int i = 0; i < 20; ++i) {
      const Connection c = connect_to(l);
      closed.push_back(c.client);
      others.push_back(c.server);
    }
    const Holder holder;
    std::vector<int> numbers;
    for (const net::conn& c : closed) {
      numbers.push_back(c.native_handle());
      c.close();
    }
    EXPECT_EQ(watched_descriptors(), watched == 0 ? 0 : watched + 20) << "one end of each";
    std::vector<Connection> fresh;
    std::size_t reused = 0;
    for (int i = 0; i < 20; ++i) {
      fresh.push_back(connect_to(l));
      for (const int n : numbers) reused += fresh.back().client.native_handle() == n;
    }
    EXPECT_GT(reused, 0u);
    std::atomic<int> right{0};
    std::atomic<int> ended{0};
    wait_group wg;
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      wg.go([&, i] {
        std::uint64_t value = 0;
        std::error_code ec;
        fresh[i].client.read_full({&value, sizeof value}, ec);
        right += !ec && value == i + 1;
        ++ended;
      });
    }
    EXPECT_TRUE(waiting_for_io(20));
    for (int round = 0; round < 10; ++round) {
      for (const net::conn& c : others) c.write_all("for the child");
      yield();
    }
    EXPECT_EQ(ended, 0);
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      const std::uint64_t value = i + 1;
      fresh[i].server.write_all({&value, sizeof value});
    }
    wg.wait();
    EXPECT_EQ(right, 20);
  });
}

TEST_F(NetFork, DescriptorsAreOpenedAndClosedBesideAChildThatHasCopies) {
  const net::listener l = net::listen("127.0.0.1:0");
  const int rounds = scaled(400);
  for (int holders = 0; holders < 5; ++holders) {
    const Connection before = connect_to(l);
    const Ends pair = make_pair();
    const Holder holder;
    const Connection after = connect_to(l);
    wait_group wg;
    std::atomic<int> wrong{0};
    for (int worker = 0; worker < 4; ++worker) {
      wg.go([&, worker] {
        for (int i = 0; i < rounds; ++i) {
          const Ends e = worker % 2 == 0 ? make_pipe() : make_pair();
          wait_group writer;
          writer.go([&] { e.out.write_all({&i, sizeof i}); });
          int got = -1;
          e.in.read_full({&got, sizeof got});
          wrong += got != i;
          writer.wait();
        }
      });
    }
    wg.wait();
    EXPECT_EQ(wrong, 0);
    exchange_both_ways(before);
    exchange(pair.out, pair.in, 3);
    exchange_both_ways(after);
  }
}

// The other side of a connection sees its end only when the child's copy is closed, too.
TEST_F(NetFork, EndIsSeenWhenTheChildHasEnded) {
  in_goroutine_and_thread([] {
    const Connection c = make_connection();
    wait_group wg;
    std::atomic<bool> ended{false};
    {
      const Holder holder;
      c.client.close();
      wg.go([&] {
        char byte;
        EXPECT_EQ(c.server.read({&byte, 1}), 0u);
        ended = true;
      });
      EXPECT_TRUE(waiting_for_io(1));
      EXPECT_FALSE(ended);
    }
    wg.wait();
  });
}

// ---- many

TEST_F(NetFork, ManyForksBesideBusyConnections) {
  const net::listener l = net::listen("127.0.0.1:0");
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::atomic<std::int64_t> rounds{0};
  wait_group busy;
  for (int i = 0; i < 4; ++i) {
    const Connection c = connect_to(l);
    busy.go([c] {
      char bytes[64];
      std::error_code ec;
      while (const std::size_t n = c.server.read(bytes, ec)) c.server.write_all({bytes, n}, ec);
    });
    busy.go([&, c] {
      for (std::uint64_t n = 1; !stop; ++n) {
        std::uint64_t got = 0;
        c.client.write_all({&n, sizeof n});
        c.client.read_full({&got, sizeof got});
        wrong += got != n;
        ++rounds;
      }
      c.client.shutdown_write();
    });
  }
  const int forks = internal::sanitizers_enabled ? 5 : 20;
  const auto fork_often = [&] {
    for (int i = 0; i < forks; ++i) {
      const std::int64_t before = rounds;
      Child child([&l] {
        l.close();
        return 9;
      });
      EXPECT_TRUE(wait_until([&] { return rounds > before + 10; }));
      EXPECT_EQ(child.end(), 9);
    }
  };
  wait_group forking;
  forking.go(fork_often);
  std::thread thread(fork_often);
  thread.join();
  forking.wait();
  stop = true;
  busy.wait();
  EXPECT_EQ(wrong, 0);
  exchange_both_ways(connect_to(l));
}

}  // namespace
}  // namespace gofer
