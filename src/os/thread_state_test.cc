// gofer-test: once
#include "os/thread_state.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>

#include "os/thread.h"

namespace gofer::internal::os {
namespace {

// A thread that does something, with its id.
class Doing {
 public:
  explicit Doing(const std::function<void()>& f)
      : thread_([this, f] {
          id_ = thread_id();
          f();
        }) {
    while (id_ == 0) std::this_thread::yield();
  }
  ~Doing() { join(); }
  Doing(const Doing&) = delete;
  Doing& operator=(const Doing&) = delete;
  int id() const { return id_; }
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<int> id_{0};
  std::thread thread_;
};

// The state becomes this one, in a minute at most.
bool becomes(int tid, ThreadState::Doing wanted, uint64_t futex = 0) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (std::chrono::steady_clock::now() < end) {
    const ThreadState state = thread_state(tid);
    if (state.doing == wanted && (futex == 0 || state.futex == futex)) return true;
    std::this_thread::yield();
  }
  return false;
}

TEST(ThreadState, OfAComputingThreadIsRunning) {
  std::atomic<bool> stop{false};
  Doing spinner([&] {
    while (!stop) asm volatile("");
  });
  ASSERT_TRUE(becomes(spinner.id(), ThreadState::running));
  int asleep = 0;
  for (int i = 0; i < 1000; ++i) {
    const ThreadState state = thread_state(spinner.id());
    asleep += state.doing != ThreadState::running;
    EXPECT_EQ(state.futex, 0u);
  }
  EXPECT_LT(asleep, 10);  // it may meet a page fault
  stop = true;
}

TEST(ThreadState, OfASleepingThreadIsAsleep) {
  std::atomic<bool> stop{false};
  Doing sleeper([&] {
    while (!stop) usleep(1000);
  });
  EXPECT_TRUE(becomes(sleeper.id(), ThreadState::asleep));
  EXPECT_EQ(thread_state(sleeper.id()).futex, 0u);
  stop = true;
}

TEST(ThreadState, OfAReaderIsAsleepUntilThereIsSomethingToRead) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::atomic<bool> stop{false};
  {
    Doing reader([&] {
      char c;
      static_cast<void>(!read(ends[0], &c, 1));
      while (!stop) asm volatile("");
    });
    EXPECT_TRUE(becomes(reader.id(), ThreadState::asleep));
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    EXPECT_TRUE(becomes(reader.id(), ThreadState::running));
    stop = true;
  }
  close(ends[0]);
  close(ends[1]);
}

TEST(ThreadState, OfAWaiterForAMutexNamesTheMutexAndThatItsOwner) {
  std::mutex mutex;
  mutex.lock();
  Doing waiter([&] { std::lock_guard lock(mutex); });
  const auto address = reinterpret_cast<uint64_t>(mutex.native_handle());
  EXPECT_TRUE(becomes(waiter.id(), ThreadState::asleep, address));
  EXPECT_EQ(peek(address + 8), static_cast<uint32_t>(thread_id()));
  mutex.unlock();
}

TEST(ThreadState, OfAnEndedThreadIsUnknown) {
  Doing brief([] {});
  brief.join();
  EXPECT_TRUE(becomes(brief.id(), ThreadState::unknown));
  EXPECT_EQ(thread_cpu_ns(brief.id()), -1);
  EXPECT_EQ(thread_state(0).doing, ThreadState::unknown);
  EXPECT_EQ(thread_state(-1).doing, ThreadState::unknown);
}

TEST(ThreadCpu, GrowsWhileTheThreadComputes) {
  std::atomic<bool> stop{false};
  Doing spinner([&] {
    while (!stop) asm volatile("");
  });
  const int64_t before = thread_cpu_ns(spinner.id());
  EXPECT_GE(before, 0);
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (thread_cpu_ns(spinner.id()) < before + 1'000'000 &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_GE(thread_cpu_ns(spinner.id()), before + 1'000'000);
  stop = true;
}

TEST(ThreadCpu, StandsStillWhileTheThreadSleeps) {
  std::mutex mutex;
  mutex.lock();
  Doing waiter([&] { std::lock_guard lock(mutex); });
  ASSERT_TRUE(becomes(waiter.id(), ThreadState::asleep));
  const int64_t before = thread_cpu_ns(waiter.id());
  usleep(5000);
  EXPECT_EQ(thread_cpu_ns(waiter.id()), before);
  mutex.unlock();
}

TEST(Peek, ReadsWhatIsMappedAndNothingElse) {
  const uint32_t word = 0x12345678;
  EXPECT_EQ(peek(reinterpret_cast<uint64_t>(&word)), word);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  char* pages = static_cast<char*>(
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  pages[page - 1] = 7;
  ASSERT_EQ(munmap(pages + page, page), 0);
  const auto end = reinterpret_cast<uint64_t>(pages) + page;
  EXPECT_EQ(peek(end - 4), 7u << 24);
  EXPECT_EQ(peek(end - 2), 0u);  // half of it
  EXPECT_EQ(peek(end), 0u);
  EXPECT_EQ(peek(0), 0u);
  EXPECT_EQ(peek(8), 0u);
  EXPECT_EQ(peek(~uint64_t{0}), 0u);
  munmap(pages, page);
}

}  // namespace
}  // namespace gofer::internal::os
