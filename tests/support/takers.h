// Taking Ps away from goroutines that are outside of the runtime, without waiting for sysmon.
#pragma once

#include <gofer/go.h>
#include <gofer/no_preempt.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "runtime/procs/p_table.h"
#include "runtime/procs/procs.h"
#include "runtime/procs/retake.h"

namespace gofer::test {

/// Takes p from the M that holds it, as sysmon does; another M gets it. False: that M was inside.
inline bool retake(internal::P* p) {
  if (!internal::take_p(p, internal::PWord(p->word.load()))) return false;
  internal::hand_off(p);
  return true;
}

/// Lets the test take the P, not sysmon.
inline void compute_until(const std::atomic<bool>& end) {
  const no_preempt scope;
  while (!end) internal::cpu_relax();
}

/// Threads that take every P they can get until the end of the scope.
class Takers {
 public:
  explicit Takers(int n = 1) {
    for (int i = 0; i < n; ++i) {
      threads_.emplace_back([this] {
        while (!stop_) {
          for (int p = 0; p < internal::p_table.in_use.load(); ++p) {
            if (retake(internal::p_table.all[p].load())) taken_.fetch_add(1);
          }
          std::this_thread::yield();
        }
      });
    }
  }
  ~Takers() { stop(); }
  Takers(const Takers&) = delete;
  Takers& operator=(const Takers&) = delete;

  void stop() {
    stop_ = true;
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }
  int64_t taken() const { return taken_; }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> taken_{0};
  std::vector<std::thread> threads_;
};

/// Tests in which Ps are taken: skipped where they cannot be.
class RetakeTest : public testing::Test {
 protected:
  void SetUp() override {
    gomaxprocs(0);
    if (!internal::taking.has_membarrier) GTEST_SKIP() << "no membarrier, no retake";
  }
};

}  // namespace gofer::test
