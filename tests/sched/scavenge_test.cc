// Stacks that once went deep give their pages back while their goroutines are parked, and nothing
// that is in use is lost by it. The scavenger is on its way all the time here.
// gofer-test: stress
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "runtime/base/sanitizer.h"
#include "runtime/procs/retake.h"
#include "runtime/sched/verify.h"
#include "support/beside.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using namespace test;
using internal::taking;

// Before the runtime reads it.
[[maybe_unused]] const bool settings_made = [] {
  const char* given = std::getenv("GOFER_DEBUG");
  const std::string settings = "idlems=10,scavengems=1";
  return setenv("GOFER_DEBUG", (given != nullptr ? given + ("," + settings) : settings).c_str(),
                1) == 0;
}();

long resident_kb() {
  std::FILE* statm = std::fopen("/proc/self/statm", "r");
  long size = 0;
  long resident = 0;
  const int found = std::fscanf(statm, "%ld %ld", &size, &resident);
  std::fclose(statm);
  return found == 2 ? resident * 4 : -1;
}

constexpr int frame_bytes = 1000;

// Goes down `depth` frames, each with a pattern of its own, and is right if all of them are whole
// when it comes back. At the bottom it calls f.
template <class F>
[[gnu::noinline]] bool go_deep(int depth, int seed, const F& f) {
  std::array<volatile unsigned char, frame_bytes> frame;
  for (size_t i = 0; i < frame.size(); ++i) {
    frame[i] = static_cast<unsigned char>(static_cast<size_t>(seed + depth) + i);
  }
  bool whole = true;
  if (depth > 0) {
    whole = go_deep(depth - 1, seed, f);
  } else {
    f();
  }
  for (size_t i = 0; i < frame.size(); ++i) {
    whole &= frame[i] == static_cast<unsigned char>(static_cast<size_t>(seed + depth) + i);
  }
  return whole;
}

class Scavenge : public testing::Test {
 protected:
  void TearDown() override {
    EXPECT_TRUE(wait_until([] { return num_goroutine() == 0; }));
    internal::verify_scheduler();
  }
};

// Every running goroutine is done with a pass, and no M switches to one after it.
TEST_F(Scavenge, AlsoTrimsGoroutinesThatParkAfterAPass) {
  gomaxprocs(0);
  if (internal::sanitizers_enabled) GTEST_SKIP() << "the sanitizer has memory of its own";
  if (!taking.has_membarrier) GTEST_SKIP() << "no membarrier";
  constexpr int kb = 8192;
  const long before = resident_kb();
  std::atomic<long> deep{0};
  chan<int> gate(0);
  wait_group all;
  all.add(1);
  go({.stack_size = 2 * kb * 1024}, [&] {
    {
      const no_preempt alone;
      go_deep(kb, 0, [&] { deep = resident_kb(); });
      for (const auto end = clock::now() + 30ms; clock::now() < end;) compute(1000);
    }
    gate.recv();
    all.done();
  });
  ASSERT_TRUE(wait_until([&] { return deep != 0; }));
  EXPECT_GE(deep, before + kb / 2);
  EXPECT_TRUE(wait_until([&] { return resident_kb() < before + kb / 4; })) << resident_kb();
  gate.close();
  all.wait();
}

TEST_F(Scavenge, ParkedGoroutinesGiveBackWhatLiesBelow) {
  gomaxprocs(0);
  if (internal::sanitizers_enabled) GTEST_SKIP() << "the sanitizer has memory of its own";
  if (!taking.has_membarrier) GTEST_SKIP() << "no membarrier";
  constexpr int count = 200;
  constexpr int depth = 400;  // 400 KB
  const long before = resident_kb();
  const auto given_back = debug::metrics().stacks_given_back;
  std::atomic<int> deep{0};
  std::atomic<int> whole{0};
  latch all_deep(count);
  chan<int> gate(0);
  wait_group all;
  for (int i = 0; i < count; ++i) {
    all.go([&, i] {
      // Three frames stay, and are not harmed.
      whole += go_deep(3, i, [&] {
        whole += go_deep(depth, i, [&] {
          ++deep;
          all_deep.arrive_and_wait();  // so that none can use the stack of another
        });
        gate.recv();
      });
    });
  }
  ASSERT_TRUE(wait_until([&] { return deep == count; }));
  constexpr long used = long{count} * depth * frame_bytes / 1024;
  EXPECT_TRUE(wait_until([&] { return resident_kb() < before + used / 4; })) << resident_kb();
  EXPECT_GE(debug::metrics().stacks_given_back, given_back + count / 2);
  gate.close();
  all.wait();
  EXPECT_EQ(whole, 2 * count);
}

// Goroutines that park and run all the time, at the top of their stacks and deep down.
TEST_F(Scavenge, MeetsGoroutinesThatComeAndGo) {
  const int pairs = internal::sanitizers_enabled ? 4 : 16;
  const auto time = stress_time() > 0s ? std::chrono::milliseconds(stress_time()) : 500ms;
  const auto end = test::clock::now() + time;
  std::atomic<int> broken{0};
  std::atomic<int> rounds{0};
  wait_group all;
  for (int i = 0; i < pairs; ++i) {
    chan<int> there(0);
    chan<int> back(0);
    all.go([=, &broken, &rounds] {
      for (int k = 0; test::clock::now() < end; ++k) {
        const int depth = k % 7 * 10;
        broken += !go_deep(depth, k, [&] {
          there.send(k);
          back.recv();
        });
        if (k % 50 == 0) sleep_for(100us);
        ++rounds;
      }
      there.close();
    });
    all.go([=, &broken] {
      for (int k : there) broken += !go_deep(k % 5 * 9, k, [&] { back.send(k); });
    });
  }
  all.wait();
  EXPECT_EQ(broken, 0);
  EXPECT_GT(rounds, 0);
}

// Sleepers that wake just while they are looked at.
TEST_F(Scavenge, MeetsSleepersAndLockedThreads) {
  const int count = internal::sanitizers_enabled ? 20 : 200;
  const auto time = stress_time() > 0s ? std::chrono::milliseconds(stress_time()) : 300ms;
  const auto end = test::clock::now() + time;
  std::atomic<int> broken{0};
  wait_group all;
  for (int i = 0; i < count; ++i) {
    all.go([&, i] {
      if (i % 50 == 0) lock_os_thread();
      for (int k = 0; test::clock::now() < end; ++k) {
        broken += !go_deep(i % 13, k, [&] { sleep_for(std::chrono::microseconds(10 * (i % 40))); });
      }
      if (i % 50 == 0) unlock_os_thread();
    });
  }
  all.wait();
  EXPECT_EQ(broken, 0);
}

}  // namespace
}  // namespace gofer
