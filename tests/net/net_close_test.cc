// Listeners that are closed in the middle of everything: while many dial, while many accept.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/census.h"
#include "support/descriptors.h"
#include "support/sockets.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using namespace test;

class NetClose : public NetworkTest {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    make_connection();  // the netpoller is there
    sockets_ = open_sockets_and_pipes();
    watched_ = watched_descriptors();
  }
  void TearDown() override {
    NetworkTest::TearDown();
    EXPECT_EQ(open_sockets_and_pipes(), sockets_);
    EXPECT_EQ(watched_descriptors(), watched_);
  }

 private:
  int sockets_ = 0;
  int watched_ = 0;
};

// Runs f in so many goroutines, and in some threads beside them.
class Crowd {
 public:
  template <class F>
  Crowd(int goroutines, int threads, F f) {
    for (int i = 0; i < goroutines; ++i) group_.go(f);
    for (int i = 0; i < threads; ++i) threads_.emplace_back(f);
  }
  ~Crowd() { wait(); }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  void wait() {
    group_.wait();
    for (std::thread& t : threads_) t.join();
    threads_.clear();
  }

 private:
  wait_group group_;
  std::vector<std::thread> threads_;
};

bool is_gone(const std::error_code& ec) {
  return ec == std::errc::connection_refused || ec == std::errc::connection_reset ||
         ec == std::errc::broken_pipe || ec == std::errc::no_such_file_or_directory;
}

// How dials ended.
struct Dials {
  std::atomic<int> connected{0};
  std::atomic<int> refused{0};
};

// Reads to the end of a connection whose listener may be closed. If a listener closes while a
// connection is being made, Linux forgets that connection and does not tell the dialling side. Only
// a side that sends something learns of it.
std::size_t ask(const net::conn& c, char& byte, std::error_code& ec) {
  c.set_deadline(60s);  // far from what is to happen
  c.write_all("?", ec);
  return ec ? 0 : c.read({&byte, 1}, ec);
}

// Dials until no listener is there any more. A connection is closed by the side that accepted it,
// or reset together with the listener.
void dial_until_refused(const std::string& at, Dials& dials) {
  for (;;) {
    std::error_code ec;
    const net::conn c = net::dial(at, ec);
    if (!c) {
      ++dials.refused;
      EXPECT_TRUE(is_gone(ec)) << ec.message();
      return;
    }
    ++dials.connected;
    char byte = 0;
    EXPECT_EQ(ask(c, byte, ec), 0u);
    EXPECT_TRUE(!ec || is_gone(ec)) << ec.message();
  }
}

void close_while_many_dial(const std::string& at, int acceptors) {
  const int goroutines = internal::sanitizers_enabled ? 8 : 24;
  constexpr int threads = 4;
  const int rounds = scaled(100);
  for (int round = 0; round < rounds; ++round) {
    const net::listener l = net::listen(at);
    const std::string to = l.local_address().to_string();
    Dials dials;
    std::atomic<int> closed{0};
    Crowd accepting(acceptors, acceptors, [&] {
      std::error_code ec;
      while (l.accept(ec)) continue;
      closed += ec == io_errc::closed;
    });
    Crowd dialling(goroutines, threads, [&] { dial_until_refused(to, dials); });
    EXPECT_TRUE(wait_until([&] { return dials.connected >= round % 20; }));
    if (round % 2 == 0) {
      std::thread([&] { l.close(); }).join();
    } else {
      l.close();
    }
    dialling.wait();
    accepting.wait();
    EXPECT_EQ(dials.refused, goroutines + threads);
    EXPECT_EQ(closed, 2 * acceptors);
  }
}

TEST_F(NetClose, ListenerThatAcceptsIsClosedWhileManyDial) {
  close_while_many_dial(own_loopback(), 2);
}

// All that have dialled are in the backlog.
TEST_F(NetClose, ListenerThatNeverAcceptsIsClosedWhileManyDial) {
  close_while_many_dial(own_loopback(), 0);
}

TEST_F(NetClose, UnixListenerIsClosedWhileManyDial) {
  const SocketFolder folder;
  close_while_many_dial(folder.address("socket"), 2);
  close_while_many_dial(folder.address("socket"), 0);
}

TEST_F(NetClose, EndsAllAccepts) {
  const SocketFolder folder;
  for (const std::string& at : {own_loopback(), folder.address("socket")}) {
    for (const bool thread : {false, true}) {
      const net::listener l = net::listen(at);
      std::atomic<int> begun{0};
      std::atomic<int> closed{0};
      const auto [ctx, cancel] = with_cancel(background());
      Crowd accepting(50, 4, [&, ctx = ctx] {
        std::error_code ec;
        EXPECT_FALSE(++begun % 2 == 0 ? l.accept(ctx, ec) : l.accept(ec));
        closed += ec == io_errc::closed;
      });
      EXPECT_TRUE(wait_until([&] { return begun == 54; }));
      EXPECT_TRUE(waiting_for_io(1)) << "the others wait for their turn";
      EXPECT_EQ(closed, 0);
      if (thread) {
        std::thread([&] { l.close(); }).join();
      } else {
        l.close();
      }
      accepting.wait();
      EXPECT_EQ(closed, 54);
      EXPECT_FALSE(l);
    }
  }
}

// Also ends the calls that wait for their turn.
TEST_F(NetClose, CancelDeadlineAndCloseEndAllAccepts) {
  for (int round = 0; round < scaled(100); ++round) {
    const net::listener l = net::listen(own_loopback());
    const auto [ctx, cancel] = with_cancel(background());
    std::atomic<int> ended{0};
    Crowd accepting(20, 2, [&, ctx = ctx] {
      std::error_code ec;
      EXPECT_FALSE(l.accept(ctx, ec));
      ended += ec == io_errc::closed || ec == std::errc::timed_out ||
               ec == std::errc::operation_canceled;
    });
    wait_group wg;
    wg.go([cancel = cancel] { cancel(); });
    wg.go([&] {
      try {
        l.set_deadline(1us);
      } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), io_errc::closed);
      }
    });
    wg.go([&] { l.close(); });
    accepting.wait();
    wg.wait();
    EXPECT_EQ(ended, 22);
  }
}

// A connection that was accepted before the end is not lost: each one is whole.
TEST_F(NetClose, ConnectionsThatWereAcceptedOutliveTheListener) {
  for (int round = 0; round < scaled(100); ++round) {
    const net::listener l = net::listen(own_loopback());
    const std::string at = l.local_address().to_string();
    std::atomic<int> served{0};
    std::atomic<int> answered{0};
    wait_group server;
    for (int i = 0; i < 4; ++i) {
      server.go([&] {
        std::error_code ec;
        while (const net::conn c = l.accept(ec)) {
          ++served;
          server.go([c] {
            char byte = 0;
            std::error_code error;
            if (c.read({&byte, 1}, error) == 1) c.write_all({&byte, 1}, error);
          });
        }
      });
    }
    Crowd clients(8, 2, [&] {
      for (;;) {
        std::error_code ec;
        const net::conn c = net::dial(at, ec);
        if (!c) return;
        char byte = 0;
        answered += ask(c, byte, ec) == 1 && byte == '?';
        EXPECT_TRUE(!ec || is_gone(ec)) << ec.message();
      }
    });
    EXPECT_TRUE(wait_until([&] { return answered > 5; }));
    l.close();
    clients.wait();
    server.wait();
    EXPECT_EQ(answered, served);
  }
}

// Its number is soon another listener's, or a connection's.
TEST_F(NetClose, ListenersComeAndGoWhileManyDialThem) {
  const int rounds = scaled(40);
  std::atomic<bool> stop{false};
  std::atomic<int> strange{0};
  constexpr int places = 4;
  std::vector<std::string> at;
  for (int i = 0; i < places; ++i) {
    at.push_back(net::listen(own_loopback()).local_address().to_string());
  }
  std::vector<std::atomic<int>> greeted(places);
  wait_group servers;
  for (int i = 0; i < places; ++i) {
    servers.go([&, i] {
      const auto place = static_cast<std::size_t>(i);
      for (int round = 0; round < rounds; ++round) {
        std::error_code ec;
        net::listener l;
        // For a moment, the socket of a dialling client may have the port.
        EXPECT_TRUE(wait_until([&] {
          return static_cast<bool>(l = net::listen(at[place], {}, ec));
        })) << ec.message();
        const char name = static_cast<char>('a' + i);
        wait_group wg;
        wg.go([&] {
          std::error_code error;
          while (const net::conn c = l.accept(error)) {
            char question = 0;
            if (c.read({&question, 1}, error) == 1) c.write_all({&name, 1}, error);
          }
        });
        const int before = greeted[place];
        EXPECT_TRUE(wait_until([&] { return greeted[place] > before; }));
        l.close();
        wg.wait();
      }
      EXPECT_GE(greeted[place], rounds);
    });
  }
  Crowd clients(8, 2, [&] {
    for (std::size_t i = 0; !stop; ++i) {
      const std::size_t place = i % places;
      std::error_code ec;
      const net::conn c = net::dial(at[place], ec);
      if (!c) {
        strange += !is_gone(ec);
        continue;
      }
      char byte = 0;
      if (ask(c, byte, ec) == 1) {
        strange += byte != static_cast<char>('a' + place);
        ++greeted[place];
      } else {
        strange += ec && !is_gone(ec);
      }
    }
  });
  servers.wait();
  stop = true;
  clients.wait();
  EXPECT_EQ(strange, 0);
}

}  // namespace
}  // namespace gofer
