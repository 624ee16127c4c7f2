// rw_mutex: many readers or one writer, the order of waiters, misuse. Limits of waiting are in
// rw_mutex_limits_test.cc.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "support/child.h"
#include "support/goroutines_and_threads.h"
#include "support/quiescent.h"
#include "support/report.h"
#include "support/rw_mutex_state.h"
#include "support/scaled.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using test::all_asleep;
using test::ChildResult;
using test::in_all;
using test::in_goroutine_and_thread;
using test::is_free;
using test::quiescent;
using test::run_child;
using test::scaled;
using test::started;
using test::wait_until;
using test::writer_waits;

using RWMutex = test::QuiescentTest;

static_assert(!std::is_copy_constructible_v<rw_mutex> && !std::is_move_constructible_v<rw_mutex>);
static_assert(std::is_nothrow_default_constructible_v<rw_mutex>);

TEST_F(RWMutex, IsTakenByTheLocksOfTheStandard) {
  in_goroutine_and_thread([] {
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
  in_goroutine_and_thread([] {
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

// Readers add 1 while they hold the lock, writers 10,000. One that sees more than its own kind
// allows has met one that it must not meet.
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

// ---------------------------------------------------------------- the order of waiters

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
