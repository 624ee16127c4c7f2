// The netpoller under fire: descriptors that come and go, many that are idle, all that can end a
// wait at the same time, and a scheduler that is busy with something else.
//
// GOFER_STRESS_SECONDS in the environment makes each of these go on for that time.
// gofer-test: stress
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/procs/retake.h"
#include "runtime/sched/verify.h"
#include "runtime/watch/preempt.h"
#include "support/beside.h"
#include "support/child.h"
#include "support/descriptors.h"
#include "support/pipe.h"
#include "support/sockets.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using namespace test;

using NetpollStress = NetworkTest;

bool write_value(const fd& out, std::uint64_t value) {
  std::error_code ec;
  return out.write_all({&value, sizeof value}, ec) == sizeof value;
}

// 0 at the end or on an error.
std::uint64_t read_value(const fd& in) {
  std::uint64_t value = 0;
  std::error_code ec;
  return in.read_full({&value, sizeof value}, ec) == sizeof value ? value : 0;
}

// Pairs of goroutines (or a goroutine and a thread) that send numbers to and fro until they are
// told to stop, and count.
class PingPong {
 public:
  explicit PingPong(int pairs, bool tcp = false, int threads = 0) {
    const net::listener l = net::listen("127.0.0.1:0");
    counts_ = std::vector<std::atomic<int64_t>>(static_cast<std::size_t>(pairs));
    for (int i = 0; i < pairs; ++i) {
      Ends e;
      if (tcp) {
        const Connection c = connect_to(l);
        e = {c.client, c.server};
      } else {
        e = make_pair();
      }
      group_.go([this, in = e.in, i] {
        while (const std::uint64_t v = read_value(in)) {
          if (v >> 32 != static_cast<std::uint64_t>(i + 1)) ++wrong_;
          if (!write_value(in, v)) break;
        }
      });
      const auto send = [this, out = e.out, i] {
        const auto id = static_cast<std::uint64_t>(i + 1) << 32;
        for (std::uint32_t n = 0; !stop_; ++n) {
          if (!write_value(out, id | n) || read_value(out) != (id | n)) ++wrong_;
          counts_[static_cast<std::size_t>(i)].fetch_add(1);
        }
        out.close();
      };
      if (i < threads) {
        threads_.emplace_back(send);
      } else {
        group_.go(send);
      }
    }
  }
  ~PingPong() {
    stop_ = true;
    for (std::thread& t : threads_) t.join();
    group_.wait();
    EXPECT_EQ(wrong_, 0);
  }
  PingPong(const PingPong&) = delete;
  PingPong& operator=(const PingPong&) = delete;

  /// What the slowest has done.
  int64_t least() const {
    int64_t n = counts_[0];
    for (const auto& c : counts_) n = std::min<int64_t>(n, c);
    return n;
  }
  /// Whether each of them gets on by so many rounds.
  bool gets_on(int64_t rounds) const {
    std::vector<int64_t> goal;
    for (const auto& c : counts_) goal.push_back(c + rounds);
    return wait_until([&] {
      for (std::size_t i = 0; i < goal.size(); ++i) {
        if (counts_[i] < goal[i]) return false;
      }
      return true;
    });
  }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> wrong_{0};
  std::vector<std::atomic<int64_t>> counts_;
  std::vector<std::thread> threads_;
  wait_group group_;
};

// ---- descriptors come and go

// One life of a pair: a goroutine waits, and gets the value that was meant for it, or the end.
void live_and_die(std::uint64_t id, std::atomic<int>& wrong) {
  const Ends e = make_pair();
  chan<std::uint64_t> got(1);
  go([got, in = e.in, &wrong] {
    std::uint64_t value = 0;
    std::error_code ec;
    in.read_full({&value, sizeof value}, ec);
    if (ec && ec != io_errc::closed) ++wrong;
    got.send(ec ? 0 : value);
  });
  switch (id % 4) {
    case 0:  // closed under the reader
      e.in.close();
      if (*got.recv() != 0) ++wrong;
      return;
    case 1:  // an event is on its way while it is closed
      write_value(e.out, id);
      e.in.close();
      if (const std::uint64_t v = *got.recv(); v != 0 && v != id) ++wrong;
      return;
    case 2:
      yield();
      [[fallthrough]];
    default:
      write_value(e.out, id);
      if (*got.recv() != id) ++wrong;
  }
}

TEST_F(NetpollStress, EventsGoToTheDescriptorTheyAreOf) {
  constexpr int waiters = 20;
  std::vector<Ends> quiet;
  for (int i = 0; i < waiters; ++i) quiet.push_back(make_pair());
  std::atomic<int> wrong{0};
  std::atomic<int> woken{0};
  std::atomic<bool> stop{false};
  wait_group wg;
  std::vector<std::thread> threads;
  for (int i = 0; i < waiters; ++i) {
    const auto wait = [&, i] {
      if (read_value(quiet[static_cast<std::size_t>(i)].in) != 1000u + static_cast<unsigned>(i)) {
        ++wrong;
      }
      ++woken;
    };
    if (i < 4) {
      threads.emplace_back(wait);
    } else {
      wg.go(wait);
    }
  }
  std::atomic<int64_t> lives{0};
  const auto storm = [&](std::uint64_t first) {
    for (std::uint64_t id = first; !stop; id += 16) {
      live_and_die(id + id / 16 % 4, wrong);
      lives.fetch_add(1);
    }
  };
  for (unsigned i = 0; i < 6; ++i) wg.go([&, i] { storm(i + 1); });
  for (unsigned i = 6; i < 8; ++i) threads.emplace_back([&, i] { storm(i + 1); });
  EXPECT_TRUE(go_on_until([&] { return lives >= scaled(8000); })) << lives;
  EXPECT_EQ(woken, 0);
  stop = true;
  for (int i = 0; i < waiters; ++i) {
    write_value(quiet[static_cast<std::size_t>(i)].out, 1000u + static_cast<unsigned>(i));
  }
  wg.wait();
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(woken, waiters);
}

TEST_F(NetpollStress, ConnectionsComeAndGo) {
  const net::listener l = net::listen("127.0.0.1:0");
  const std::string at = l.local_address().to_string();
  wait_group server;
  server.go([&] {
    std::error_code ec;
    while (net::conn c = l.accept(ec)) {
      server.go([c] {
        const std::uint64_t v = read_value(c);
        if (v % 3 != 0) write_value(c, v);
      });
    }
  });
  std::atomic<int64_t> done{0};
  std::atomic<int> wrong{0};
  std::atomic<bool> stop{false};
  wait_group clients;
  for (unsigned i = 0; i < 8; ++i) {
    clients.go([&, i] {
      for (std::uint64_t v = i + 1; !stop; v += 8) {
        const net::conn c = net::dial(at);
        write_value(c, v);
        if (read_value(c) != (v % 3 != 0 ? v : 0)) ++wrong;
        done.fetch_add(1);
      }
    });
  }
  EXPECT_TRUE(go_on_until([&] { return done >= scaled(2000); })) << done;
  stop = true;
  clients.wait();
  l.close();
  server.wait();
  EXPECT_EQ(wrong, 0);
}

// ---- many

int idle_connections() {
  int n = internal::sanitizers_enabled ? 300 : stress_time() > 0s ? 10'000 : 2000;
  rlimit limit;
  EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const auto room = static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, 1'000'000)) - 600;
  return static_cast<int>(std::min<int64_t>(n, room / 2));
}

TEST_F(NetpollStress, ManyIdleBesideSomeBusy) {
  const int idle = idle_connections();
  ASSERT_GT(idle, 0);
  std::vector<Ends> ends;
  wait_group wg;
  std::atomic<int> woken{0};
  std::atomic<int> wrong{0};
  for (int i = 0; i < idle; ++i) {
    ends.push_back(make_pair());
    wg.go([&, in = ends.back().in, i] {
      if (read_value(in) != static_cast<std::uint64_t>(i + 1)) ++wrong;
      ++woken;
    });
  }
  EXPECT_TRUE(waiting_for_io(idle));
  {
    const PingPong busy(stress_time() > 0s ? 100 : 20, true, 1);
    EXPECT_TRUE(go_on_until([&] { return busy.least() >= scaled(200); })) << busy.least();
  }
  EXPECT_EQ(woken, 0);
  for (int i = 0; i < idle; ++i) {
    write_value(ends[static_cast<std::size_t>(i)].out, static_cast<std::uint64_t>(i + 1));
  }
  wg.wait();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(woken, idle);
}

// ---- all that ends a wait, at the same time

TEST_F(NetpollStress, WhateverEndsAWaitNoEventIsLost) {
  std::atomic<int64_t> rounds{0};
  std::atomic<bool> stop{false};
  wait_group all;
  for (unsigned worker = 0; worker < 4; ++worker) {
    all.go([&, worker] {
      for (std::uint64_t round = worker + 1; !stop; round += 4) {
        const Ends e = make_pair();
        const auto [ctx, cancel] = with_cancel(background());
        wait_group wg;
        wg.go([&] { write_value(e.out, round); });
        if (round % 2 == 0) wg.go([&] { e.in.set_deadline(round % 3 == 0 ? 0us : 20us); });
        if (round % 3 != 1) wg.go([cancel = cancel] { cancel(); });
        std::uint64_t value = 0;
        std::error_code ec;
        const std::size_t n = e.in.read(ctx, {&value, sizeof value}, ec);
        wg.wait();
        if (ec) {
          EXPECT_TRUE(ec == std::errc::timed_out || ec == std::errc::operation_canceled)
              << ec.message();
          EXPECT_EQ(n, 0u);
          e.in.set_deadline(60s);
          (void)e.in.read(background(), {&value, sizeof value}, ec);
        }
        EXPECT_FALSE(ec) << ec.message();
        EXPECT_EQ(value, round);
        rounds.fetch_add(1);
      }
    });
  }
  EXPECT_TRUE(go_on_until([&] { return rounds >= scaled(8000); })) << rounds;
  stop = true;
  all.wait();
}

TEST_F(NetpollStress, CloseEventDeadlineAndContextAtOnce) {
  std::atomic<int64_t> rounds{0};
  std::atomic<bool> stop{false};
  const auto storm = [&](unsigned first) {
    for (unsigned round = first; !stop; ++round) {
      const Ends e = make_pair();
      const auto [ctx, cancel] = with_timeout(background(), 1us * (round % 50));
      wait_group wg;
      std::atomic<int> readers{0};
      for (int i = 0; i < 2; ++i) {
        wg.go([&, in = e.in, ctx = ctx] {
          char bytes[4];
          std::error_code ec;
          (void)in.read(ctx, bytes, ec);
          if (!ec || ec == io_errc::closed || ec == std::errc::timed_out) ++readers;
        });
      }
      wg.go([in = e.in] { in.close(); });
      if (round % 2 == 0) {
        wg.go([in = e.in] {
          try {
            in.set_deadline(1us);
            in.set_deadline(1h);
          } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), io_errc::closed);
          }
        });
      }
      if (round % 3 == 0) {
        std::error_code ec;
        e.out.write_all("four", ec);
      }
      wg.wait();
      cancel();
      EXPECT_EQ(readers, 2);
      rounds.fetch_add(1);
    }
  };
  wait_group all;
  for (unsigned i = 0; i < 3; ++i) all.go([&, i] { storm(i * 7); });
  std::thread thread([&] { storm(1); });
  EXPECT_TRUE(go_on_until([&] { return rounds >= scaled(6000); })) << rounds;
  stop = true;
  all.wait();
  thread.join();
}

TEST_F(NetpollStress, DeadlinesMoveWhileBytesFlow) {
  const Ends e = make_pair();
  std::atomic<bool> stop{false};
  std::atomic<int64_t> timeouts{0};
  wait_group wg;
  wg.go([&] {
    for (int i = 0; !stop; ++i) {
      e.in.set_read_deadline(1us * (i % 100));
      yield();
    }
    e.in.set_read_deadline(60s);
  });
  std::atomic<std::uint32_t> got{0};
  wg.go([&] {
    for (;;) {
      unsigned char byte = 0;
      std::error_code ec;
      const std::size_t n = e.in.read({&byte, 1}, ec);
      if (ec == std::errc::timed_out) {
        ++timeouts;
        yield();
        continue;
      }
      ASSERT_FALSE(ec) << ec.message();
      if (n == 0) return;
      ASSERT_EQ(byte, static_cast<unsigned char>(got));
      ++got;
    }
  });
  std::atomic<std::uint32_t> sent{0};
  wg.go([&] {
    for (; !stop; ++sent) {
      const auto byte = static_cast<unsigned char>(sent);
      (void)e.out.write({&byte, 1});
      if (sent % 7 == 0) yield();
    }
    e.out.close();
  });
  EXPECT_TRUE(go_on_until([&] { return got >= 1000u && timeouts >= scaled(1000); }))
      << got << " " << timeouts;
  stop = true;
  wg.wait();
  EXPECT_EQ(got, sent);
}

// ---- beside others

TEST_F(NetpollStress, GoesOnBesideGoroutinesThatCompute) {
  if (!internal::preemption.has_signal) GTEST_SKIP() << "no thread is paused in this build";
  const PingPong busy(4, false, 1);
  std::atomic<bool> stop{false};
  wait_group wg;
  const int spinners = gomaxprocs(0) + 1;
  for (int i = 0; i < spinners; ++i) {
    wg.go([&] {
      while (!stop) compute(1000);
    });
  }
  EXPECT_TRUE(busy.gets_on(20)) << busy.least();
  const int64_t before = busy.least();
  EXPECT_TRUE(go_on_until([&] { return busy.least() > before + 5; }));
  stop = true;
  wg.wait();
}

// An M whose goroutines yield is never out of work, so it never asks for events by itself.
TEST_F(NetpollStress, GoesOnBesideGoroutinesThatYield) {
  const PingPong busy(4, false, 1);
  std::atomic<bool> stop{false};
  wait_group wg;
  for (int i = 0; i < 2 * gomaxprocs(0) + 1; ++i) {
    wg.go([&] {
      while (!stop) yield();
    });
  }
  EXPECT_TRUE(busy.gets_on(20)) << busy.least();
  stop = true;
  wg.wait();
}

TEST_F(NetpollStress, GoroutinesWithTheirOwnThreadsWait) {
  std::atomic<int> right{0};
  const int rounds = scaled(500);
  wait_group wg;
  for (int i = 0; i < 4; ++i) {
    const Ends e = make_pair();
    for (const fd& end : {e.in, e.out}) {
      wg.go([&, end, first = end == e.in] {
        lock_os_thread();
        for (int n = 1; n <= rounds; ++n) {
          if (first) write_value(end, static_cast<std::uint64_t>(n));
          right += read_value(end) == static_cast<std::uint64_t>(n);
          if (!first) write_value(end, static_cast<std::uint64_t>(n));
        }
        unlock_os_thread();
      });
    }
  }
  wg.wait();
  EXPECT_EQ(right, 8 * rounds);
}

// The threads of others come to a goroutine that waits, while one sleeps with the only P.
template <class Block>
void check_beside_blocked(Block block) {
  const Procs one(1);
  for (int round = 0; round < 10; ++round) {
    const Pipe pipe;
    const Ends e = make_pair();
    wait_group wg;
    wg.go([&] {
      for (int i = 0; i < 10; ++i) {
        const std::uint64_t v = read_value(e.in);
        if (v == 0 || !write_value(e.in, v)) break;
      }
    });
    std::atomic<bool> blocks{false};
    wg.go([&] {
      blocks = true;
      block([&] { EXPECT_TRUE(pipe.read_one()); });
    });
    EXPECT_TRUE(wait_until([&] { return blocks.load(); }));
    for (std::uint64_t i = 1; i <= 10; ++i) {  // past the library: only the reader needs it
      const std::uint64_t sent = i;
      ASSERT_EQ(::write(e.out.native_handle(), &sent, sizeof sent), 8);
      std::uint64_t got = 0;
      EXPECT_TRUE(wait_until([&] { return ::read(e.out.native_handle(), &got, 8) == 8; }))
          << "round " << round << ", message " << i;
      EXPECT_EQ(got, i);
    }
    EXPECT_TRUE(pipe.write_one());
    wg.wait();
  }
}

TEST_F(NetpollStress, GoesOnBesideAThreadThatBlocks) {
  if (!internal::taking.has_membarrier) GTEST_SKIP() << "no membarrier, no retake";
  check_beside_blocked([](auto f) { f(); });
}

TEST_F(NetpollStress, GoesOnBesideAnAnnouncedBlockingCall) {
  if (!internal::taking.has_membarrier) GTEST_SKIP() << "no membarrier, no retake";
  check_beside_blocked([](auto f) { blocking(f); });
}

TEST_F(NetpollStress, GoesOnBesideABlockingCallThatHandsOff) {
  check_beside_blocked([](auto f) { blocking(handoff, f); });
}

// In a process in which nothing else has run, so that threads are few.
void check_beside_few_threads(const std::string& scenario) {
  for (const char* how : {"_handoff", "_announced", "_unannounced"}) {
    if (!internal::taking.has_membarrier && how != std::string("_handoff")) continue;
    const ChildResult r = run_child("fd_blocked_child", {scenario + how});
    EXPECT_TRUE(r.exited_with(0) && r.out_has("completed")) << scenario << how << r;
  }
}

TEST_F(NetpollStress, GoesOnBesideTheFirstThread) { check_beside_few_threads("beside"); }

TEST_F(NetpollStress, ThreadsGoOnBesideTheFirstThread) {
  check_beside_few_threads("thread_beside");
}

TEST_F(NetpollStress, GoesOnWhenEveryThreadBlocks) { check_beside_few_threads("all"); }

TEST_F(NetpollStress, GoesOnWhileTheWorldIsStopped) {
  const PingPong busy(8, false, 2);
  int64_t stops = 0;
  EXPECT_TRUE(go_on_until([&] {
    internal::verify_scheduler();
    return ++stops >= scaled(200) && busy.least() >= scaled(100);
  }));
  EXPECT_TRUE(busy.gets_on(20)) << busy.least();
}

TEST_F(NetpollStress, GoesOnWhileTheNumberOfProcessorsChanges) {
  const Procs restored(gomaxprocs(0));
  const PingPong busy(8, true, 2);
  constexpr std::array<int, 6> numbers{1, 4, 2, 8, 1, 3};
  std::size_t changes = 0;
  EXPECT_TRUE(go_on_until([&] {
    gomaxprocs(numbers[changes++ % numbers.size()]);
    return changes >= static_cast<std::size_t>(scaled(200)) && busy.least() >= scaled(100);
  }));
  for (const int n : numbers) {
    gomaxprocs(n);
    EXPECT_TRUE(busy.gets_on(10)) << n;
  }
}

TEST_F(NetpollStress, ATokenGoesRoundThroughGoroutinesAndThreads) {
  constexpr int links = 20;
  std::vector<Ends> ring;
  for (int i = 0; i < links; ++i) ring.push_back(i % 2 == 0 ? make_pair() : make_pipe());
  std::atomic<std::uint64_t> last{0};
  wait_group wg;
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < links; ++i) {
    const auto pass = [&, in = ring[i].in, out = ring[(i + 1) % links].out, i] {
      while (const std::uint64_t v = read_value(in)) {
        if (i == 0) last = v;
        if (!write_value(out, v + 1)) break;
      }
      out.close();
    };
    if (i % 7 == 3) {
      threads.emplace_back(pass);
    } else {
      wg.go(pass);
    }
  }
  write_value(ring[0].out, 1);
  EXPECT_TRUE(go_on_until([&] { return last >= static_cast<unsigned>(scaled(4000)); })) << last;
  ring[0].in.close();
  wg.wait();
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace gofer
