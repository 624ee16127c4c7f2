// The calling thread stays on the core it is on.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

namespace gofer::test {

class OneCore {
 public:
  OneCore() : core_(sched_getcpu()) {
    EXPECT_EQ(sched_getaffinity(0, sizeof before_, &before_), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core_, &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  }
  ~OneCore() { sched_setaffinity(0, sizeof before_, &before_); }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

  int here() const { return core_; }
  int elsewhere() const { return core_ + 1; }

 private:
  int core_;
  cpu_set_t before_;
};

}  // namespace gofer::test
