// Names whose look-up is slow, or fails: this executable has a getaddrinfo() of its own, which
// waits and answers as the test wants.
#include <arpa/inet.h>
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/procs/current.h"
#include "support/census.h"
#include "support/descriptors.h"
#include "support/goroutines_and_threads.h"
#include "support/sockets.h"
#include "support/start_detached.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using namespace test;

// What the network would answer.
class Resolver {
 public:
  struct Answer {
    int error = 0;
    int system_error = 0;  // errno, for EAI_SYSTEM
    std::vector<std::string> addresses{"127.0.0.1"};
  };

  void answer(Answer a) {
    const std::scoped_lock lock(mutex_);
    answer_ = std::move(a);
  }
  /// Look-ups wait from now on.
  void hold() {
    const std::scoped_lock lock(mutex_);
    held_ = true;
  }
  void let_go() {
    const std::scoped_lock lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  /// Called by a look-up.
  Answer ask() {
    const internal::M* m = internal::current_m();
    if (m != nullptr && m->p->word.load() == m->p_word) ++with_a_p_;
    std::unique_lock lock(mutex_);
    ++asked_;
    ++stuck_;
    changed_.wait(lock, [this] { return !held_; });
    --stuck_;
    return answer_;
  }

  int asked() const { return asked_; }
  int stuck() const { return stuck_; }
  /// Look-ups that held a processor while they could wait.
  int with_a_p() const { return with_a_p_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  Answer answer_;
  std::atomic<int> asked_{0};
  std::atomic<int> stuck_{0};
  std::atomic<int> with_a_p_{0};
};

Resolver* resolver = nullptr;
std::atomic<int> lists{0};  // that were given out and not freed

struct Entry {
  addrinfo info;  // first: what is freed is what was given out
  sockaddr_storage storage;
};

// One address in front of `next`; nullptr if it is not a number.
addrinfo* entry(const char* host, std::uint16_t port, addrinfo* next) {
  sockaddr_in in{};
  sockaddr_in6 in6{};
  in.sin_family = AF_INET;
  in6.sin6_family = AF_INET6;
  in.sin_port = in6.sin6_port = htons(port);
  const bool v4 = inet_pton(AF_INET, host, &in.sin_addr) == 1;
  if (!v4 && inet_pton(AF_INET6, host, &in6.sin6_addr) != 1) return nullptr;
  auto* e = new Entry{};
  e->info.ai_family = v4 ? AF_INET : AF_INET6;
  e->info.ai_socktype = SOCK_STREAM;
  e->info.ai_addrlen = v4 ? sizeof in : sizeof in6;
  e->info.ai_addr = reinterpret_cast<sockaddr*>(&e->storage);
  e->info.ai_next = next;
  std::memcpy(&e->storage, v4 ? static_cast<void*>(&in) : &in6, e->info.ai_addrlen);
  return &e->info;
}

int look_up(const char* host, const char* port, const addrinfo& hints, addrinfo** list) {
  char* end = nullptr;
  const auto number = static_cast<std::uint16_t>(std::strtoul(port, &end, 10));
  Resolver::Answer answer;
  if ((hints.ai_flags & AI_NUMERICHOST) != 0) {
    answer.addresses = {host != nullptr ? host : "127.0.0.1"};
    if (*end != '\0') return EAI_NONAME;
  } else {
    answer = resolver->ask();
  }
  errno = answer.system_error;
  if (answer.error != 0) return answer.error;
  addrinfo* first = nullptr;
  for (std::size_t i = answer.addresses.size(); i-- > 0;) {
    first = entry(answer.addresses[i].c_str(), number, first);
    if (first == nullptr) return EAI_NONAME;
  }
  ++lists;
  *list = first;
  return 0;
}

class NetResolve : public NetworkTest {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    resolver = &resolver_;
  }
  void TearDown() override {
    resolver_.let_go();
    NetworkTest::TearDown();  // no goroutine is left
    EXPECT_TRUE(wait_until([] { return lists == 0; }));
    EXPECT_EQ(resolver_.stuck(), 0);
    EXPECT_EQ(resolver_.with_a_p(), 0);
  }
  [[nodiscard]] bool stuck(int n) const {
    return wait_until([&] { return resolver_.stuck() == n; });
  }
  // A dial that is cancelled while its look-up, the only one, is stuck.
  void give_up_on(const std::string& to) {
    const auto [ctx, cancel] = with_cancel(background());
    wait_group wg;
    wg.go([&, cancel = cancel] {
      EXPECT_TRUE(stuck(1));
      cancel();
    });
    std::error_code ec;
    EXPECT_FALSE(net::dial(ctx, to, ec));
    EXPECT_EQ(ec, std::errc::operation_canceled) << ec.message();
    wg.wait();
  }

  Resolver resolver_;
};

// Whether a connection waits to be accepted: over the loopback, it does so as soon as connect(2)
// has been called.
bool somebody_dials(const net::listener& l) {
  pollfd request{l.native_handle(), POLLIN, 0};
  return poll(&request, 1, 0) != 0;
}

std::string port_of(const net::listener& l) { return std::to_string(l.local_address().port()); }

// ---- contexts end a dial, not its look-up

TEST_F(NetResolve, CancelEndsADialWithAStuckLookUp) {
  const net::listener l = net::listen("127.0.0.1:0");
  in_goroutine_and_thread([&] {
    resolver_.hold();
    const int sockets = open_sockets_and_pipes();
    give_up_on("slow.test:" + port_of(l));
    EXPECT_EQ(resolver_.stuck(), 1) << "it was not waited for";
    EXPECT_EQ(open_sockets_and_pipes(), sockets);
    resolver_.let_go();
    EXPECT_TRUE(stuck(0));
  });
  EXPECT_TRUE(wait_until([] { return num_goroutine() == 0; }));
  EXPECT_EQ(resolver_.asked(), 2);
  EXPECT_FALSE(somebody_dials(l)) << "nobody wants that connection any more";
}

TEST_F(NetResolve, TimeoutEndsADialWithAStuckLookUp) {
  const net::listener l = net::listen("127.0.0.1:0");
  in_goroutine_and_thread([&] {
    resolver_.hold();
    const int sockets = open_sockets_and_pipes();
    const std::string to = "slow.test:" + port_of(l);
    const int before = resolver_.asked();
    while (resolver_.asked() == before) {  // one that is late before it begins does not ask
      EXPECT_EQ(thrown_by([&] { (void)net::dial(to, 2ms); }), std::errc::timed_out);
      const auto [ctx, cancel] = with_timeout(background(), 2ms);
      std::error_code ec;
      EXPECT_FALSE(net::dial(ctx, to, ec));
      EXPECT_EQ(ec, std::errc::timed_out) << ec.message();
    }
    EXPECT_GE(resolver_.stuck(), 1) << "it was not waited for";
    EXPECT_EQ(open_sockets_and_pipes(), sockets);
    resolver_.let_go();
    EXPECT_TRUE(stuck(0));
  });
  EXPECT_TRUE(wait_until([] { return num_goroutine() == 0; }));
  EXPECT_FALSE(somebody_dials(l));
}

TEST_F(NetResolve, FailedLookUpWithoutAWaiterDoesNoHarm) {
  for (const int error : {EAI_AGAIN, EAI_SYSTEM}) {
    resolver_.hold();
    give_up_on("slow.test:80");
    resolver_.answer({.error = error, .system_error = EIO});
    resolver_.let_go();
    EXPECT_TRUE(wait_until([] { return num_goroutine() == 0; }));
  }
}

TEST_F(NetResolve, DoneContextPreventsTheLookUp) {
  resolver_.hold();
  in_goroutine_and_thread([] {
    const auto [ctx, cancel] = with_cancel(background());
    cancel();
    std::error_code ec;
    EXPECT_FALSE(net::dial(ctx, "slow.test:80", ec));
    EXPECT_EQ(ec, std::errc::operation_canceled);
    EXPECT_EQ(thrown_by([] { (void)net::dial("slow.test:80", 0s); }), std::errc::timed_out);
  });
  EXPECT_EQ(resolver_.asked(), 0);
}

// A cancellation and an answer at the same time: one of the two.
TEST_F(NetResolve, CancelAndAnswerAtOnce) {
  const net::listener l = net::listen("127.0.0.1:0");
  const std::string to = "slow.test:" + port_of(l);
  const int rounds = scaled(300);
  in_goroutine_and_thread([&] {
    for (int i = 0; i < rounds; ++i) {
      resolver_.hold();
      const auto [ctx, cancel] = with_cancel(background());
      wait_group wg;
      wg.go([&, cancel = cancel] {
        EXPECT_TRUE(stuck(1));
        if (i % 2 == 0) resolver_.let_go();
        cancel();
        if (i % 2 != 0) resolver_.let_go();
      });
      std::error_code ec;
      const net::conn c = net::dial(ctx, to, ec);
      EXPECT_EQ(static_cast<bool>(c), !ec);
      if (c) {
        l.accept().write_all("x");
        char byte = 0;
        EXPECT_EQ(c.read({&byte, 1}), 1u);
      } else {
        EXPECT_EQ(ec, std::errc::operation_canceled) << ec.message();
        std::error_code nobody;
        // It may have been cancelled in the middle of connect(), too.
        if (somebody_dials(l)) (void)l.accept(nobody);
      }
      wg.wait();
      EXPECT_TRUE(stuck(0));
    }
  });
}

// ---- many, and others beside them

// Goroutines that hand a number round, and end when they have done so often enough.
void others_run_on() {
  constexpr int rounds = 1000;
  const chan<int> to(0);
  const chan<int> back(0);
  wait_group wg;
  wg.go([&] {
    for (const int v : to) back.send(v + 1);
  });
  wg.go([&] {
    int v = 0;
    while (v < rounds) {
      to.send(v);
      v = *back.recv();
    }
    to.close();
    EXPECT_EQ(v, rounds);
  });
  wg.wait();
}

TEST_F(NetResolve, ManyStuckLookUpsDoNotDelayOthers) {
  constexpr int dials = 50;
  constexpr int hurried = 25;
  const net::listener l = net::listen("127.0.0.1:0");
  const std::string to = "slow.test:" + port_of(l);
  resolver_.hold();
  const int sockets = open_sockets_and_pipes();
  const auto [ctx, cancel] = with_cancel(background());
  std::atomic<int> cancelled{0};
  std::atomic<int> late{0};
  wait_group wg;
  std::vector<std::thread> threads;
  for (int i = 0; i < dials; ++i) {
    const auto dial = [&, ctx = ctx] {
      std::error_code ec;
      EXPECT_FALSE(net::dial(ctx, to, ec));
      cancelled += ec == std::errc::operation_canceled;
    };
    if (i % 4 == 0) {
      threads.emplace_back(dial);
    } else {
      wg.go(dial);
    }
  }
  for (int i = 0; i < hurried; ++i) {
    wg.go([&, i] {
      late += thrown_by([&] { (void)net::dial(to, 1ms * i); }) == std::errc::timed_out;
    });
  }
  EXPECT_TRUE(wait_until([&] { return resolver_.stuck() >= dials; })) << resolver_.stuck();
  others_run_on();
  {
    const Connection c = connect_to(l);
    c.client.write_all("x");
    char byte = 0;
    EXPECT_EQ(c.server.read({&byte, 1}), 1u) << "a number needs no look-up";
  }
  EXPECT_TRUE(wait_until([&] { return late == hurried; })) << late;
  EXPECT_EQ(cancelled, 0);
  cancel();
  wg.wait();
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(cancelled, dials);
  EXPECT_GE(resolver_.stuck(), dials);
  EXPECT_EQ(open_sockets_and_pipes(), sockets);
  resolver_.let_go();
  EXPECT_TRUE(wait_until([] { return num_goroutine() == 0; }));
  EXPECT_FALSE(somebody_dials(l));
  EXPECT_EQ(open_sockets_and_pipes(), sockets);
}

TEST_F(NetResolve, ManyLookUpsAreAnsweredAtLast) {
  constexpr int dials = 50;
  const net::listener l = net::listen("127.0.0.1:0");
  const std::string port = port_of(l);
  resolver_.hold();
  std::atomic<int> connected{0};
  wait_group wg;
  std::vector<std::thread> threads;
  for (int i = 0; i < dials; ++i) {
    const auto dial = [&, i] {
      const std::string to = "slow.test:" + port;
      const net::conn c = i % 3 == 0   ? net::dial(to)
                          : i % 3 == 1 ? net::dial(background(), to)
                                       : net::dial(to, 10min);
      char byte = 0;
      connected += c.read({&byte, 1}) == 1 && byte == 'x';
    };
    if (i % 8 < 2) {
      threads.emplace_back(dial);
    } else {
      wg.go(dial);
    }
  }
  EXPECT_TRUE(stuck(dials));
  others_run_on();
  EXPECT_EQ(connected, 0);
  resolver_.let_go();
  for (int i = 0; i < dials; ++i) l.accept().write_all("x");
  wg.wait();
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(connected, dials);
}

TEST_F(NetResolve, ListenWaitsForItsNameAndDelaysNoOther) {
  for (const bool thread : {false, true}) {
    resolver_.hold();
    net::listener l;
    wait_group wg;
    const auto listen = [&] {
      l = net::listen("this-machine.test:0");
      wg.done();
    };
    wg.add(1);
    if (thread) {
      start_detached(listen);
    } else {
      go(listen);
    }
    EXPECT_TRUE(stuck(1));
    others_run_on();
    resolver_.let_go();
    wg.wait();
    ASSERT_TRUE(l);
    EXPECT_EQ(l.local_address().host(), "127.0.0.1");
    const Connection c = connect_to(l);
    EXPECT_TRUE(c.server);
  }
}

// ---- what is found

TEST_F(NetResolve, AddressesAreTriedInTurn) {
  in_goroutine_and_thread([&] {
    const net::listener l = net::listen("127.0.0.3:0");
    const std::string to = "several.test:" + port_of(l);
    resolver_.answer({.addresses = {"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"}});
    for (const bool with_context : {false, true}) {
      const net::conn c = with_context ? net::dial(to, 10min) : net::dial(to);
      EXPECT_EQ(c.remote_address(), l.local_address());
      EXPECT_TRUE(l.accept());
    }
    // To listen, too: one is taken already.
    resolver_.answer({.addresses = {"127.0.0.3", "127.0.0.5"}});
    const net::listener other = net::listen(to);
    EXPECT_EQ(other.local_address().host(), "127.0.0.5");
    resolver_.answer({.addresses = {"127.0.0.3"}});
    EXPECT_EQ(thrown_by([&] { (void)net::listen(to); }), std::errc::address_in_use);
    l.close();
    EXPECT_EQ(thrown_by([&] { (void)net::dial(to); }), std::errc::connection_refused);
  });
}

// ---- several at once

// A listener that takes no connection any more: SYNs get no answer.
class Silent {
 public:
  explicit Silent(const std::string& host)
      : l_(net::listen(host + ":0", {.backlog = 1})), at_(l_.local_address().to_string()) {
    for (int i = 0; i < 64 && !is_silent_; ++i) {
      const auto [ctx, cancel] = with_timeout(background(), 300ms);
      std::error_code ec;
      waiting_.push_back(net::dial(ctx, at_, ec));
      is_silent_ = ec == std::errc::timed_out;
      cancel();
    }
  }
  bool is_silent() const { return is_silent_; }
  std::string port() const { return port_of(l_); }

 private:
  net::listener l_;
  std::string at_;
  std::vector<net::conn> waiting_;
  bool is_silent_ = false;
};

TEST_F(NetResolve, AddressThatIsSilentIsPassedOver) {
  const Silent silent("127.0.0.1");
  if (!silent.is_silent()) GTEST_SKIP() << "the backlog has no end here";
  const net::listener l = net::listen("127.0.0.3:" + silent.port());
  const std::string to = "several.test:" + silent.port();
  // The second one, which is refused, does not end the wait for the first.
  resolver_.answer({.addresses = {"127.0.0.1", "127.0.0.2", "127.0.0.3"}});
  in_goroutine_and_thread([&] {
    const int sockets = open_sockets_and_pipes();
    for (const bool with_options : {false, true}) {
      {
        const net::conn c =
            with_options ? net::dial(background(), to, {.attempt_delay = 0ms}) : net::dial(to);
        EXPECT_EQ(c.remote_address(), l.local_address());
        EXPECT_TRUE(l.accept());
        EXPECT_EQ(open_sockets_and_pipes(), sockets + 1) << "the silent one is given up";
      }
    }
  });
}

TEST_F(NetResolve, FirstAddressWinsIfItAnswersInTime) {
  const net::listener first = net::listen("127.0.0.1:0");
  const net::listener second = net::listen("127.0.0.2:" + port_of(first));
  resolver_.answer({.addresses = {"127.0.0.1", "127.0.0.2"}});
  for (int i = 0; i < 20; ++i) {
    const net::conn c =
        net::dial(background(), "several.test:" + port_of(first), {.attempt_delay = 1h});
    EXPECT_EQ(c.remote_address(), first.local_address());
    EXPECT_TRUE(first.accept());
  }
  EXPECT_FALSE(somebody_dials(second)) << "it was not even tried";
}

TEST_F(NetResolve, FamiliesTakeTurns) {
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6";
  const net::listener v4 = net::listen("127.0.0.2:0");
  const net::listener v6 = net::listen("[::1]:" + port_of(v4));
  resolver_.answer({.addresses = {"127.0.0.1", "127.0.0.2", "::1"}});
  const net::conn c = net::dial(background(), "several.test:" + port_of(v4), {.attempt_delay = 1h});
  EXPECT_EQ(c.remote_address(), v6.local_address()) << "before the second of the first family";
}

TEST_F(NetResolve, ContextEndsAllAttempts) {
  const Silent silent("127.0.0.1");
  if (!silent.is_silent()) GTEST_SKIP() << "the backlog has no end here";
  resolver_.answer({.addresses = {"127.0.0.1", "127.0.0.1", "127.0.0.1"}});
  const std::string to = "several.test:" + silent.port();
  in_goroutine_and_thread([&] {
    const int sockets = open_sockets_and_pipes();
    const auto [ctx, cancel] = with_cancel(background());
    wait_group wg;
    wg.go([cancel = cancel] {
      EXPECT_TRUE(waiting_for_io(3));
      cancel();
    });
    std::error_code ec;
    EXPECT_FALSE(net::dial(ctx, to, {.attempt_delay = 1ms}, ec));
    EXPECT_EQ(ec, context_errc::canceled) << ec.message();
    wg.wait();
    EXPECT_EQ(thrown_by([&] { (void)net::dial(to, 20ms); }), context_errc::deadline_exceeded);
    EXPECT_EQ(open_sockets_and_pipes(), sockets);
  });
}

TEST_F(NetResolve, ExceptionNamesAllAddressesThatFailed) {
  const std::string nobody = own_loopback();
  const std::string host = nobody.substr(0, nobody.find(':'));
  std::string port;
  { port = port_of(net::listen(nobody)); }
  // TCP has no route to the broadcast address; that one was refused says more.
  resolver_.answer({.addresses = {"255.255.255.255", host}});
  try {
    (void)net::dial("several.test:" + port);
    ADD_FAILURE();
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), std::errc::connection_refused) << e.what();
    const std::string what = e.what();
    EXPECT_NE(what.find("several.test:" + port), std::string::npos) << what;
    EXPECT_NE(what.find("255.255.255.255:" + port + " Network is unreachable"), std::string::npos)
        << what;
    EXPECT_NE(what.find(host + ":" + port + " Connection refused"), std::string::npos) << what;
  }
}

// ---- what is not

// The error of every call that looks a name up.
std::vector<std::error_code> errors_of(const std::string& at) {
  std::vector<std::error_code> list(6);
  EXPECT_FALSE(net::dial(at, list[0]));
  EXPECT_FALSE(net::dial(background(), at, list[1]));
  EXPECT_FALSE(net::listen(at, {}, list[2]));
  list[3] = thrown_by([&] { (void)net::dial(at); });
  list[4] = thrown_by([&] { (void)net::dial(at, 10min); });
  list[5] = thrown_by([&] { (void)net::listen(at); });
  return list;
}

TEST_F(NetResolve, EveryFailureIsToldAsItIs) {
  in_goroutine_and_thread([&] {
    for (const int error :
         {EAI_ADDRFAMILY, EAI_AGAIN, EAI_BADFLAGS, EAI_FAIL, EAI_FAMILY, EAI_MEMORY, EAI_NODATA,
          EAI_NONAME, EAI_OVERFLOW, EAI_SERVICE, EAI_SOCKTYPE}) {
      resolver_.answer({.error = error, .system_error = EIO});  // which has no meaning here
      for (const std::error_code& ec : errors_of("no.test:80")) {
        EXPECT_EQ(ec, std::error_code(error, net::resolve_category()));
        EXPECT_EQ(ec.message(), gai_strerror(error));
      }
    }
  });
}

TEST_F(NetResolve, FailuresOfTheSystemAreToldAsTheyAre) {
  in_goroutine_and_thread([&] {
    for (const int error : {EMFILE, ENOMEM, ETIMEDOUT, ECONNREFUSED}) {
      resolver_.answer({.error = EAI_SYSTEM, .system_error = error});
      for (const std::error_code& ec : errors_of("no.test:80")) {
        EXPECT_EQ(ec, std::error_code(error, std::system_category()));
      }
    }
  });
}

// Modules of the C library do forget to set errno.
TEST_F(NetResolve, FailureWithoutAReasonIsAFailure) {
  in_goroutine_and_thread([&] {
    resolver_.answer({.error = EAI_SYSTEM, .system_error = 0});
    for (const std::error_code& ec : errors_of("no.test:80")) {
      EXPECT_EQ(ec, std::error_code(EAI_SYSTEM, net::resolve_category()));
    }
  });
}

TEST_F(NetResolve, ExceptionsNameWhatCouldNotBeFound) {
  resolver_.answer({.error = EAI_NONAME});
  for (const bool dials : {false, true}) {
    try {
      if (dials) {
        (void)net::dial("nobody.test:80", 10min);
      } else {
        (void)net::listen("nobody.test:80");
      }
      ADD_FAILURE();
    } catch (const std::system_error& e) {
      const std::string what = e.what();
      EXPECT_NE(what.find("nobody.test:80"), std::string::npos) << what;
      EXPECT_NE(what.find(gai_strerror(EAI_NONAME)), std::string::npos) << what;
    }
  }
}

}  // namespace
}  // namespace gofer

extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo* hints,
                           addrinfo** list) {
  return gofer::look_up(host, port, *hints, list);
}

extern "C" void freeaddrinfo(addrinfo* list) {
  if (list != nullptr) --gofer::lists;
  while (list != nullptr) {
    delete reinterpret_cast<gofer::Entry*>(std::exchange(list, list->ai_next));
  }
}
