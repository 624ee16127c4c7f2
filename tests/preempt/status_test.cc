// The states of goroutines that are not in the scheduler's hands: paused, in a call, without a P.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>

#include "runtime/goroutines/status.h"
#include "runtime/procs/current.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/retake.h"
#include "runtime/sched/verify.h"
#include "runtime/watch/preempt.h"
#include "support/procs.h"
#include "support/takers.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using internal::G;
using internal::GStatus;
using internal::p_table;
using internal::preemption;
using internal::taking;
using internal::true_status;
using test::compute_until;
using test::Procs;
using test::wait_until;

bool becomes(const std::atomic<G*>& g, GStatus wanted) {
  return wait_until([&] { return g != nullptr && true_status(g) == wanted; });
}

G* this_g() { return internal::current_m()->curg; }

TEST(Status, OfAGoroutineThatComputesIsRunning) {
  const Procs one(1);
  std::atomic<G*> g{nullptr};
  std::atomic<bool> end{false};
  wait_group done;
  done.go([&] {
    g = this_g();
    compute_until(end);
  });
  EXPECT_TRUE(becomes(g, GStatus::running));
  end = true;
  done.wait();
}

TEST(Status, OfAGoroutineInAnAnnouncedCallIsSyscall) {
  const Procs one(1);
  std::atomic<G*> g{nullptr};
  std::atomic<bool> end{false};
  bool running_before = false;
  bool running_after = false;
  wait_group done;
  done.go([&] {
    running_before = true_status(this_g()) == GStatus::running;
    blocking([&] {
      g = this_g();
      compute_until(end);
    });
    const internal::Inside inside;
    running_after = true_status(this_g()) == GStatus::running;
  });
  EXPECT_TRUE(becomes(g, GStatus::syscall));
  ASSERT_NE(g, nullptr);
  EXPECT_EQ(g.load()->status.load(), GStatus::running);
  end = true;
  done.wait();
  EXPECT_TRUE(running_before);
  EXPECT_TRUE(running_after);
}

class StatusOfRetaken : public test::RetakeTest {};

TEST_F(StatusOfRetaken, IsSyscallUntilTheGoroutineNotices) {
  const Procs one(1);
  std::atomic<G*> g{nullptr};
  std::atomic<bool> end{false};
  std::atomic<bool> holder_runs{false};
  std::atomic<bool> holder_may_end{false};
  wait_group done;
  done.go([&] {
    g = this_g();
    compute_until(end);
  });
  EXPECT_TRUE(becomes(g, GStatus::running));
  done.go([&] {
    holder_runs = true;
    compute_until(holder_may_end);
  });
  EXPECT_TRUE(wait_until([&] { return test::retake(p_table.all[0].load()); }));
  EXPECT_TRUE(wait_until([&] { return holder_runs.load(); }));
  EXPECT_EQ(true_status(g), GStatus::syscall);
  end = true;  // done() enters the runtime
  EXPECT_TRUE(becomes(g, GStatus::runnable));
  holder_may_end = true;
  done.wait();
}

TEST(Status, OfAPausedGoroutineIsPreempted) {
  gomaxprocs(0);
  if (!preemption.has_signal) GTEST_SKIP() << "no signal, no pause";
  const Procs one(1);
  std::atomic<G*> g{nullptr};
  std::atomic<bool> end{false};
  wait_group done;
  done.go([&] {
    g = this_g();
    while (!end) internal::cpu_relax();
  });
  EXPECT_TRUE(wait_until([&] { return g != nullptr; }));
  done.go([&] { compute_until(end); });
  EXPECT_TRUE(becomes(g, GStatus::preempted));
  if (taking.has_membarrier) internal::verify_scheduler();  // else it waits for the end, too
  end = true;
  done.wait();
}

}  // namespace
}  // namespace gofer
