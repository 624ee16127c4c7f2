// Calls that block the thread, announced and not: the P goes to others meanwhile, and comes back.
// gofer-test: stress
#include <fcntl.h>
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "os/thread.h"
#include "runtime/base/sanitizer.h"
#include "runtime/procs/retake.h"
#include "runtime/sched/verify.h"
#include "runtime/watch/preempt.h"
#include "support/beside.h"
#include "support/pipe.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using internal::preemption;
using internal::taking;
using internal::os::thread_id;
using namespace test;

class Blocking : public testing::Test {
 protected:
  void SetUp() override {
    gomaxprocs(0);
    if (!taking.has_membarrier) GTEST_SKIP() << "no membarrier, no retake";
  }
  void TearDown() override {
    EXPECT_TRUE(wait_until([] { return num_goroutine() == 0; }));
    internal::verify_scheduler();
  }
};

// ---- many at once

// 200 goroutines at P=1 block for 10 ms each: one after the other that would be 2 s.
void many_sleep(const std::function<void()>& sleep) {
  Procs one(1);
  constexpr int sleepers = 200;
  std::atomic<int> at_once{0};
  std::atomic<int> most{0};
  std::atomic<int> slept{0};
  wait_group all;
  Light light;
  for (int i = 0; i < sleepers; ++i) {
    all.go([&] {
      const int n = ++at_once;
      int seen = most;
      while (n > seen && !most.compare_exchange_weak(seen, n)) continue;
      sleep();
      --at_once;
      ++slept;
    });
  }
  all.wait();
  EXPECT_EQ(slept, sleepers);
  EXPECT_GT(most, 5) << "they slept one after the other";
  EXPECT_TRUE(wait_until([&] { return light.woken() > 0; }));
}

TEST_F(Blocking, ManyAnnouncedCallsBlockAtOnce) {
  many_sleep([] { blocking([] { usleep(10'000); }); });
}

TEST_F(Blocking, ManyCallsThatHandOffBlockAtOnce) {
  many_sleep([] { blocking(handoff, [] { usleep(10'000); }); });
}

TEST_F(Blocking, ManyUnannouncedCallsBlockAtOnce) {
  many_sleep([] { usleep(10'000); });
}

// ---- blocking(f) as a function

// Runs f in a goroutine, at P=1 beside a light one.
void in_goroutine(const std::function<void()>& f) {
  Procs one(1);
  Light light;
  wait_group wg;
  wg.go([&] { f(); });
  wg.wait();
}

template <class... Handoff>
void check_results(Handoff... how) {
  EXPECT_EQ(blocking(how..., [] { return 7; }), 7);
  int x = 1;
  int& r = blocking(how..., [&]() -> int& { return x; });
  EXPECT_EQ(&r, &x);
  static_assert(std::is_void_v<decltype(blocking(how..., [] {}))>);
  blocking(how..., [&] { x = 2; });
  EXPECT_EQ(x, 2);
  auto p = blocking(how..., [] { return std::make_unique<int>(5); });
  EXPECT_EQ(*p, 5);
  // A function that cannot be copied, called as an rvalue.
  EXPECT_EQ(blocking(how..., [q = std::move(p)] { return *q; }), 5);
  try {
    blocking(how..., [] {
      usleep(3000);
      throw std::runtime_error("through");
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "through");
  }
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST_F(Blocking, ReturnsAndThrowsWhatTheFunctionDoes) {
  in_goroutine([] { check_results(); });
  in_goroutine([] { check_results(handoff); });
  check_results();  // a foreign thread
  check_results(handoff);
}

TEST_F(Blocking, ManyThrowAtOnce) {
  Procs one(1);
  std::atomic<int> caught{0};
  wait_group all;
  for (int i = 0; i < 50; ++i) {
    all.go([&, i] {
      try {
        throw std::runtime_error("outer");
      } catch (const std::runtime_error& outer) {
        try {
          blocking([&] {
            usleep(2000);
            throw std::logic_error(std::to_string(i));
          });
        } catch (const std::logic_error& e) {
          caught += e.what() == std::to_string(i) && std::string(outer.what()) == "outer";
        }
      }
    });
  }
  all.wait();
  EXPECT_EQ(caught, 50);
}

[[gnu::noinline]] int errno_now() { return errno; }

// As after the bare call.
TEST_F(Blocking, KeepsErrno) {
  std::atomic<int> wrong{0};
  Procs one(1);
  wait_group all;
  for (int i = 0; i < 20; ++i) {
    all.go([&, i] {
      for (int k = 0; k < 5; ++k) {
        blocking([&] {
          usleep(2000);
          errno = 1000 + i;
        });
        wrong += errno_now() != 1000 + i;
      }
    });
  }
  all.wait();
  EXPECT_EQ(wrong, 0);
}

template <class... Handoff>
void use_runtime(Handoff... how) {
  mutex m;
  chan<int> c(0);
  wait_group wg;
  int got = 0;
  blocking(how..., [&] {
    wg.go([=] { c.send(3); });
    usleep(1000);
    got = *c.recv();
    std::lock_guard lock(m);
    sleep_for(1ms);
    usleep(1000);
    yield();
    wg.wait();
  });
  EXPECT_EQ(got, 3);
}

TEST_F(Blocking, FunctionMayUseTheRuntime) {
  in_goroutine([] {
    for (int i = 0; i < 10; ++i) use_runtime();
  });
  in_goroutine([] {
    for (int i = 0; i < 10; ++i) use_runtime(handoff);
  });
  use_runtime();
  use_runtime(handoff);
}

TEST_F(Blocking, CallsMayBeNested) {
  in_goroutine([] {
    for (int i = 0; i < 10; ++i) {
      const int n = blocking([] {
        usleep(500);
        const int inner = blocking(handoff, [] {
          usleep(500);
          return blocking([] {
            usleep(500);
            return blocking(handoff, [] { return 1; });
          });
        });
        usleep(500);
        return inner + 1;
      });
      EXPECT_EQ(n, 2);
    }
  });
}

TEST_F(Blocking, OfALockedGoroutineStaysOnItsThread) {
  in_goroutine([] {
    lock_os_thread();
    const int thread = thread_id();
    for (int i = 0; i < 10; ++i) {
      blocking([] { usleep(1500); });
      EXPECT_EQ(thread_id(), thread);
      blocking(handoff, [] { usleep(300); });
      EXPECT_EQ(thread_id(), thread);
      usleep(1500);
      EXPECT_EQ(thread_id(), thread);
    }
    unlock_os_thread();
  });
}

TEST_F(Blocking, CheapCallKeepsItsProcessorAndStartsNoThread) {
  std::atomic<int> lost{0};
  run([&] {
    const uint64_t taken = taking.retaken.load();
    const int threads = stats().threads;
    for (int i = 0; i < 100'000; ++i) lost += blocking([&] { return i; }) != i;
    lost += static_cast<int>(taking.retaken.load() - taken > 3);  // of the machine's own delays
    lost += static_cast<int>(stats().threads > threads + 3);
  });
  EXPECT_EQ(lost, 0);
}

// ---- calls that the runtime knows nothing of

// At P=1, `block` blocks until another goroutine has called `release`.
void lets_others_run(const char* what, const std::function<void()>& block,
                     const std::function<void()>& release) {
  SCOPED_TRACE(what);
  Procs one(1);
  std::atomic<bool> begun{false};
  wait_group all;
  all.go([&] {
    begun = true;
    block();
  });
  all.go([&] {
    while (!begun) yield();
    sleep_for(1ms);
    release();
  });
  all.wait();
}

TEST_F(Blocking, UnannouncedCallsLetOthersRun) {
  {
    Pipe pipe;
    lets_others_run(
        "read", [&] { EXPECT_TRUE(pipe.read_one()); }, [&] { EXPECT_TRUE(pipe.write_one()); });
    lets_others_run(
        "poll",
        [&] {
          pollfd fd{pipe.ends[0], POLLIN, 0};
          EXPECT_EQ(poll(&fd, 1, -1), 1);
        },
        [&] { EXPECT_TRUE(pipe.write_one()); });
  }
  if (!internal::tsan_enabled) {  // which wants the owner to unlock it
    std::mutex mutex;
    mutex.lock();
    lets_others_run(
        "std::mutex", [&] { std::lock_guard lock(mutex); }, [&] { mutex.unlock(); });
  }
  {
    std::mutex mutex;
    std::condition_variable cond;
    bool set = false;
    lets_others_run(
        "std::condition_variable",
        [&] {
          std::unique_lock lock(mutex);
          cond.wait(lock, [&] { return set; });
        },
        [&] {
          std::lock_guard lock(mutex);
          set = true;
          cond.notify_all();
        });
  }
  {
    FILE* file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    const int a = fileno(file);
    const int b = open(("/proc/self/fd/" + std::to_string(a)).c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(b, 0);
    ASSERT_EQ(flock(a, LOCK_EX), 0);
    lets_others_run(
        "flock", [&] { EXPECT_EQ(flock(b, LOCK_EX), 0); }, [&] { flock(a, LOCK_UN); });
    close(b);
    std::fclose(file);
  }
  {
    Pipe pipe;
    const pid_t child = fork();
    if (child == 0) _exit(pipe.read_one() ? 0 : 1);
    lets_others_run(
        "waitpid",
        [&] {
          int status = -1;
          EXPECT_EQ(waitpid(child, &status, 0), child);
          EXPECT_EQ(status, 0);
        },
        [&] { EXPECT_TRUE(pipe.write_one()); });
  }
  {
    std::atomic<bool> released{false};
    lets_others_run(
        "usleep",
        [&] {
          while (!released) usleep(1000);
        },
        [&] { released = true; });
  }
}

TEST_F(Blocking, NamesAreLookedUpInGoroutines) {
  Procs one(1);
  Light light;
  wait_group all;
  for (int i = 0; i < 10; ++i) {
    all.go([] {
      addrinfo* result = nullptr;
      const int error = getaddrinfo("localhost", "80", nullptr, &result);
      if (error == 0) freeaddrinfo(result);
    });
  }
  all.wait();
}

// ---- back without a P

// Goroutines that compute at a moment, as a counter of threads that are at it sees it.
TEST_F(Blocking, OnlyAsManyComputeAsThereAreProcessors) {
  if (!preemption.has_signal) GTEST_SKIP() << "no thread is paused in this build";
  Procs one(1);
  constexpr int spinners = 12;
  Pipe pipe;
  std::vector<std::atomic<int64_t>> steps(spinners);
  std::atomic<int> blocked{0};
  std::atomic<bool> stop{false};
  wait_group all;
  for (int i = 0; i < spinners; ++i) {
    all.go([&, i] {
      ++blocked;
      pipe.read_one();
      while (!stop) {
        compute(1000);
        steps[static_cast<size_t>(i)].fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  ASSERT_TRUE(wait_until([&] { return blocked == spinners; }));
  for (int i = 0; i < spinners; ++i) EXPECT_TRUE(pipe.write_one());
  // Soon only one of them at a time advances: those that do in 1 ms, more than a little.
  int few = 0;
  EXPECT_TRUE(wait_until([&] {
    std::vector<int64_t> before;
    for (auto& s : steps) before.push_back(s);
    std::this_thread::sleep_for(1ms);
    int advancing = 0;
    for (size_t i = 0; i < steps.size(); ++i) advancing += steps[i] - before[i] > 2;
    few = advancing <= 2 ? few + 1 : 0;
    return few >= 10;
  }));
  stop = true;
  all.wait();
}

// The same after the number of Ps has fallen.
TEST_F(Blocking, OnlyAsManyComputeAfterGomaxprocsHasFallen) {
  if (!preemption.has_signal) GTEST_SKIP() << "no thread is paused in this build";
  Procs four(4);
  constexpr int spinners = 4;
  std::vector<std::atomic<int64_t>> steps(spinners);
  std::atomic<int> running{0};
  std::atomic<bool> stop{false};
  wait_group all;
  for (int i = 0; i < spinners; ++i) {
    all.go([&, i] {
      ++running;
      while (!stop) {
        compute(1000);
        steps[static_cast<size_t>(i)].fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  ASSERT_TRUE(wait_until([&] { return running == spinners; }));
  gomaxprocs(1);
  int few = 0;
  EXPECT_TRUE(wait_until(
      [&] {
        std::vector<int64_t> before;
        for (auto& s : steps) before.push_back(s);
        std::this_thread::sleep_for(20ms);
        int advancing = 0;
        for (size_t i = 0; i < steps.size(); ++i) advancing += steps[i] - before[i] > 2;
        few = advancing <= 3 ? few + 1 : 0;
        return few >= 5;
      },
      10s));
  stop = true;
  all.wait();
}

// Eight goroutines that announce one call after the other, each of which computes for that long:
// the longest time that a sleeper of 1 ms was away.
clock::duration longest_beside_calls(std::chrono::microseconds call) {
  std::atomic<bool> stop{false};
  wait_group callers;
  for (int i = 0; i < 8; ++i) {
    callers.go([&stop, call] {
      while (!stop) {
        blocking([call] {
          for (const auto end = clock::now() + call; clock::now() < end;) compute(100);
        });
      }
    });
  }
  clock::duration longest{};
  wait_group sleeper;
  sleeper.go([&longest] {
    for (const auto end = clock::now() + 2s; clock::now() < end;) {
      const auto from = clock::now();
      sleep_for(1ms);
      longest = std::max(longest, clock::now() - from);
    }
  });
  sleeper.wait();
  stop = true;
  callers.wait();
  return longest;
}

// No call lasts, and the P is never taken for long: sysmon must ask for it all the same.
TEST_F(Blocking, LoopsOfShortAnnouncedCallsDoNotStarveOthers) {
  for (const auto call : {10us, 100us, 1000us}) {
    EXPECT_LT(longest_beside_calls(call), 2s) << call.count() << " us";
  }
}

TEST_F(Blocking, AConvoyOfAMutexGoesOn) {
  if (!preemption.has_signal) GTEST_SKIP() << "no thread is paused in this build";
  std::mutex mutex;
  int64_t count = 0;
  std::atomic<int> advanced{0};
  std::atomic<bool> stop{false};
  wait_group all;
  Light light;
  for (int i = 0; i < 20; ++i) {
    all.go([&] {
      for (int k = 0; !stop; ++k) {
        {
          std::lock_guard lock(mutex);
          compute(20'000);
          ++count;
        }
        compute(20'000);
        if (k == 3) ++advanced;
      }
    });
  }
  EXPECT_TRUE(go_on_until([&] { return advanced == 20 && light.woken() > 100; }))
      << "advanced: " << advanced << ", woken: " << light.woken();
  stop = true;
  all.wait();
}

}  // namespace
}  // namespace gofer
