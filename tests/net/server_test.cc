// Servers: connections that end badly, limits, and the end of a server.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/sanitizer.h"
#include "support/child.h"
#include "support/descriptors.h"
#include "support/goroutines_and_threads.h"
#include "support/sockets.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using namespace test;

constexpr auto patience = 60s;

void echo(const net::conn& c) {
  char bytes[4096];
  while (const std::size_t n = c.read(bytes)) c.write_all({bytes, n});
}

bool echoes(const net::conn& c) {
  c.set_deadline(patience);
  c.write_all("hello");
  char bytes[5];
  c.read_full(bytes);
  return std::string(bytes, 5) == "hello";
}

// The other end gets a reset.
void reset(const net::conn& c) {
  const linger at_once{1, 0};
  EXPECT_EQ(setsockopt(c.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  c.close();
}

// What was reported.
class Reports {
 public:
  std::function<void(const std::exception_ptr&, const net::address&)> sink() {
    return [this](const std::exception_ptr& error, const net::address& remote) {
      const std::scoped_lock hold(lock_);
      try {
        std::rethrow_exception(error);
      } catch (const std::exception& e) {
        texts_.push_back(e.what());
      }
      remotes_.push_back(remote.to_string());
    };
  }
  std::size_t count() const {
    const std::scoped_lock hold(lock_);
    return texts_.size();
  }
  std::string text(std::size_t i) const {
    const std::scoped_lock hold(lock_);
    return texts_.at(i);
  }
  std::string remote(std::size_t i) const {
    const std::scoped_lock hold(lock_);
    return remotes_.at(i);
  }

 private:
  mutable mutex lock_;
  std::vector<std::string> texts_;
  std::vector<std::string> remotes_;
};

// A server on a port of its own, in a goroutine.
class Running {
 public:
  explicit Running(net::handler h, net::serve_options options = {})
      : server(std::move(h), std::move(options)) {
    calls_.go([this] {
      server.serve(listener_);
      returned = true;
    });
  }
  ~Running() {
    server.close();
    calls_.wait();
    EXPECT_TRUE(returned);
    EXPECT_EQ(server.connections(), 0u);
    EXPECT_FALSE(listener_) << "it is closed";
  }
  net::conn dial() const { return net::dial(address, patience); }

 private:
  net::listener listener_ = net::listen("127.0.0.1:0");
  wait_group calls_;

 public:
  const std::string address = listener_.local_address().to_string();
  net::server server;
  std::atomic<bool> returned{false};
};

class Server : public NetworkTest {};

// ---- connections

TEST_F(Server, ServesEachConnectionInAGoroutineOfItsOwn) {
  in_goroutine_and_thread([] {
    const Running running([](const net::conn& c) { echo(c); });
    std::vector<net::conn> clients;
    for (int i = 0; i < 10; ++i) clients.push_back(running.dial());
    for (int i = 9; i >= 0; --i) EXPECT_TRUE(echoes(clients[static_cast<std::size_t>(i)]));
    EXPECT_EQ(running.server.connections(), 10u);
    clients.clear();
    EXPECT_TRUE(wait_until([&] { return running.server.connections() == 0; }));
  });
}

// An exception of a handler, however odd, ends its connection only.
TEST_F(Server, OutlivesAnExceptionWithoutAText) {
  struct Silent : std::exception {
    const char* what() const noexcept override { return nullptr; }
  };
  testing::internal::CaptureStderr();
  run([] {
    const Running running([](const net::conn& c) {
      echo(c);
      throw Silent();
    });
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(echoes(running.dial()));
    EXPECT_TRUE(wait_until([&] { return running.server.connections() == 0; }));
  });
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_of(said, ": an exception without a text\n"), 2) << said;
}

TEST_F(Server, OutlivesAReportThatThrows) {
  testing::internal::CaptureStderr();
  run([] {
    const Running running(
        [](const net::conn& c) {
          echo(c);
          throw std::runtime_error("the first");
        },
        {.on_error = [](const auto&, const auto&) { throw std::runtime_error("the second"); }});
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(echoes(running.dial()));
    EXPECT_TRUE(wait_until([&] { return running.server.connections() == 0; }));
  });
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_of(said, "an error, and on_error has thrown another\n"), 2) << said;
}

TEST_F(Server, AcceptsNothingIfItsContextIsDoneAtOnce) {
  in_goroutine_and_thread([] {
    const auto [ctx, cancel] = with_cancel(background());
    cancel();
    const net::listener l = net::listen("127.0.0.1:0");
    const net::conn waits = net::dial(l.local_address().to_string(), patience);
    std::atomic<int> served{0};
    net::serve(ctx, l, [&](const net::conn&) { ++served; });
    EXPECT_EQ(served, 0);
  });
}

TEST_F(Server, TakesHandlersWithAndWithoutAContext) {
  static constexpr context_key<int> answer;
  const auto try_out = [](const net::handler& h) {
    const net::listener l = net::listen("127.0.0.1:0");
    const auto [ctx, cancel] = with_cancel(with_value(background(), answer, 42));
    wait_group serving;
    serving.go([&, ctx = ctx] { net::serve(ctx, l, h); });
    const net::conn c = net::dial(l.local_address().to_string());
    char byte = 0;
    EXPECT_EQ(c.read_full({&byte, 1}), 1u);
    EXPECT_EQ(byte, 'y');
    cancel();
    serving.wait();
  };
  try_out([](net::conn c) { c.write_all("y"); });
  try_out([](const net::conn& c, const context& ctx) {
    const int* value = ctx.value(answer);
    if (value != nullptr && *value == 42) c.write_all("y");
  });
  struct MoveOnly {
    std::unique_ptr<char> byte = std::make_unique<char>('y');
    void operator()(const net::conn& c) { c.write_all({byte.get(), 1}); }
  };
  try_out(MoveOnly());
}

TEST_F(Server, ClosesTheConnectionWhenItsHandlerReturns) {
  net::conn kept;
  mutex lock;
  const Running running([&](const net::conn& c) {
    const std::scoped_lock hold(lock);
    kept = c;
  });
  const net::conn c = running.dial();
  c.set_deadline(patience);
  char byte;
  EXPECT_EQ(c.read({&byte, 1}), 0u);
  EXPECT_TRUE(wait_until([&] { return running.server.connections() == 0; }));
  EXPECT_FALSE(kept);
}

TEST_F(Server, GoesOnWhenClientsResetTheirConnections) {
  in_goroutine_and_thread([] {
    Reports reports;
    const Running running([](const net::conn& c) { echo(c); }, {.on_error = reports.sink()});
    const net::conn steady = running.dial();
    for (std::size_t i = 0; i < 6; ++i) {
      const net::conn c = running.dial();
      EXPECT_TRUE(echoes(c));
      const std::string me = c.local_address().to_string();
      reset(c);
      EXPECT_TRUE(wait_until([&] { return reports.count() == i + 1; }));
      EXPECT_NE(reports.text(i).find("Connection reset by peer"), std::string::npos);
      EXPECT_EQ(reports.remote(i), me) << "also when the kernel does not know it any more";
      EXPECT_TRUE(echoes(steady));
    }
    steady.close();
    EXPECT_TRUE(wait_until([&] { return running.server.connections() == 0; }));
    EXPECT_EQ(reports.count(), 6u);
  });
}

TEST_F(Server, EndOfAHandlerByGoexitIsTheEndOfItsConnectionOnly) {
  Reports reports;
  const Running running([](const net::conn&) { goexit(); }, {.on_error = reports.sink()});
  for (int i = 0; i < 3; ++i) {
    const net::conn c = running.dial();
    c.set_deadline(patience);
    char byte;
    EXPECT_EQ(c.read({&byte, 1}), 0u);
  }
  EXPECT_TRUE(wait_until([&] { return running.server.connections() == 0; }));
  EXPECT_EQ(reports.count(), 0u);
}

TEST_F(Server, WritesALineForWhatAHandlerThrows) {
  testing::internal::CaptureStderr();
  std::string me;
  {
    const Running running([](const net::conn&) { throw std::runtime_error("no such page"); });
    const net::conn c = running.dial();
    me = c.local_address().to_string();
    c.set_deadline(patience);
    char byte;
    EXPECT_EQ(c.read({&byte, 1}), 0u);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "gofer::net::server: " + me + ": no such page\n");
}

TEST_F(Server, ServesSoManyConnectionsAtOnceAndNoMore) {
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  const Running running(
      [&](const net::conn& c) {
        const int n = ++now;
        int seen = most;
        while (seen < n && !most.compare_exchange_weak(seen, n)) {
        }
        char byte;
        c.read_full({&byte, 1});
        c.write_all({&byte, 1});
        --now;
        if (byte == 't') throw std::runtime_error("thrown");
        if (byte == 'g') goexit();
      },
      {.max_connections = 3, .on_error = [](auto&&...) {}});
  std::vector<net::conn> clients;
  for (int i = 0; i < 12; ++i) clients.push_back(running.dial());
  EXPECT_TRUE(wait_until([&] { return now == 3; }));
  // Each one that ends, however it does, makes room for the next.
  for (std::size_t i = 0; i < clients.size(); ++i) {
    EXPECT_TRUE(wait_until([&] { return now == std::min(3, 12 - static_cast<int>(i)); }));
    const char byte = "rtg"[i % 3];
    clients[i].set_deadline(patience);
    clients[i].write_all({&byte, 1});
    char answer = 0;
    clients[i].read_full({&answer, 1});
    EXPECT_EQ(answer, byte);
  }
  EXPECT_EQ(most, 3);
}

TEST_F(Server, LivesWithoutDescriptorsAndReportsIt) {
  Reports reports;
  const Running running([](const net::conn& c) { echo(c); }, {.on_error = reports.sink()});
  const net::conn first = running.dial();
  EXPECT_TRUE(echoes(first));
  // A socket that connects takes the last descriptor there is; none is left to accept it with.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int native = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const net::address at = first.remote_address();
  const bool connected = connect(native, at.data(), at.size()) == 0;
  const bool reported = wait_until([&] { return reports.count() != 0; });
  EXPECT_TRUE(echoes(first)) << "those that are there are served";
  EXPECT_EQ(reports.count(), 1u) << "once, not with every attempt";
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(connected);
  ASSERT_TRUE(reported);
  EXPECT_NE(reports.text(0).find("Too many open files"), std::string::npos) << reports.text(0);
  EXPECT_EQ(reports.remote(0), "");
  EXPECT_TRUE(echoes(net::conn(native)));
}

TEST_F(Server, LivesWithoutMemoryAndSaysSo) {
  if (internal::tsan_enabled) GTEST_SKIP() << "TSan's operator new cannot be replaced";
  for (const char* missing : {"handlers", "connections"}) {
    const ChildResult r = run_child("server_memory_child", {missing});
    EXPECT_TRUE(r.exited_with(0)) << missing << ": " << r;
    EXPECT_TRUE(r.out_has("completed")) << missing << ": " << r;
    EXPECT_TRUE(r.err_has("gofer::net::server: an error, and no memory to report it\n")) << r;
  }
}

TEST_F(Server, ThrowsIfTheListenerIsClosedByOthers) {
  in_goroutine_and_thread([] {
    const net::listener l = net::listen("127.0.0.1:0");
    wait_group wg;
    wg.go([&] {
      const net::conn c = net::dial(l.local_address().to_string());
      EXPECT_TRUE(echoes(c));
      l.close();
      char byte;
      EXPECT_EQ(c.read({&byte, 1}), 0u) << "the handlers end, too";
    });
    EXPECT_EQ(thrown_by([&] { net::serve(l, [](const net::conn& c) { echo(c); }); }),
              io_errc::closed);
    wg.wait();
  });
}

// ---- the end

TEST_F(Server, ShutdownLetsHandlersFinish) {
  in_goroutine_and_thread([] {
    chan<int> go_on(0);
    Running running([&](const net::conn& c) {
      go_on.recv();
      std::error_code ec;  // of those that only look whether they are accepted
      c.write_all("done", ec);
    });
    const net::conn c = running.dial();
    EXPECT_TRUE(wait_until([&] { return running.server.connections() == 1; }));
    wait_group wg;
    wg.go([&] { EXPECT_TRUE(running.server.shutdown(background())); });
    // The server accepts no more, and does not tell its clients that it has ended.
    EXPECT_TRUE(wait_until([&] {
      std::error_code ec;
      (void)net::dial(running.address, ec);
      return ec == std::errc::connection_refused;
    }));
    EXPECT_FALSE(running.returned);
    go_on.close();
    char bytes[4];
    EXPECT_EQ(c.read_full(bytes), 4u);
    wg.wait();
    EXPECT_EQ(running.server.connections(), 0u);
    EXPECT_TRUE(wait_until([&] { return running.returned.load(); }));
  });
}

TEST_F(Server, ShutdownEndsTheRestWhenItsContextEnds) {
  in_goroutine_and_thread([] {
    Reports reports;
    std::atomic<int> cancelled{0};
    Running running(
        [&](const net::conn& c, const context& ctx) {
          char kind;
          c.read_full({&kind, 1});
          switch (kind) {
            case 'r':  // waits for its connection
              (void)c.read({&kind, 1});
              ADD_FAILURE();
              break;
            case 'c':  // with the context
              (void)c.read(ctx, {&kind, 1});
              ADD_FAILURE();
              break;
            default:  // for something else
              ctx.done().recv();
              EXPECT_EQ(ctx.err(), std::errc::operation_canceled);
              ++cancelled;
          }
        },
        {.on_error = reports.sink()});
    std::vector<net::conn> clients;
    for (const char kind : {'r', 'c', 'o'}) {
      clients.push_back(running.dial());
      clients.back().write_all({&kind, 1});
    }
    EXPECT_TRUE(wait_until([&] { return running.server.connections() == 3; }));
    const auto [ctx, cancel] = with_timeout(background(), 20ms);
    EXPECT_FALSE(running.server.shutdown(ctx));
    EXPECT_TRUE(wait_until([&] { return running.returned.load(); }));
    EXPECT_EQ(cancelled, 1);
    EXPECT_EQ(reports.count(), 0u) << "the shutdown itself is no error";
    EXPECT_TRUE(running.server.shutdown(background())) << "once more: nothing is left";
  });
}

TEST_F(Server, HandlersThatWaitForTheNextRequestLearnOfTheShutdown) {
  std::atomic<int> finished{0};
  Running running([&](const net::conn& c, const context& ctx) {
    std::error_code ec;
    char byte;
    while (c.read(net::serving(ctx), {&byte, 1}, ec) != 0) c.write_all(ctx, {&byte, 1});
    EXPECT_EQ(ec, std::errc::operation_canceled);
    EXPECT_FALSE(ctx.err());
    c.write_all(ctx, "!");
    ++finished;
  });
  const net::conn c = running.dial();
  EXPECT_TRUE(echoes(c));
  EXPECT_TRUE(running.server.shutdown(background()));
  EXPECT_EQ(finished, 1);
  char bytes[2];
  EXPECT_EQ(c.read(bytes), 1u);
  EXPECT_EQ(bytes[0], '!');
  EXPECT_FALSE(net::serving(background()).done()) << "any other context is given back";
}

TEST_F(Server, WaitForTheNextRequestIsCutShortByAShutdownAndNotReported) {
  Reports reports;
  std::atomic<int> begun{0};
  Running running(
      [&](const net::conn& c, const context& ctx) {
        ++begun;
        const context serving = net::serving(ctx);
        c.wait_readable(serving);
        ADD_FAILURE();
      },
      {.on_error = reports.sink()});
  std::vector<net::conn> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(running.dial());
  EXPECT_TRUE(wait_until([&] { return begun == 5; }));
  EXPECT_TRUE(running.server.shutdown(background()));
  EXPECT_EQ(reports.count(), 0u);
}

TEST_F(Server, ShutdownClosesTheChannelOfServingWhoseContextIsGone) {
  std::atomic<int> begun{0};
  std::atomic<int> told{0};
  Running running([&](const net::conn& c, const context& ctx) {
    const auto quit = net::serving(ctx).done();
    const auto [mine, cancel] = with_timeout(ctx, 1h);
    const auto mine_too = net::serving(mine).done();
    ++begun;
    quit.recv();
    mine_too.recv();
    ++told;
    EXPECT_FALSE(ctx.err()) << "the grace of the handlers is not over";
    EXPECT_FALSE(mine.err());
    c.write_all("!");
    cancel();
  });
  const net::conn c = running.dial();
  EXPECT_TRUE(wait_until([&] { return begun == 1; }));
  EXPECT_TRUE(running.server.shutdown(background()));
  EXPECT_EQ(told, 1);
}

TEST_F(Server, RequestThatHasBegunIsReadToItsEndDuringAShutdown) {
  chan<int> begun(1);
  Running running([&](const net::conn& c, const context& ctx) {
    const context serving = net::serving(ctx);
    char request[2];
    std::error_code ec;
    for (;;) {
      c.wait_readable(serving, ec);
      if (ec) return;
      (void)begun.try_send(0);  // of the connections that only look for the listener, too
      if (c.read_full(ctx, request, ec) != 2) return;
      c.write_all(ctx, request);
    }
  });
  const net::conn c = running.dial();
  c.set_deadline(patience);
  c.write_all("h");
  begun.recv();
  wait_group wg;
  wg.go([&] { EXPECT_TRUE(running.server.shutdown(background())); });
  EXPECT_TRUE(wait_until([&] {
    std::error_code ec;
    (void)net::dial(running.address, ec);
    return ec == std::errc::connection_refused;
  }));
  c.write_all("i");
  char answer[2];
  EXPECT_EQ(c.read_full(answer), 2u);
  EXPECT_EQ(std::string(answer, 2), "hi");
  wg.wait();
}

TEST_F(Server, ServingKeepsWhatTheHandlerHasAddedToItsContext) {
  static constexpr context_key<int> own;
  chan<int> go_on(0);
  std::atomic<int> finished{0};
  Running running([&](const net::conn&, const context& ctx) {
    const auto [mine, cancel] = with_cancel(with_value(ctx, own, 7));
    const context serving = net::serving(mine);
    EXPECT_EQ(*serving.value(own), 7);
    EXPECT_FALSE(serving.err());
    cancel();
    EXPECT_TRUE(serving.err());
    const auto [limited, end] = with_timeout(ctx, 1h);
    EXPECT_EQ(net::serving(limited).deadline(), limited.deadline());
    const auto [at_once, end_at_once] = with_timeout(ctx, 0s);
    EXPECT_EQ(net::serving(at_once).err(), std::errc::timed_out);
    const context waiting = net::serving(limited);
    go_on.send(0);
    EXPECT_FALSE(waiting.done().recv_for(patience)) << "the shutdown ends it as well";
    EXPECT_EQ(waiting.err(), std::errc::operation_canceled);
    EXPECT_FALSE(limited.err());
    EXPECT_TRUE(net::serving(limited).err()) << "at once, when the shutdown has begun before";
    end();
    end_at_once();
    ++finished;
  });
  const net::conn c = running.dial();
  go_on.recv();
  EXPECT_TRUE(running.server.shutdown(background()));
  EXPECT_EQ(finished, 1);
}

// on_error runs in the goroutine that accepts, or in the handler's.
TEST_F(Server, CanBeClosedByWhatReportsErrors) {
  for (const bool by_the_handler : {true, false}) {
    std::atomic<bool> returned{false};
    net::server* s = nullptr;
    net::server server(
        [&](const net::conn& c) {
          if (by_the_handler) throw std::runtime_error("the last one");
          echo(c);
        },
        {.on_error = [&](auto&&...) { s->close(); }});
    s = &server;
    const net::listener l = net::listen("127.0.0.1:0");
    const net::address at = l.local_address();
    wait_group wg;
    wg.go([&] {
      server.serve(l);
      returned = true;
    });
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    // See LivesWithoutDescriptorsAndReportsIt.
    const int native = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    rlimit limit = before;
    if (!by_the_handler) limit.rlim_cur = 0;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    // Without descriptors accept fails before a connection comes: then no listener is left.
    const bool connected = connect(native, at.data(), at.size()) == 0;
    const bool ended = wait_until([&] { return returned.load(); });
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_TRUE(connected || !by_the_handler);
    ASSERT_TRUE(ended);
    close(native);
    wg.wait();
  }
}

// Its destructor waits for the calls that came too late as well; ASan sees it if not.
TEST_F(Server, LivesAsLongAsCallsThatCameTooLate) {
  for (int i = 0; i < scaled(200, 10); ++i) {
    chan<int> go_on(0);
    auto server = std::make_unique<net::server>([&](const net::conn&) { go_on.recv(); });
    const net::listener l = net::listen("127.0.0.1:0");
    wait_group wg;
    wg.go([&] { server->serve(l); });
    const net::conn c = net::dial(l.local_address().to_string());
    EXPECT_TRUE(wait_until([&] { return server->connections() == 1; }));
    server->close();
    const net::listener late = net::listen("127.0.0.1:0");
    wg.go([&, s = server.get()] { s->serve(late); });
    EXPECT_TRUE(wait_until([&] { return !late; }));
    wg.go([&] { server.reset(); });
    go_on.close();
    wg.wait();
  }
}

TEST_F(Server, AnyLimitOnConnectionsIsOne) {
  const Running running([](const net::conn& c) { echo(c); }, {.max_connections = SIZE_MAX});
  EXPECT_TRUE(echoes(running.dial()));
}

TEST_F(Server, ServesSeveralListenersAndEndsThemAll) {
  in_goroutine_and_thread([] {
    net::server server([](const net::conn& c) { echo(c); });
    std::vector<net::listener> listeners{
        net::listen("127.0.0.1:0"), net::listen("127.0.0.1:0"),
        net::listen("unix:@gofer-server-test-" + std::to_string(getpid()))};
    wait_group wg;
    for (const net::listener& l : listeners) wg.go([&server, l] { server.serve(l); });
    for (const net::listener& l : listeners) {
      const net::conn c = net::dial(l.local_address().to_string());
      EXPECT_TRUE(echoes(c));
    }
    EXPECT_TRUE(server.shutdown(background()));
    wg.wait();
    for (const net::listener& l : listeners) EXPECT_FALSE(l);
    const net::listener late = net::listen("127.0.0.1:0");
    server.serve(late);
    EXPECT_FALSE(late) << "it serves no more";
    const auto [done, cancel] = with_cancel(background());
    cancel();
    EXPECT_TRUE(server.shutdown(done)) << "nobody is left to be waited for";
  });
}

TEST_F(Server, WaitsForAPlaceOnlyUntilTheShutdown) {
  Running running([](const net::conn& c) { echo(c); }, {.max_connections = 1});
  const net::conn served = running.dial();
  EXPECT_TRUE(echoes(served));
  const net::conn waits = running.dial();
  wait_group wg;
  wg.go([&] { EXPECT_TRUE(running.server.shutdown(background())); });
  EXPECT_TRUE(wait_until([&] {
    std::error_code ec;
    (void)net::dial(running.address, ec);
    return ec == std::errc::connection_refused;
  }));
  EXPECT_TRUE(echoes(served));
  served.close();
  wg.wait();
}

TEST_F(Server, EndsWithItsContextAndWithinItsGrace) {
  in_goroutine_and_thread([] {
    for (const auto grace : {0ns, 1'000'000ns}) {
      const net::listener l = net::listen("127.0.0.1:0");
      const auto [ctx, cancel] = with_cancel(background());
      wait_group wg;
      wg.go([&, cancel = cancel] {
        const net::conn c = net::dial(l.local_address().to_string());
        EXPECT_TRUE(echoes(c));
        cancel();
        char byte;
        EXPECT_EQ(c.read({&byte, 1}), 0u);
      });
      net::serve(ctx, l, [](const net::conn& c) { echo(c); }, {.grace = grace});
      wg.wait();
    }
    const auto [done, cancel] = with_cancel(background());
    cancel();
    const net::listener l = net::listen("127.0.0.1:0");
    net::serve(done, l, [](const net::conn& c) { echo(c); });
    EXPECT_FALSE(l);
  });
}

// Rounds of clients that are always busy with a server that is shut down meanwhile: it ends, and
// every client sees an end.
TEST_F(Server, ShutdownAmongBusyClients) {
  const int rounds = scaled(100, 10);
  constexpr int clients = 16;
  for (int round = 0; round < rounds; ++round) {
    const net::listener l = net::listen("127.0.0.1:0");
    const std::string at = l.local_address().to_string();
    std::atomic<int> handled{0};
    std::atomic<int> running{0};
    net::server server(
        [&](const net::conn& c, const context& ctx) {
          ++running;
          ++handled;
          std::error_code ec;
          char bytes[64];
          const context& wait = round % 2 == 0 ? net::serving(ctx) : ctx;
          while (const std::size_t n = c.read(wait, bytes, ec)) c.write_all(ctx, {bytes, n}, ec);
          --running;
        },
        {.max_connections = round % 3 == 0 ? std::size_t{4} : 0, .on_error = [](auto&&...) {}});
    wait_group serving;
    serving.go([&] { server.serve(l); });
    wait_group dialling;
    for (int i = 0; i < clients; ++i) {
      dialling.go([&, i] {
        for (std::error_code ec; !ec;) {
          const net::conn c = net::dial(at, ec);
          char bytes[5];
          for (int k = 0; !ec && k < i; ++k) {
            c.write_all("hello", ec);
            if (!ec) c.read_full(bytes, ec);
          }
          if (!ec && i % 4 == 0) reset(c);
        }
      });
    }
    EXPECT_TRUE(wait_until([&] { return handled >= clients; }));
    const auto [ctx, cancel] = with_timeout(background(), 1ms * (round % 5));
    server.shutdown(ctx);
    serving.wait();
    EXPECT_EQ(running, 0) << "serve() returns after the last handler";
    EXPECT_EQ(server.connections(), 0u);
    dialling.wait();
    cancel();
  }
}

}  // namespace
}  // namespace gofer
