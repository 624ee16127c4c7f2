// gofer-test: once
// Which idle M is woken. The runtime is not started, so the scheduler's state is the test's.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "runtime/process/process_state.h"
#include "runtime/sched/sched_lock.h"
#include "runtime/threads/idle.h"
#include "support/one_core.h"

namespace gofer::internal {
namespace {

class IdleMs : public testing::Test {
 protected:
  void SetUp() override { ASSERT_FALSE(process.started.load()); }

  void TearDown() override {
    while (take() != nullptr) {
    }
    idle_ms.poller.store(nullptr);
    EXPECT_EQ(idle_ms.count, 0);
  }

  int here() const { return core_.here(); }
  int elsewhere() const { return core_.elsewhere(); }

  M* idle_on(int cpu) {
    M* m = ms_.emplace_back(std::make_unique<M>()).get();
    LockGuard guard(sched_lock);
    put_idle_m_locked(m);
    EXPECT_EQ(m->last_cpu, here());
    m->last_cpu = cpu;
    return m;
  }

  M* take() {
    LockGuard guard(sched_lock);
    return take_idle_m_locked();
  }

 private:
  test::OneCore core_;
  std::vector<std::unique_ptr<M>> ms_;
};

TEST_F(IdleMs, TheLastOneIsWokenFirst) {
  M* a = idle_on(elsewhere());
  M* b = idle_on(elsewhere());
  EXPECT_EQ(take(), b);
  EXPECT_EQ(take(), a);
  EXPECT_EQ(take(), nullptr);
}

TEST_F(IdleMs, OneThatWasOnThisCoreComesBefore) {
  M* a = idle_on(here());
  M* b = idle_on(elsewhere());
  EXPECT_EQ(take(), a);
  EXPECT_EQ(take(), b);
}

TEST_F(IdleMs, TheListIsNotSearchedForLong) {
  idle_on(here());
  for (int i = 0; i < 20; ++i) idle_on(elsewhere());
  M* last = idle_on(elsewhere());
  EXPECT_EQ(take(), last);
}

TEST_F(IdleMs, SleeperAndPollerStayIfThereIsAnother) {
  M* other = idle_on(elsewhere());
  M* sleeper = idle_ms.sleeper = idle_on(here());
  M* poller = idle_on(here());
  idle_ms.poller.store(poller);
  EXPECT_EQ(take(), other);
  EXPECT_EQ(take(), poller) << "the sleeper last";
  EXPECT_EQ(take(), sleeper);
  EXPECT_EQ(idle_ms.sleeper, nullptr);
}

}  // namespace
}  // namespace gofer::internal
