// rw_mutex: many readers or one writer, who comes before whom, limits of waiting, misuse.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/child.h"
#include "support/goroutines_and_threads.h"
#include "support/quiescent.h"
#include "support/report.h"
#include "support/scaled.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::all_asleep;
using test::ChildResult;
using test::in_all;
using test::in_both;
using test::quiescent;
using test::run_child;
using test::scaled;
using test::started;
using test::wait_until;

using RWMutex = test::QuiescentTest;

// Nobody holds it, nobody waits for it, and it works.
testing::AssertionResult is_free(rw_mutex& m) {
  if (!m.try_lock()) return testing::AssertionFailure() << "it is not free";
  if (m.try_lock() || m.try_lock_shared()) return testing::AssertionFailure() << "locked twice";
  m.unlock();
  if (!m.try_lock_shared()) return testing::AssertionFailure() << "readers cannot have it";
  if (!m.try_lock_shared()) return testing::AssertionFailure() << "only one reader can have it";
  m.unlock_shared();
  m.unlock_shared();
  return testing::AssertionSuccess();
}

// With readers in it: a writer waits, so that no more may come.
bool writer_waits(rw_mutex& m) {
  return wait_until([&] {
    if (!m.try_lock_shared()) return true;
    m.unlock_shared();
    return false;
  });
}

static_assert(!std::is_copy_constructible_v<rw_mutex> && !std::is_move_constructible_v<rw_mutex>);
static_assert(std::is_nothrow_default_constructible_v<rw_mutex>);

TEST_F(RWMutex, IsTakenByTheLocksOfTheStandard) {
  in_both([] {
    rw_mutex m, other;
    {
      std::lock_guard guard(m);
      EXPECT_FALSE(std::shared_lock(m, std::try_to_lock));
      EXPECT_FALSE(std::unique_lock(m, 1us));
      EXPECT_FALSE(std::shared_lock(m, 1us));
      EXPECT_FALSE(std::shared_lock(m, steady_clock::now()));
    }
    {
      std::shared_lock reader(m);
      EXPECT_TRUE(std::shared_lock(m, std::try_to_lock));
      EXPECT_TRUE(std::shared_lock(m, 1us));
      EXPECT_FALSE(std::unique_lock(m, std::try_to_lock));
    }
    {
      std::scoped_lock both(m, other);
      EXPECT_FALSE(m.try_lock_shared());
      EXPECT_FALSE(other.try_lock_shared());
    }
    EXPECT_TRUE(is_free(m));
    EXPECT_TRUE(is_free(other));
  });
}

TEST_F(RWMutex, MayBeUnlockedByAnother) {
  in_both([] {
    rw_mutex m;
    for (int i = 0; i < 100; ++i) {
      m.lock();
      started.go([&] { m.unlock(); });
      m.lock_shared();
      m.lock_shared();
      started.go([&] { m.unlock_shared(); });
      std::thread([&] { m.unlock_shared(); }).join();
      m.lock();
      m.unlock();
    }
    EXPECT_TRUE(is_free(m));
  });
}

// Readers add 1 while they are inside, writers 10,000: whoever sees more than its own kind allows
// has met somebody it must not meet.
void hammer(int procs, int readers, int writers, int threads, int rounds) {
  SCOPED_TRACE(std::to_string(procs) + " processors, " + std::to_string(readers) + " readers, " +
               std::to_string(writers) + " writers, " + std::to_string(threads) + " threads");
  constexpr int writing = 10'000;
  gomaxprocs(procs);
  rw_mutex m;
  std::atomic<int> inside{0};
  std::atomic<int> wrong{0};
  long written = 0;  // protected by m
  const auto write = [&] {
    std::lock_guard guard(m);
    wrong += inside.fetch_add(writing) != 0;
    ++written;
    if (written % 4 == 0) yield();
    inside -= writing;
  };
  const auto read = [&](int i) {
    std::shared_lock guard(m);
    const long before = written;
    wrong += inside.fetch_add(1) >= writing;
    if (i % 4 == 0) yield();
    wrong += written != before;
    --inside;
  };
  in_all(readers + writers, threads, [&](int who) {
    const bool writer = who < writers || who == readers + writers;  // the first thread, too
    for (int i = 0; i < rounds; ++i) writer ? write() : read(i);
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(written, static_cast<long>(rounds) * (writers + (threads > 0 ? 1 : 0)));
  EXPECT_TRUE(is_free(m));
}

TEST_F(RWMutex, KeepsReadersAndWritersApart) {
  const int before = gomaxprocs(0);
  const int rounds = scaled(800);
  for (const int procs : {1, 2, 4, 10}) {
    hammer(procs, 1, 1, 0, rounds);
    hammer(procs, 3, 1, 0, rounds);
    hammer(procs, 10, 2, 0, rounds);
    hammer(procs, 0, 5, 0, rounds);
  }
  hammer(before, 10, 2, 2, rounds / 2);
  hammer(before, 0, 0, 4, rounds / 2);
  hammer(before, 100, 5, 0, rounds / 4);
  gomaxprocs(before);
}

TEST_F(RWMutex, ReadersAreInsideTogether) {
  rw_mutex m;
  std::atomic<int> inside{0};
  std::atomic<int> together{0};
  in_all(20, 3, [&](int) {
    std::shared_lock guard(m);
    ++inside;
    together += wait_until([&] { return inside == 23; });
  });
  EXPECT_EQ(together, 23);
  EXPECT_TRUE(is_free(m));
}

// ---------------------------------------------------------------- who comes before whom

TEST_F(RWMutex, WaitingWriterKeepsNewReadersOut) {
  rw_mutex m;
  std::vector<std::string> order;  // protected by m, or by there being one
  m.lock_shared();
  started.go([&] {
    std::lock_guard guard(m);
    order.emplace_back("writer");
  });
  ASSERT_TRUE(writer_waits(m));
  EXPECT_FALSE(m.try_lock_shared());
  EXPECT_FALSE(m.try_lock_shared_for(0s));
  EXPECT_FALSE(m.try_lock_shared_for(100us));
  EXPECT_FALSE(run([&] { return m.try_lock_shared_for(100us); }));
  std::atomic<bool> began{false};
  started.go([&] {
    began = true;
    std::shared_lock guard(m);
    order.emplace_back("reader");
  });
  ASSERT_TRUE(wait_until([&] { return began.load(); }) && all_asleep());
  EXPECT_TRUE(order.empty());
  m.unlock_shared();
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(order, (std::vector<std::string>{"writer", "reader"}));
  EXPECT_TRUE(is_free(m));
}

// The second writer came before all of the readers.
TEST_F(RWMutex, ReadersThatWaitComeBeforeTheNextWriter) {
  rw_mutex m;
  const int count = 10;
  std::atomic<int> began{0};
  std::atomic<int> read{0};
  int seen_by_writer = -1;
  m.lock();
  started.go([&] {
    ++began;
    std::lock_guard guard(m);
    seen_by_writer = read;
  });
  ASSERT_TRUE(wait_until([&] { return began == 1; }) && all_asleep());
  for (int i = 0; i < count; ++i) {
    started.go([&] {
      ++began;
      std::shared_lock guard(m);
      EXPECT_TRUE(wait_until([&] { return began == count + 2; }));
      ++read;
    });
  }
  ASSERT_TRUE(wait_until([&] { return began == count + 1; }) && all_asleep());
  EXPECT_EQ(read, 0);
  m.unlock();
  EXPECT_FALSE(m.try_lock()) << "the readers have it";
  EXPECT_FALSE(m.try_lock_shared()) << "the writer keeps more readers out";
  ++began;
  ASSERT_TRUE(quiescent());
  EXPECT_EQ(seen_by_writer, count);
  EXPECT_TRUE(is_free(m));
}

TEST_F(RWMutex, WritersThatWaitComeInTheirOrder) {
  rw_mutex m;
  const int count = 20;
  std::atomic<int> began{0};
  std::vector<int> order;
  m.lock();
  for (int i = 0; i < count; ++i) {
    started.go([&, i] {
      ++began;
      std::lock_guard guard(m);
      order.push_back(i);
    });
    ASSERT_TRUE(wait_until([&] { return began == i + 1; }) && all_asleep());
  }
  m.unlock();
  ASSERT_TRUE(quiescent());
  for (int i = 0; i < count; ++i) EXPECT_EQ(order.at(static_cast<std::size_t>(i)), i);
}

// Four hold it nearly always, one after another; one of the other kind wants it now and then.
template <class Many, class One>
void expect_no_starvation() {
  rw_mutex m;
  std::atomic<bool> stop{false};
  for (int i = 0; i < 4; ++i) {
    started.go([&] {
      while (!stop) {
        Many lock(m);
        sleep_for(100us);
      }
    });
  }
  for (int i = 0; i < 10; ++i) {
    static_cast<void>(One(m));
    run([&] { static_cast<void>(One(m)); });
  }
  stop = true;
  EXPECT_TRUE(quiescent());
  EXPECT_TRUE(is_free(m));
}

TEST_F(RWMutex, NeitherSideStarvesTheOther) {
  expect_no_starvation<std::shared_lock<rw_mutex>, std::unique_lock<rw_mutex>>();
  expect_no_starvation<std::unique_lock<rw_mutex>, std::shared_lock<rw_mutex>>();
}

// ---------------------------------------------------------------- limits

TEST_F(RWMutex, AnyTimeLimitDoesForAFreeOne) {
  in_both([] {
    rw_mutex m;
    const auto try_both = [&](auto d) {
      EXPECT_TRUE(m.try_lock_for(d));
      m.unlock();
      EXPECT_TRUE(m.try_lock_shared_for(d));
      m.unlock_shared();
    };
    try_both(0s);
    try_both(-1h);
    try_both(std::chrono::nanoseconds::min());
    try_both(std::chrono::hours::max());
    try_both(std::chrono::duration<double>(1e300));
    for (const auto t : {steady_clock::time_point::min(), steady_clock::time_point::max()}) {
      EXPECT_TRUE(m.try_lock_until(t));
      m.unlock();
      EXPECT_TRUE(m.try_lock_shared_until(t));
      m.unlock_shared();
    }
    EXPECT_TRUE(is_free(m));
  });
}

TEST_F(RWMutex, TimeLimitsOfThePastDoNotWaitAndOthersAreNotOverTooEarly) {
  for (const bool written : {true, false}) {
    rw_mutex m;
    written ? m.lock() : m.lock_shared();
    in_both([&] {
      const auto fails = [&](auto d) {
        const auto begin = steady_clock::now();
        EXPECT_FALSE(m.try_lock_for(d));
        EXPECT_FALSE(written && m.try_lock_shared_for(d));
        EXPECT_GE(steady_clock::now() - begin, d);
      };
      fails(0s);
      fails(-1ns);
      fails(-1h);
      fails(std::chrono::nanoseconds::min());
      fails(1us);
      fails(2ms);
      for (const auto t : {steady_clock::time_point::min(), steady_clock::time_point{},
                           steady_clock::now() - 1s, steady_clock::now() + 100us}) {
        EXPECT_FALSE(m.try_lock_until(t));
        EXPECT_EQ(m.try_lock_shared_until(t), !written);
        if (!written) m.unlock_shared();
      }
    });
    written ? m.unlock() : m.unlock_shared();
    EXPECT_TRUE(is_free(m));
  }
}

TEST_F(RWMutex, HugeTimeLimitsLastUntilTheUnlock) {
  rw_mutex m;
  m.lock();
  std::atomic<int> began{0};
  std::atomic<int> got{0};
  std::thread all([&] {
    in_all(4, 4, [&](int i) {
      ++began;
      if (i % 2 == 0) {
        got += m.try_lock_for(std::chrono::hours::max());
        m.unlock();
      } else {
        got += m.try_lock_shared_until(steady_clock::time_point::max());
        m.unlock_shared();
      }
    });
  });
  EXPECT_TRUE(wait_until([&] { return began == 8; }) && all_asleep());
  EXPECT_EQ(got, 0);
  m.unlock();
  all.join();
  EXPECT_EQ(got, 8);
  EXPECT_TRUE(is_free(m));
}

// A reader is inside, a writer waits for it, and readers for the writer, which then gives up.
template <class Write, class GiveUp>
void let_readers_in(Write write, GiveUp give_up) {
  rw_mutex m;
  m.lock_shared();
  std::atomic<bool> gave_up{false};
  std::atomic<int> inside{0};
  std::atomic<int> together{0};
  started.go([&] {
    gave_up = !write(m);
    if (!gave_up) m.unlock();
  });
  // It waits, unless its time was over before anybody could see that.
  ASSERT_TRUE(wait_until([&] {
    if (gave_up || !m.try_lock_shared()) return true;
    m.unlock_shared();
    return false;
  }));
  std::thread readers([&] {
    in_all(4, 2, [&](int) {
      std::shared_lock guard(m);
      ++inside;
      together += wait_until([&] { return inside == 6; });
    });
  });
  give_up();
  readers.join();
  ASSERT_TRUE(quiescent());
  EXPECT_TRUE(gave_up);
  EXPECT_EQ(together, 6);
  m.unlock_shared();
  EXPECT_TRUE(is_free(m));
}

TEST_F(RWMutex, WriterThatGivesUpLetsReadersIn) {
  for (int i = 0; i < 5; ++i) {
    let_readers_in([](rw_mutex& m) { return m.try_lock_for(20ms); }, [] {});
    const auto [ctx, cancel] = with_cancel(background());
    let_readers_in([ctx = ctx](rw_mutex& m) { return m.lock(ctx); }, cancel);
  }
}

TEST_F(RWMutex, OneOfTwoWritersThatGivesUpLetsNobodyIn) {
  rw_mutex m;
  m.lock_shared();
  std::atomic<bool> written{false};
  started.go([&] {
    std::lock_guard guard(m);
    written = true;
  });
  ASSERT_TRUE(writer_waits(m));
  EXPECT_FALSE(m.try_lock_for(100us));
  EXPECT_FALSE(run([&] { return m.try_lock_for(100us); }));
  EXPECT_FALSE(m.try_lock_shared());
  EXPECT_FALSE(m.try_lock_shared_for(100us));
  EXPECT_FALSE(written);
  m.unlock_shared();
  ASSERT_TRUE(quiescent());
  EXPECT_TRUE(written);
  EXPECT_TRUE(is_free(m));
}

TEST_F(RWMutex, TimeoutsThatRaceWithUnlocksLoseNothing) {
  const int rounds = scaled(1000);
  for (const int patient : {0, 2}) {
    rw_mutex m;
    std::atomic<int> inside{0};
    std::atomic<int> wrong{0};
    constexpr int writing = 10'000;
    in_all(8, 2, [&](int who) {
      for (int i = 0; i < rounds; ++i) {
        const auto d = who < patient ? 10h : std::chrono::microseconds((i * 7 + who * 13) % 60);
        const bool writer = who % 3 == 0;
        if (!(writer ? m.try_lock_for(d) : m.try_lock_shared_for(d))) continue;
        wrong += inside.fetch_add(writer ? writing : 1) >= (writer ? 1 : writing);
        if (i % 3 == 0) yield();
        if (writer && i % 16 == 0) sleep_for(20us);
        inside -= writer ? writing : 1;
        writer ? m.unlock() : m.unlock_shared();
      }
    });
    EXPECT_EQ(wrong, 0);
    EXPECT_TRUE(is_free(m));
  }
}

// ---------------------------------------------------------------- contexts

TEST_F(RWMutex, ContextThatIsDoneEndsTheWaitAtOnce) {
  in_both([] {
    rw_mutex m;
    const auto [ctx, cancel] = with_cancel(background());
    cancel();
    m.lock();
    for (int i = 0; i < 100; ++i) {
      EXPECT_FALSE(m.lock(ctx));
      EXPECT_FALSE(m.lock_shared(ctx));
    }
    m.unlock();
    m.lock_shared();
    EXPECT_FALSE(m.lock(ctx));
    EXPECT_FALSE(m.lock(with_timeout(background(), -1s).ctx));
    EXPECT_TRUE(m.try_lock_shared()) << "no writer is left behind";
    m.unlock_shared();
    m.unlock_shared();
    EXPECT_TRUE(is_free(m));
  });
}

TEST_F(RWMutex, ContextIsOfNoAccountIfNobodyEndsIt) {
  in_both([] {
    rw_mutex m;
    const auto [ctx, cancel] = with_cancel(background());
    for (const context& c : {ctx, background(), with_timeout(background(), 1h).ctx}) {
      EXPECT_TRUE(m.lock(c));
      EXPECT_FALSE(m.try_lock_shared());
      started.go([&] { m.unlock(); });
      EXPECT_TRUE(m.lock_shared(c));
      EXPECT_TRUE(m.lock_shared(c));
      m.unlock_shared();
      started.go([&] { m.unlock_shared(); });
      EXPECT_TRUE(m.lock(c));
      m.unlock();
    }
    EXPECT_TRUE(is_free(m));
  });
}

TEST_F(RWMutex, CancelledContextEndsAllWaitsWithIt) {
  rw_mutex m;
  m.lock();
  const auto [ctx, cancel] = with_cancel(background());
  std::atomic<int> began{0};
  std::atomic<int> ended{0};
  std::thread all([&, ctx = ctx] {
    in_all(8, 4, [&](int who) {
      ++began;
      EXPECT_FALSE(who % 2 == 0 ? m.lock(ctx) : m.lock_shared(ctx));
      ++ended;
    });
  });
  EXPECT_TRUE(wait_until([&] { return began == 12; }) && all_asleep());
  EXPECT_EQ(ended, 0);
  cancel();
  all.join();
  EXPECT_EQ(ended, 12);
  m.unlock();
  EXPECT_TRUE(is_free(m));
}

TEST_F(RWMutex, CancellationsThatRaceWithUnlocksLoseNothing) {
  const int rounds = scaled(1000);
  rw_mutex m;
  std::atomic<int> wrong{0};
  std::atomic<int> writers{0};
  in_all(4, 1, [&](int who) {
    for (int i = 0; i < rounds; ++i) {
      const auto [ctx, cancel] = with_cancel(background());
      wait_group canceller;
      canceller.go([&, cancel = cancel] {
        if (who % 2 == 0) yield();
        cancel();
      });
      const bool writer = (who + i) % 3 == 0;
      if (writer ? m.lock(ctx) : m.lock_shared(ctx)) {
        wrong += writers.fetch_add(writer) != 0;
        if (i % 4 == 0) yield();
        writers -= writer;
        writer ? m.unlock() : m.unlock_shared();
      }
      canceller.wait();
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(is_free(m));
}

// ---------------------------------------------------------------- reports

void expect_fatal(const std::string& scenario, const std::string& text) {
  for (const char* where : {"goroutine", "thread"}) {
    const ChildResult r = run_child("sync_misuse_child", {scenario, where});
    EXPECT_TRUE(r.exited_with(2)) << scenario << ": " << r;
    EXPECT_EQ(r.err.find("fatal error: " + text + "\n"), 0u) << scenario << ": " << r;
    EXPECT_FALSE(r.out_has("went on")) << scenario << ": " << r;
  }
}

TEST_F(RWMutex, UnlockOfAnUnlockedOneIsFatal) {
  for (const char* scenario : {"rw_never_locked", "rw_after_use", "rw_unlock_of_a_reader",
                               "rw_after_a_mixture", "rw_unlock_while_a_writer_waits"}) {
    expect_fatal(scenario, "sync: Unlock of unlocked RWMutex");
  }
}

TEST_F(RWMutex, UnlockSharedOfAnUnlockedOneIsFatal) {
  for (const char* scenario : {"rw_shared_never_locked", "rw_shared_after_use",
                               "rw_unlock_shared_of_a_writer", "rw_shared_after_a_mixture"}) {
    expect_fatal(scenario, "sync: RUnlock of unlocked RWMutex");
  }
}

TEST_F(RWMutex, DeadlockReportNamesIt) {
  if (test::under_tsan) GTEST_SKIP() << "silent under TSan";
  const std::string asleep = "fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 ";
  const ChildResult reader = run_child("sync_misuse_child", {"waits_to_read"});
  EXPECT_TRUE(reader.exited_with(2)) << reader;
  EXPECT_EQ(reader.err.find(asleep + "[sync.RWMutex.RLock]:\n"), 0u) << reader;
  const ChildResult writer = run_child("sync_misuse_child", {"waits_to_write"});
  EXPECT_TRUE(writer.exited_with(2)) << writer;
  EXPECT_EQ(writer.err.find(asleep + "[sync.RWMutex.Lock]:\n"), 0u) << writer;
}

}  // namespace
}  // namespace gofer
