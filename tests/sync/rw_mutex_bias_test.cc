// rw_mutex, biased: its readers are in a table instead of in its word, and nothing else changes.
// gofer-test: stress
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "support/beside.h"
#include "support/scaled.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using test::scaled;
using test::wait_until;

// How the lock begins. Readers set the bit when they have met often enough, as may any
// thread while no writer has the lock or waits for it.
struct Head {
  std::atomic<std::uint64_t> word;
  std::atomic<std::int32_t> leaning;
};
constexpr std::uint64_t biased = 16;
constexpr std::uint64_t no_writer_mask = 1 | 2 | 4;
constexpr int leaning_enough = 64;

Head& head(rw_mutex& m) { return reinterpret_cast<Head&>(m); }

std::atomic<std::uint64_t>& word(rw_mutex& m) { return head(m).word; }

bool is_biased(rw_mutex& m) { return (word(m).load() & biased) != 0; }

void make_biased(rw_mutex& m) {
  std::uint64_t now = word(m).load();
  while ((now & (biased | no_writer_mask)) == 0) {
    if (!word(m).compare_exchange_weak(now, now | biased)) continue;
    head(m).leaning = leaning_enough;
    return;
  }
}

TEST(BiasedRWMutex, ComesAboutAmongReadersThatMeet) {
  rw_mutex m;
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        m.lock_shared();
        m.unlock_shared();
      }
    });
  }
  EXPECT_TRUE(wait_until([&] { return is_biased(m); }));
  stop = true;
  for (std::thread& t : readers) t.join();
  EXPECT_TRUE(is_biased(m)) << "readers alone do not end it";
  EXPECT_EQ(word(m).load(), biased) << "nobody is left behind";
}

TEST(BiasedRWMutex, TellsWritersOfItsReaders) {
  rw_mutex m;
  make_biased(m);
  m.lock_shared();
  EXPECT_EQ(word(m).load(), biased) << "the reader is not in the word";
  EXPECT_FALSE(m.try_lock());
  EXPECT_FALSE(is_biased(m)) << "a writer ends it";
  EXPECT_FALSE(m.try_lock_for(1ms));
  EXPECT_TRUE(m.try_lock_shared());
  m.unlock_shared();
  m.unlock_shared();
  make_biased(m);
  ASSERT_TRUE(m.try_lock());
  EXPECT_FALSE(m.try_lock_shared());
  m.unlock();
  EXPECT_EQ(word(m).load(), 0u);
}

TEST(BiasedRWMutex, WriterWaitsForReadersOfTheTableAndOfTheWord) {
  run([] {
    rw_mutex m;
    m.lock_shared();  // in the word
    make_biased(m);
    m.lock_shared();  // in the table
    m.lock_shared();  // in the word again: its place is taken
    std::atomic<bool> written{false};
    wait_group writer;
    writer.go([&] {
      const std::lock_guard guard(m);
      written = true;
    });
    EXPECT_TRUE(wait_until([&] { return (word(m).load() & 4) != 0; })) << "it waits";
    EXPECT_FALSE(m.try_lock_shared());
    for (int i = 0; i < 3; ++i) {
      EXPECT_FALSE(written);
      m.unlock_shared();
    }
    writer.wait();
    EXPECT_EQ(word(m).load(), 0u);
  });
}

TEST(BiasedRWMutex, MayBeUnlockedOnAnotherThread) {
  rw_mutex m;
  for (int i = 0; i < 100; ++i) {
    make_biased(m);
    std::thread([&] { m.lock_shared(); }).join();
    EXPECT_FALSE(m.try_lock());
    make_biased(m);
    std::thread([&] { m.lock_shared(); }).join();
    std::thread([&] { m.unlock_shared(); }).join();
    m.unlock_shared();
    ASSERT_TRUE(m.try_lock()) << i;
    m.unlock();
  }
}

TEST(BiasedRWMutex, ManyAtOnceDoNotMixTheirReaders) {
  // More than the table has places for one thread.
  std::vector<rw_mutex> locks(200);
  for (rw_mutex& m : locks) {
    make_biased(m);
    m.lock_shared();
  }
  for (rw_mutex& m : locks) {
    EXPECT_FALSE(m.try_lock());
    m.unlock_shared();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  }
}

// Goroutines and threads that read, write, give up, and go on elsewhere while they read; the bias
// comes and goes all the time.
TEST(BiasedRWMutex, KeepsReadersAndWritersApart) {
  rw_mutex m;
  std::atomic<int> wrong{0};
  std::atomic<long> changes{0};
  long a = 0;
  long b = 0;
  const int rounds = scaled(20'000);
  auto read = [&](int i) {
    if (i % 16 == 0) make_biased(m);
    switch (i % 4) {
      case 0:
        if (!m.try_lock_shared()) return;
        break;
      case 1:
        if (!m.try_lock_shared_for(10us)) return;
        break;
      default:
        m.lock_shared();
    }
    const long seen = a;
    if (i % 50 == 0) yield();
    wrong += seen != b || seen != a;
    m.unlock_shared();
  };
  auto write = [&](int i) {
    if (i % 3 == 0 ? !m.try_lock() : i % 3 == 1 ? !m.try_lock_for(50us) : (m.lock(), false)) return;
    ++a;
    if (i % 64 == 0) yield();
    ++b;
    ++changes;
    m.unlock();
  };
  const auto end = test::clock::now() + test::stress_time();
  do {
    wait_group group;
    for (int g = 0; g < 8; ++g) {
      group.go([&, g] {
        for (int i = 0; i < rounds; ++i) i % 32 == g ? write(i / 32) : read(i + g);
      });
    }
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < rounds; ++i) i % 256 == 0 ? write(i / 256) : read(i);
      });
    }
    for (std::thread& t : threads) t.join();
    group.wait();
    ASSERT_EQ(wrong, 0);
    ASSERT_EQ(a, changes);
    ASSERT_TRUE(m.try_lock()) << "somebody was left behind";
    m.unlock();
    ASSERT_EQ(word(m).load(), 0u);
  } while (test::clock::now() < end);
}

}  // namespace
}  // namespace gofer
