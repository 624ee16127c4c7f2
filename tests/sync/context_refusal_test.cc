// A context that is done refuses every call of fd, listener and dial at once, also where there is
// something to be read, room to write, or nothing to do; and nothing is taken. context_test.cc and
// context_calls_test.cc ask the same of the other calls.
#include <fcntl.h>
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include "support/goroutines_and_threads.h"
#include "support/sockets.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using test::in_goroutine_and_thread;

struct Call {
  const char* name;
  std::function<void(const context&, std::error_code&)> run;
};

// Two bytes can be read at `in`, and `out` has room.
struct Ends {
  const char* kind;
  fd in;
  fd out;
};

Ends make_pipe() {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Ends e{"pipe", fd(ends[0]), fd(ends[1])};
  e.out.write_all("ab");
  return e;
}

Ends make_datagrams() {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends), 0);
  Ends e{"datagrams", fd(ends[0]), fd(ends[1])};
  e.out.write_all("ab");
  return e;
}

Ends make_tcp() {
  const test::Connection c = test::make_connection();
  c.client.write_all("ab");
  return {"tcp", c.server, c.client};
}

Ends make_file() {
  std::string path = testing::TempDir() + "gofer-refusal-XXXXXX";
  const int native = mkstemp(path.data());
  EXPECT_GE(native, 0);
  unlink(path.c_str());
  EXPECT_EQ(pwrite(native, "ab", 2, 0), 2);
  const fd file(native);
  return {"file", file, file};
}

template <class F>
void expect_refusal(const context& ctx, F call) {
  std::error_code ec;
  call(ctx, ec);
  EXPECT_EQ(ec, ctx.err());
}

template <class F>
void expect_throw(const context& ctx, F call) {
  try {
    call();
    ADD_FAILURE() << "did not throw";
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), ctx.err());
  }
}

std::vector<Call> calls_of(const Ends& e, std::size_t size) {
  static char bytes[2];
  const buffer to(bytes, size);
  const const_buffer from(bytes, size);
  const std::array<buffer, 2> many{to, to};
  const std::array<const_buffer, 2> many_from{from, from};
  const auto count = [](std::size_t n) { EXPECT_EQ(n, 0u); };
  return {
      {"read", [=](auto& ctx, auto& ec) { count(e.in.read(ctx, to, ec)); }},
      {"read_full", [=](auto& ctx, auto& ec) { count(e.in.read_full(ctx, to, ec)); }},
      {"readv", [=](auto& ctx, auto& ec) { count(e.in.readv(ctx, many, ec)); }},
      {"write", [=](auto& ctx, auto& ec) { count(e.out.write(ctx, from, ec)); }},
      {"write_all", [=](auto& ctx, auto& ec) { count(e.out.write_all(ctx, from, ec)); }},
      {"writev", [=](auto& ctx, auto& ec) { count(e.out.writev(ctx, many_from, ec)); }},
      {"write_all of a temporary",
       [=](auto& ctx, auto& ec) { count(e.out.write_all(ctx, std::string(size, 'c'), ec)); }},
      {"wait_readable", [=](auto& ctx, auto& ec) { e.in.wait_readable(ctx, ec); }},
      {"wait_writable", [=](auto& ctx, auto& ec) { e.out.wait_writable(ctx, ec); }},
  };
}

void expect_all_refuse(const context& ctx) {
  for (const Ends& e : {make_pipe(), make_datagrams(), make_tcp(), make_file()}) {
    for (const std::size_t size : {0u, 2u}) {
      for (const Call& call : calls_of(e, size)) {
        SCOPED_TRACE(std::string(e.kind) + " " + call.name + " " + std::to_string(size));
        expect_refusal(ctx, call.run);
      }
    }
    char bytes[3];
    expect_throw(ctx, [&] { (void)e.in.read(ctx, bytes); });
    expect_throw(ctx, [&] { e.out.write_all(ctx, "x"); });
    expect_throw(ctx, [&] { e.in.wait_readable(ctx); });
    EXPECT_EQ(e.in.read(bytes), 2u) << e.kind << ": nothing was taken or added";
  }
}

std::vector<context> done_contexts() {
  auto [cancelled, cancel] = with_cancel(background());
  cancel();
  const context over = with_timeout(background(), 0s).ctx;
  auto [parent, cancel_parent] = with_cancel(background());
  const context below = with_timeout(parent, 1h).ctx;
  cancel_parent();
  return {cancelled, over, below};
}

TEST(ContextRefusal, OfAllCallsOfDescriptors) {
  for (const context& ctx : done_contexts()) {
    in_goroutine_and_thread([&] { expect_all_refuse(ctx); });
  }
}

TEST(ContextRefusal, OfCallsThatWouldNotHaveToWait) {
  for (const context& ctx : done_contexts()) {
    in_goroutine_and_thread([&] {
      barrier b(1);
      EXPECT_FALSE(b.wait(ctx, b.arrive())) << "the phase is over";
      task_group tasks;
      EXPECT_FALSE(tasks.go(ctx, [] { ADD_FAILURE(); })) << "there is no limit";
      EXPECT_FALSE(tasks.wait(ctx)) << "there are no members";
      tasks.wait();
    });
  }
}

TEST(ContextRefusal, OfListenersAndDials) {
  for (const context& ctx : done_contexts()) {
    in_goroutine_and_thread([&] {
      for (const char* at : {"127.0.0.1:0", "unix:"}) {
        const net::listener l = net::listen(at);
        const std::string to = l.local_address().to_string();
        const net::conn client = net::dial(to);
        expect_refusal(ctx, [&](auto& c, auto& ec) { (void)l.accept(c, ec); });
        expect_throw(ctx, [&] { (void)l.accept(ctx); });
        for (const std::string& text : {to, std::string("localhost:1"), std::string("no port")}) {
          SCOPED_TRACE(text);
          expect_refusal(ctx, [&](auto& c, auto& ec) { (void)net::dial(c, text, ec); });
          expect_refusal(ctx, [&](auto& c, auto& ec) { (void)net::dial(c, text, {}, ec); });
          expect_throw(ctx, [&] { (void)net::dial(ctx, text); });
        }
        EXPECT_TRUE(l.accept()) << "the connection is still there";
      }
      for (const char* at : {"127.0.0.1:0", "localhost:0", "no port"}) {
        SCOPED_TRACE(at);
        expect_refusal(ctx, [&](auto& c, auto& ec) { (void)net::listen(c, at, {}, ec); });
        expect_throw(ctx, [&] { (void)net::listen(ctx, at); });
      }
      net::serve(ctx, net::listen("127.0.0.1:0"), [](const net::conn&) { ADD_FAILURE(); });
    });
  }
}

}  // namespace
}  // namespace gofer
