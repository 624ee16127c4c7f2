// What tests of preemption and of blocking calls share: goroutines that hold all Ps, a light one
// beside them, and how long that goes on.
//
// GOFER_STRESS_SECONDS in the environment makes each such test go on for that time.
#pragma once

#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "runtime/sched/verify.h"
#include "runtime/watch/preempt.h"
#include "support/procs.h"
#include "support/wait_until.h"

namespace gofer::test {

using clock = std::chrono::steady_clock;

inline std::chrono::seconds stress_time() {
  const char* value = std::getenv("GOFER_STRESS_SECONDS");
  return std::chrono::seconds(value != nullptr ? std::atoi(value) : 0);
}

/// Until the condition is true, and in a stress run for its time at least.
template <class Condition>
[[nodiscard]] bool go_on_until(Condition&& condition) {
  const auto end = clock::now() + stress_time();
  return wait_until([&] { return clock::now() >= end && condition(); },
                    std::chrono::seconds(20) + stress_time());
}

/// Computes for some microseconds, without a call.
inline void compute(int n) {
  for (int i = 0; i < n; ++i) asm volatile("");
}

inline uint64_t pauses() { return internal::preemption.paused.load(); }

/// A goroutine that sleeps again and again, and counts how often it was woken.
class Light {
 public:
  Light() {
    group_.go([this] {
      while (!stop_) {
        sleep_for(std::chrono::microseconds(200));
        woken_.fetch_add(1);
      }
    });
  }
  ~Light() {
    stop_ = true;
    group_.wait();
  }
  Light(const Light&) = delete;
  Light& operator=(const Light&) = delete;
  int64_t woken() const { return woken_; }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> woken_{0};
  wait_group group_;
};

/// Tests in which threads are paused: skipped where they are not, and everything is in order behind
/// them.
class PausingTest : public testing::Test {
 protected:
  void SetUp() override {
    gomaxprocs(0);
    if (!internal::preemption.has_signal) GTEST_SKIP() << "no thread is paused in this build";
  }
  void TearDown() override {
    if (!internal::preemption.has_signal) return;
    EXPECT_TRUE(wait_until([] { return num_goroutine() == 0; }));
    internal::verify_scheduler();
  }
};

/// Runs step(i), which returns whether all was as it should be, in one goroutine more than there
/// are Ps, over and over, with a light goroutine beside them: until threads were paused and the
/// light one was woken often enough.
template <class Step>
void spin_beside_light(Step step, int64_t enough_pauses = 20, const go_options& options = {}) {
  const int spinners = gomaxprocs(0) + 1;
  const uint64_t before = pauses();
  std::atomic<bool> stop{false};
  std::atomic<int64_t> wrong{0};
  std::atomic<int> advanced{0};
  wait_group all;
  Light light;
  for (int i = 0; i < spinners; ++i) {
    all.add(1);
    go(options, [&, i] {
      bool first = true;
      while (!stop) {
        if (!step(i)) wrong.fetch_add(1);
        if (first) advanced.fetch_add(1);
        first = false;
      }
      all.done();
    });
  }
  EXPECT_TRUE(go_on_until([&] {
    return pauses() - before >= static_cast<uint64_t>(enough_pauses) && light.woken() >= 20 &&
           advanced == spinners;
  })) << "pauses: "
      << pauses() - before << ", woken: " << light.woken() << ", advanced: " << advanced;
  stop = true;
  all.wait();
  EXPECT_EQ(wrong, 0);
}

}  // namespace gofer::test
