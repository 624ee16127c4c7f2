// Waits for descriptors, and what ends them: events, deadlines, contexts, close.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <atomic>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "io/fd_state.h"
#include "runtime/poll/netpoll.h"
#include "runtime/sched/verify.h"
#include "support/child.h"
#include "support/descriptors.h"
#include "support/goroutines_and_threads.h"
#include "support/report.h"
#include "support/start_detached.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using namespace test;
using clock = std::chrono::steady_clock;

class FdWait : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(wait_until([] { return num_goroutine() == 0; }));
    EXPECT_EQ(internal::poll_state.waiters.load(), 0);
    internal::verify_scheduler();
  }
};

// Runs f beside: in a goroutine, and in another call in a foreign thread.
template <class Body, class Beside>
void beside(Body body, Beside f) {
  for (const bool by_thread : {false, true}) {
    in_goroutine_and_thread([&] {
      chan<int> ended(1);
      const auto run = [f, ended](auto& state) {
        f(state);
        ended.send(1);
      };
      body([&](auto& state) {
        if (by_thread) {
          test::start_detached([run, &state] { run(state); });
        } else {
          go([run, &state] { run(state); });
        }
      });
      ended.recv();
    });
  }
}

std::error_code read_error(const fd& in) {
  char byte;
  std::error_code ec;
  (void)in.read({&byte, 1}, ec);
  return ec;
}

std::error_code read_error(const context& ctx, const fd& in) {
  char byte;
  std::error_code ec;
  (void)in.read(ctx, {&byte, 1}, ec);
  return ec;
}

// ---- deadlines

TEST_F(FdWait, DeadlineInThePastEndsCallsAtOnce) {
  in_goroutine_and_thread([] {
    for (Ends e : {make_pair(), make_pipe()}) {
      e.out.write_all("bytes");
      e.in.set_deadline(-1h);
      EXPECT_EQ(read_error(e.in), std::errc::timed_out) << "even if there is something";
      std::error_code ec;
      e.in.wait_readable(ec);
      EXPECT_EQ(ec, std::errc::timed_out);
      for (const auto t : {clock::time_point(), clock::time_point::min(), clock::now() - 1ns}) {
        e.in.set_read_deadline(t);
        EXPECT_EQ(read_error(e.in), std::errc::timed_out);
      }
      e.in.set_read_deadline(std::chrono::system_clock::now() - 1h);
      EXPECT_EQ(read_error(e.in), std::errc::timed_out);
      e.out.set_write_deadline(0s);
      e.out.write_all("x", ec);
      EXPECT_EQ(ec, std::errc::timed_out);
      e.out.set_write_deadline(clock::time_point::max());
      e.in.set_read_deadline(clock::time_point::max());
      EXPECT_EQ(e.out.write_all("x"), 1u);
      char six[6];
      EXPECT_EQ(e.in.read_full(six), 6u);
    }
  });
}

TEST_F(FdWait, DeadlineOfOneSideLeavesTheOtherAlone) {
  Ends e = make_pair();
  e.in.set_read_deadline(0s);
  EXPECT_EQ(e.in.write("x"), 1u);
  e.out.set_write_deadline(0s);
  EXPECT_FALSE(read_error(e.out));
}

TEST_F(FdWait, DeadlineEndsAWaitAtItsTime) {
  in_goroutine_and_thread([] {
    Ends e = make_pair();
    fill(e.out);
    for (auto d : {0us, 100us, 3000us, 10000us}) {
      const auto start = clock::now();
      e.in.set_deadline(start + d);
      e.out.set_deadline(start + d);
      std::error_code ec;
      e.out.wait_writable(ec);
      EXPECT_EQ(ec, std::errc::timed_out);
      EXPECT_GE(clock::now() - start, d);
    }
    const auto start = clock::now();
    e.out.set_write_deadline(std::chrono::system_clock::now() + 5ms);
    std::error_code ec;
    EXPECT_EQ(e.out.write_all(std::string(10, 'x'), ec), 0u);
    EXPECT_EQ(ec, std::errc::timed_out);
    EXPECT_GE(clock::now() - start, 4ms);
  });
}

TEST_F(FdWait, CountsWhatWasDoneBeforeTheDeadline) {
  in_goroutine_and_thread([] {
    Ends e = make_pipe();
    e.out.write_all("abc");
    e.in.set_read_deadline(2ms);
    char bytes[10];
    std::error_code ec;
    EXPECT_EQ(e.in.read_full(bytes, ec), 3u);
    EXPECT_EQ(ec, std::errc::timed_out);
    const std::string much(1 << 20, 'x');
    e.out.set_write_deadline(2ms);
    const std::size_t written = e.out.write_all(much, ec);
    EXPECT_EQ(ec, std::errc::timed_out);
    EXPECT_GT(written, 0u);
    EXPECT_LT(written, much.size());
    std::string got(written, '\0');
    e.in.set_read_deadline(1min);
    EXPECT_EQ(e.in.read_full(got), written);
  });
}

TEST_F(FdWait, DeadlineCanBeMadeShorter) {
  beside(
      [](auto start) {
        Ends e = make_pair();
        e.in.set_deadline(1h);
        start(e);
        EXPECT_EQ(read_error(e.in), std::errc::timed_out);
        e.in.close();
      },
      [](Ends& e) {
        const fd in = e.in;
        EXPECT_TRUE(waiting_for_io(1));
        in.set_deadline(1ms);
      });
}

TEST_F(FdWait, DeadlineInThePastEndsAWait) {
  beside(
      [](auto start) {
        Ends e = make_pair();
        start(e);
        EXPECT_EQ(read_error(e.in), std::errc::timed_out);
      },
      [](Ends& e) {
        const fd in = e.in;
        EXPECT_TRUE(waiting_for_io(1));
        in.set_read_deadline(clock::time_point());
      });
}

TEST_F(FdWait, DeadlineCanBeMadeLongerOrRemoved) {
  for (const bool removed : {false, true}) {
    in_goroutine_and_thread([&] {
      Ends e = make_pair();
      const auto first = clock::now() + 30ms;
      e.in.set_deadline(first);
      wait_group wg;
      wg.go([&, in = e.in] {
        EXPECT_TRUE(wait_until(
            [&] { return internal::poll_state.waiters.load() == 1 || clock::now() > first; }));
        if (removed) {
          in.set_deadline(clock::time_point::max());
        } else {
          in.set_deadline(1h);
        }
        sleep_until(first + 5ms);
        (void)e.out.write("x");
      });
      const std::error_code ec = read_error(e.in);
      // If the other goroutine was late, the first deadline counts.
      EXPECT_TRUE(!ec || ec == std::errc::timed_out) << ec.message();
      if (!ec) {
        EXPECT_GE(clock::now(), first + 5ms);
      }
      wg.wait();
    });
  }
}

TEST_F(FdWait, DeadlineEndsAllCallsThatTakeTurns) {
  Ends e = make_pair();
  wait_group wg;
  std::atomic<int> late{0};
  for (int i = 0; i < 20; ++i) {
    wg.go([&] { late += read_error(e.in) == std::errc::timed_out; });
  }
  EXPECT_TRUE(waiting_for_io(1));
  e.in.set_deadline(1ms);
  wg.wait();
  EXPECT_EQ(late, 20);
}

// ---- contexts

TEST_F(FdWait, ContextThatIsDoneEndsCallsAtOnce) {
  in_goroutine_and_thread([] {
    const auto [ctx, cancel] = with_cancel(background());
    cancel();
    const auto [late, stop] = with_timeout(background(), 0s);
    Ends e = make_pair();
    e.out.write_all("bytes");
    EXPECT_EQ(read_error(ctx, e.in), std::errc::operation_canceled);
    EXPECT_EQ(read_error(late, e.in), std::errc::timed_out);
    std::error_code ec;
    e.in.wait_readable(ctx, ec);
    EXPECT_EQ(ec, std::errc::operation_canceled);
    e.in.wait_writable(ctx, ec);
    EXPECT_EQ(ec, std::errc::operation_canceled);
    EXPECT_EQ(e.out.write_all(ctx, "more", ec), 0u);
    EXPECT_EQ(ec, std::errc::operation_canceled);
    char five[5];
    EXPECT_EQ(e.in.read_full(background(), five, ec), 5u);
    EXPECT_FALSE(ec);
  });
}

TEST_F(FdWait, ContextEndsAWait) {
  struct State {
    Ends e = make_pair();
    cancellable c = with_cancel(background());
  };
  beside(
      [](auto start) {
        State s;
        start(s);
        EXPECT_EQ(read_error(s.c.ctx, s.e.in), std::errc::operation_canceled);
        (void)s.e.out.write("x");
        EXPECT_FALSE(read_error(s.e.in)) << "it is the call's context, not the descriptor's";
      },
      [](State& s) {
        const cancel_func cancel = s.c.cancel;
        EXPECT_TRUE(waiting_for_io(1));
        cancel();
      });
}

TEST_F(FdWait, ContextAndDeadlineWhicheverComesFirst) {
  in_goroutine_and_thread([] {
    Ends e = make_pair();
    e.in.set_deadline(1ms);
    const auto [far, stop_far] = with_timeout(background(), 1h);
    EXPECT_EQ(read_error(far, e.in), std::errc::timed_out);
    EXPECT_FALSE(far.err());
    e.in.set_deadline(1h);
    const auto [near, stop_near] = with_timeout(background(), 1ms);
    EXPECT_EQ(read_error(near, e.in), std::errc::timed_out);
    EXPECT_TRUE(near.err());
    stop_far();
  });
}

struct Locks : fd {
  explicit Locks(const fd& f) : fd(f) {}
  mutex& reading() const { return state()->reading; }
};

TEST_F(FdWait, ContextEndsTheWaitForATurn) {
  in_goroutine_and_thread([] {
    Ends e = make_pair();
    const auto [ctx, cancel] = with_cancel(background());
    wait_group wg;
    wg.go([&] { EXPECT_FALSE(read_error(e.in)); });
    EXPECT_TRUE(waiting_for_io(1));
    EXPECT_FALSE(Locks(e.in).reading().try_lock());
    wg.go([&, cancel = cancel] {
      for (int i = 0; i < 10; ++i) yield();
      cancel();
    });
    EXPECT_EQ(read_error(ctx, e.in), std::errc::operation_canceled);
    (void)e.out.write("x");
    wg.wait();
  });
}

// ---- close

TEST_F(FdWait, CloseEndsEveryWait) {
  struct State {
    Ends e = make_pair();
    std::atomic<int> closed{0};
  };
  beside(
      [](auto start) {
        State s;
        fill(s.e.in);
        const int native = s.e.in.native_handle();
        wait_group wg;
        for (int i = 0; i < 5; ++i) {
          wg.go([&] { s.closed += read_error(s.e.in) == io_errc::closed; });
          wg.go([&] {
            std::error_code ec;
            s.e.in.write_all("y", ec);
            s.closed += ec == io_errc::closed;
          });
        }
        EXPECT_TRUE(waiting_for_io(2));
        start(s);
        wg.wait();
        EXPECT_TRUE(wait_until([&] { return fcntl(native, F_GETFD) == -1; }));
        EXPECT_EQ(s.closed, 10);
      },
      [](State& s) {
        const fd copy = s.e.in;
        copy.close();
      });
}

TEST_F(FdWait, CloseEndsTheWaitsOfThreads) {
  Ends e = make_pipe();
  std::vector<std::thread> threads;
  std::atomic<int> closed{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { closed += read_error(e.in) == io_errc::closed; });
  }
  EXPECT_TRUE(waiting_for_io(1));
  e.in.close();
  EXPECT_EQ(e.in.native_handle(), -1);
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(closed, 4);
}

TEST_F(FdWait, OnlyOneOfManyClosesTakesEffect) {
  for (int round = 0; round < scaled(400); ++round) {
    Ends e = make_pair();
    wait_group wg;
    wg.go([&, in = e.in] { EXPECT_EQ(read_error(in), io_errc::closed); });
    for (int i = 0; i < 4; ++i) wg.go([in = e.in] { in.close(); });
    // The number that others ask for is that of this descriptor, or none.
    wg.go([in = e.in] {
      while (in) yield();
      EXPECT_EQ(in.native_handle(), -1);
    });
    wg.wait();
  }
}

TEST_F(FdWait, NumberCanBeAskedForWhileItIsClosed) {
  for (int round = 0; round < 50; ++round) {
    Ends e = make_pair();
    const int native = e.in.native_handle();
    std::atomic<int> asked{0};
    std::thread thread([&] {
      for (int n = native; n >= 0; n = e.in.native_handle()) {
        EXPECT_EQ(n, native);
        ++asked;
      }
    });
    EXPECT_TRUE(wait_until([&] { return asked > 10; }));
    e.in.close();
    thread.join();
  }
}

// ---- turns

TEST_F(FdWait, ReadersTakeEachByteOnce) {
  Ends e = make_pair();
  constexpr int readers = 8;
  const int total = scaled(20'000);
  std::atomic<int> got{0};
  std::vector<std::atomic<int>> seen(256);
  const auto read_all = [&] {
    unsigned char bytes[7];
    while (const std::size_t n = e.in.read(bytes)) {
      for (std::size_t i = 0; i < n; ++i) ++seen[bytes[i]];
      got += static_cast<int>(n);
    }
  };
  wait_group wg;
  for (int i = 0; i < readers; ++i) wg.go(read_all);
  std::thread one_more(read_all);
  for (int i = 0; i < total; ++i) {
    const auto byte = static_cast<unsigned char>(i);
    (void)e.out.write({&byte, 1});
  }
  e.out.close();
  wg.wait();
  one_more.join();
  EXPECT_EQ(got, total);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(seen[i], total / 256 + (i < total % 256)) << i;
}

TEST_F(FdWait, WriteAllIsNotMixedWithOthers) {
  constexpr std::size_t size = 300'000;  // more than fits at once
  for (Ends e : {make_pair(), make_pipe()}) {
    wait_group wg;
    const int writers = 4;
    for (int i = 0; i < writers; ++i) {
      wg.go([&, i] { e.out.write_all(std::string(size, static_cast<char>('a' + i))); });
    }
    std::thread thread([&] { e.out.write_all(std::string(size, 'z')); });
    std::set<char> seen;
    for (int i = 0; i < writers + 1; ++i) {
      std::string part(size, '\0');
      ASSERT_EQ(e.in.read_full(part), size);
      EXPECT_EQ(part.find_first_not_of(part[0]), std::string::npos);
      seen.insert(part[0]);
    }
    EXPECT_EQ(seen.size(), 5u);
    wg.wait();
    thread.join();
  }
}

TEST_F(FdWait, ThreadsAndGoroutinesPlayPingPong) {
  for (const bool thread : {false, true}) {
    in_goroutine_and_thread([&] {
      Ends e = make_pair();
      const int rounds = scaled(3000);
      const auto echo = [&, other = e.out] {
        for (int i = 0; i < rounds; ++i) {
          int value = -1;
          ASSERT_EQ(other.read_full({&value, sizeof value}), sizeof value);
          ASSERT_EQ(value, i);
          other.write_all({&value, sizeof value});
        }
      };
      wait_group wg;
      std::thread t;
      if (thread) {
        t = std::thread(echo);
      } else {
        wg.go(echo);
      }
      for (int i = 0; i < rounds; ++i) {
        e.in.write_all({&i, sizeof i});
        int value = -1;
        ASSERT_EQ(e.in.read_full({&value, sizeof value}), sizeof value);
        ASSERT_EQ(value, i);
      }
      wg.wait();
      if (thread) t.join();
    });
  }
}

// ---- for other libraries

TEST_F(FdWait, TellsWhenAReadWouldNotBlock) {
  in_goroutine_and_thread([] {
    for (Ends e : {make_pair(), make_pipe()}) {
      const int total = scaled(1000);
      wait_group wg;
      wg.go([&] {
        for (int i = 0; i < total; ++i) e.out.write_all("12345");
      });
      char byte;
      for (int i = 0; i < total * 5; ++i) {  // leaves some of each event behind
        e.in.wait_readable();
        ASSERT_EQ(::read(e.in.native_handle(), &byte, 1), 1);
        ASSERT_EQ(byte, '1' + i % 5);
      }
      wg.wait();
      e.out.close();
      e.in.wait_readable();
      EXPECT_EQ(::read(e.in.native_handle(), &byte, 1), 0);
    }
  });
}

TEST_F(FdWait, TellsWhenAWriteWouldNotBlock) {
  in_goroutine_and_thread([] {
    for (Ends e : {make_pair(), make_pipe()}) {
      e.out.wait_writable();
      const std::size_t filled = fill(e.out);
      wait_group wg;
      wg.go([&, filled] {
        EXPECT_TRUE(waiting_for_io(1));
        std::string all(filled, '\0');
        e.in.read_full(all);
      });
      e.out.wait_writable();
      EXPECT_GT(::write(e.out.native_handle(), "x", 1), 0);
      wg.wait();
    }
  });
}

// ---- with the detector of deadlocks

TEST_F(FdWait, IsNoDeadlock) {
  for (const char* scenario : {"waits_for_descriptor", "another_waits", "thread_waits"}) {
    const ChildResult r = run_child("fd_child", {scenario});
    EXPECT_TRUE(r.exited_with(0)) << scenario << r;
    EXPECT_TRUE(r.out_has("completed")) << scenario << r;
  }
}

TEST_F(FdWait, HidesNoDeadlockAfterItsEnd) {
  if (under_tsan) GTEST_SKIP() << "silent under TSan";
  const ChildResult r = run_child("fd_child", {"deadlock_afterwards"});
  EXPECT_TRUE(r.exited_with(2)) << r;
  EXPECT_TRUE(r.err_has("all goroutines are asleep")) << r;
}

TEST_F(FdWait, IsNamedInTraces) {
  const ChildResult r = run_child("fd_child", {"dump"});
  EXPECT_TRUE(r.err_has("[IO wait")) << r;
}

TEST_F(FdWait, IsNotWaitedForAtTheEnd) {
  const ChildResult r = run_child("fd_child", {"ends_while_others_wait"});
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_TRUE(r.out_has("completed")) << r;
}

TEST_F(FdWait, NeedsNoGoroutine) {
  const ChildResult r = run_child("fd_child", {"threads_only"});
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_TRUE(r.out_has("completed")) << r;
}

}  // namespace
}  // namespace gofer
