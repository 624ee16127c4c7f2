// The first call of the runtime by a goroutine that has lost its P: it waits for one and works, and
// what must not change the thread does not.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "os/thread.h"
#include "runtime/procs/current.h"
#include "runtime/procs/p_table.h"
#include "runtime/wait/waiter.h"
#include "support/compute.h"
#include "support/procs.h"
#include "support/takers.h"
#include "support/wait_until.h"

namespace gofer {
namespace {

using internal::G;
using internal::GStatus;
using internal::P;
using internal::p_table;
using internal::parked_threads;
using internal::os::thread_id;
using test::compute;
using test::compute_until;
using test::Procs;
using test::Takers;
using test::wait_until;

// A goroutine computes at P=1 and loses its P to another one that computes on it; what it calls
// first then must wait for a P, in its own thread, and work.
class FirstCall : public test::RetakeTest {
 protected:
  /// `call` runs without a P; without one, its end is the first call of the runtime.
  void check(const std::function<void()>& call) {
    Procs one(1);
    std::atomic<G*> victim{nullptr};
    std::atomic<bool> may_call{false};
    std::atomic<bool> holder_runs{false};
    std::atomic<bool> holder_may_end{false};
    std::atomic<bool> returned{false};
    wait_group done;
    done.go([&] {
      victim = internal::current_m()->curg;
      compute_until(may_call);
      if (call) {
        call();
        returned = true;
      }
    });
    EXPECT_TRUE(wait_until([&] { return victim != nullptr; }));
    done.go([&] {
      holder_runs = true;
      compute_until(holder_may_end);
    });
    P* p = p_table.all[0].load();
    EXPECT_TRUE(wait_until([&] { return test::retake(p); }));
    EXPECT_TRUE(wait_until([&] { return holder_runs.load(); }));
    may_call = true;
    EXPECT_TRUE(wait_until([&] { return victim.load()->status.load() == GStatus::runnable; }));
    EXPECT_FALSE(returned);
    holder_may_end = true;
    done.wait();
    EXPECT_EQ(returned, call != nullptr);
    ASSERT_TRUE(wait_until([&] { return num_goroutine() == 0; }));
  }
};

TEST_F(FirstCall, GoStaysOnItsThread) {
  std::atomic<int> children{0};
  bool stayed = false;
  check([&] {
    const int thread = thread_id();
    go([&] { children.fetch_add(1); });
    stayed = thread_id() == thread;
  });
  EXPECT_TRUE(stayed);
  EXPECT_EQ(children, 1);
}

TEST_F(FirstCall, GoOfALockedGoroutineStaysOnItsThread) {
  std::atomic<int> children{0};
  int moved = 0;
  Procs one(1);
  std::atomic<bool> stop{false};
  wait_group done;
  Takers sysmon;
  done.go([&] {
    while (!stop) {
      compute(100);
      yield();
    }
  });
  done.go([&] {
    lock_os_thread();
    const int thread = thread_id();
    for (int i = 0; i < 200; ++i) {
      compute(2000);
      go([&] { children.fetch_add(1); });
      moved += thread_id() != thread;
    }
    unlock_os_thread();
    stop = true;
  });
  done.wait();
  ASSERT_TRUE(wait_until([&] { return children == 200; }));
  EXPECT_EQ(moved, 0);
}

TEST_F(FirstCall, LockOsThreadLocksTheThreadItIsOn) {
  int moved = 0;
  check([&] {
    const int thread = thread_id();
    lock_os_thread();
    moved += thread_id() != thread;
    for (int i = 0; i < 10; ++i) {
      yield();
      moved += thread_id() != thread;
    }
    unlock_os_thread();
  });
  EXPECT_EQ(moved, 0);
}

TEST_F(FirstCall, DoneStaysOnItsThread) {
  bool stayed = false;
  wait_group group;
  group.add(1);
  std::thread waiter([&] { group.wait(); });
  check([&] {
    const int thread = thread_id();
    // With a waiter: done() enters the runtime to wake it.
    while (parked_threads.load() == 0) internal::cpu_relax();
    group.done();
    stayed = thread_id() == thread;
  });
  waiter.join();
  EXPECT_TRUE(stayed);
}

TEST_F(FirstCall, Yield) {
  check([] { yield(); });
}

TEST_F(FirstCall, Wait) {
  check([] {
    // The child, too, needs the P.
    wait_group group;
    group.go([] {});
    group.wait();
  });
}

TEST_F(FirstCall, StatsAndGomaxprocs) {
  check([] {
    static_cast<void>(stats());
    gomaxprocs(2);
    gomaxprocs(1);
  });
}

TEST_F(FirstCall, Return) { check(nullptr); }

TEST_F(FirstCall, Goexit) {
  // As check(), but the goroutine never comes back from the call.
  Procs one(1);
  std::atomic<G*> victim{nullptr};
  std::atomic<bool> may_call{false};
  std::atomic<bool> holder_runs{false};
  std::atomic<bool> destroyed{false};
  wait_group done;
  done.go([&] {
    struct Guard {
      std::atomic<bool>& flag;
      ~Guard() { flag = true; }
    } guard{destroyed};
    victim = internal::current_m()->curg;
    compute_until(may_call);
    goexit();
  });
  ASSERT_TRUE(wait_until([&] { return victim != nullptr; }));
  done.go([&] {
    holder_runs = true;
    compute_until(may_call);
  });
  P* p = p_table.all[0].load();
  EXPECT_TRUE(wait_until([&] { return test::retake(p); }));
  EXPECT_TRUE(wait_until([&] { return holder_runs.load(); }));
  may_call = true;
  done.wait();
  EXPECT_TRUE(destroyed);
  EXPECT_TRUE(wait_until([] { return num_goroutine() == 0; }));
}

}  // namespace
}  // namespace gofer
