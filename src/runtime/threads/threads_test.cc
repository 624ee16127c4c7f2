// Threads of the runtime: locked to a goroutine, idle, ending. Idle ones live for 50 ms in this
// program.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "os/memory.h"
#include "os/thread.h"
#include "runtime/base/sanitizer.h"
#include "runtime/procs/current.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/procs.h"
#include "runtime/procs/spinning.h"
#include "runtime/report/dump_signals.h"
#include "runtime/sched/sched_lock.h"
#include "runtime/sched/verify.h"
#include "runtime/threads/bound.h"
#include "runtime/threads/idle.h"
#include "runtime/threads/threads.h"
#include "support/procs.h"
#include "support/unpaused.h"
#include "support/wait_until.h"

namespace gofer::internal {
namespace {

using test::Procs;
using test::unpaused;
using test::wait_until;

// Before the runtime reads it.
[[maybe_unused]] const bool environment_is_set = [] {
  const char* given = getenv("GOFER_DEBUG");
  const std::string ours = "idlems=50,scavengems=50";
  const std::string settings = given != nullptr ? given + ("," + ours) : ours;
  return setenv("GOFER_DEBUG", settings.c_str(), 1) == 0;
}();

bool thread_exists(int id) {
  return access(("/proc/self/task/" + std::to_string(id)).c_str(), F_OK) == 0;
}

int scaled(int n) { return sanitizers_enabled ? n / 20 : n; }

TEST(LockOsThread, KeepsTheThreadAcrossYieldsAndParks) {
  std::atomic<int> moved{0};
  run([&] {
    wait_group done;
    for (int i = 0; i < 4; ++i) {
      done.go([&] {
        lock_os_thread();
        const int thread = os::thread_id();
        for (int k = 0; k < scaled(1000); ++k) {
          yield();
          moved += os::thread_id() != thread;
          wait_group child;
          child.go([] { yield(); });
          child.wait();
          moved += os::thread_id() != thread;
        }
        unlock_os_thread();
      });
      // And some that are not locked.
      done.go([&] {
        for (int k = 0; k < scaled(2000); ++k) yield();
      });
    }
    done.wait();
  });
  EXPECT_EQ(moved, 0);
  LockGuard guard(sched_lock);
  EXPECT_EQ(idle_bound_ms, 0);
}

TEST(LockOsThread, NobodyElseRunsOnTheThread) {
  constexpr int owners = 3;
  std::array<std::atomic<int>, owners> locked{};
  std::atomic<int> intruders{0};
  std::atomic<int> working{owners};
  const auto look = [&](int own) {
    const int thread = os::thread_id();
    for (int i = 0; i < owners; ++i)
      intruders += i != own && locked[static_cast<size_t>(i)] == thread;
  };
  wait_group done;
  for (int i = 0; i < owners; ++i) {
    done.go([&, i] {
      for (int k = 0; k < scaled(400); ++k) {
        lock_os_thread();
        locked[static_cast<size_t>(i)] = os::thread_id();
        for (int n = 0; n < 5; ++n) {
          wait_group child;
          child.go([&] { look(-1); });
          child.wait();
          look(i);
          yield();
        }
        locked[static_cast<size_t>(i)] = 0;
        unlock_os_thread();
        yield();
      }
      working.fetch_sub(1);
    });
  }
  for (int i = 0; i < 4; ++i) {
    done.go([&] {
      while (working > 0) {
        look(-1);
        yield();
      }
    });
  }
  done.wait();
  EXPECT_EQ(intruders, 0);
}

TEST(LockOsThread, NeedsAsManyUnlocks) {
  std::vector<bool> locked;
  const auto look = [&] {
    Inside inside;
    const bool g_knows = inside.m()->curg->head->own_m == inside.m();
    const bool m_knows = inside.m()->own_g == inside.m()->curg;
    locked.push_back(g_knows && m_knows);
    if (g_knows != m_knows) locked.push_back(true);  // the expectation below fails
  };
  run([&] {
    look();
    lock_os_thread();
    look();
    lock_os_thread();
    lock_os_thread();
    look();
    unlock_os_thread();
    unlock_os_thread();
    look();
    unlock_os_thread();
    look();
    unlock_os_thread();  // one too many does nothing
    look();
    lock_os_thread();
    look();
    unlock_os_thread();
    look();
  });
  EXPECT_EQ(locked, (std::vector<bool>{false, true, true, true, false, false, true, false}));
}

TEST(LockOsThread, DoesNothingInAnOrdinaryThread) {
  lock_os_thread();
  unlock_os_thread();
  unlock_os_thread();
  EXPECT_EQ(current_m(), nullptr);
}

TEST(LockOsThread, ParkedOwnerLeavesItsProcessorToOthers) {
  Procs one(1);
  int owner = 0;
  int owner_later = 1;
  std::set<int> others;
  run(unpaused([&] {
    wait_group gate;
    wait_group done;
    bool locked = false;
    gate.add(1);
    done.go(unpaused([&] {
      lock_os_thread();
      owner = os::thread_id();
      locked = true;
      gate.wait();
      owner_later = os::thread_id();
      unlock_os_thread();
    }));
    while (!locked) yield();
    wait_group ran;
    for (int i = 0; i < 10; ++i) {
      ran.go(unpaused([&] { others.insert(os::thread_id()); }));
      yield();
    }
    ran.wait();  // a yield may come back before they have run
    gate.done();
    done.wait();
  }));
  EXPECT_EQ(owner, owner_later);
  EXPECT_EQ(others.count(owner), 0u);
  EXPECT_FALSE(others.empty());
}

TEST(LockOsThread, EndOfALockedGoroutineEndsItsThread) {
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> thread{0};
    wait_group done;
    done.go([&] {
      lock_os_thread();
      thread = os::thread_id();
      if (round % 2 == 0) yield();
      if (round % 3 == 0) goexit();
    });
    done.wait();
    ASSERT_TRUE(wait_until([&] { return !thread_exists(thread); })) << "round " << round;
    // Its P is still there for others.
    std::atomic<bool> ran{false};
    done.go([&] { ran = true; });
    done.wait();
    EXPECT_TRUE(ran);
  }
}

thread_local struct AtThreadEnd {
  std::atomic<int>* count = nullptr;
  ~AtThreadEnd() {
    if (count != nullptr) count->fetch_add(1);
  }
} at_thread_end;

TEST(LockOsThread, ThreadLocalObjectsAreDestroyedWithTheThread) {
  static std::atomic<int> destroyed{0};
  destroyed = 0;
  wait_group done;
  for (int i = 0; i < 5; ++i) {
    done.go([&] {
      lock_os_thread();
      at_thread_end.count = &destroyed;
    });
  }
  done.wait();
  EXPECT_TRUE(wait_until([&] { return destroyed == 5; }));
}

TEST(LockOsThread, EndingThreadsLeaveEverybodyElseWorking) {
  const int rounds = scaled(400);
  std::atomic<int> ran{0};
  std::atomic<int> locked{0};
  run([&] {
    wait_group done;
    for (int i = 0; i < rounds; ++i) {
      done.go([&] {
        lock_os_thread();
        yield();
        locked.fetch_add(1);
      });
      done.go([&] {
        yield();
        ran.fetch_add(1);
      });
      if (i % 16 == 0) yield();
    }
    done.wait();
  });
  EXPECT_EQ(ran, rounds);
  EXPECT_EQ(locked, rounds);
  verify_scheduler();
}

// As many threads as goroutines, because each is bound to its own and parked.
void burst(int n) {
  wait_group gate;
  wait_group done;
  std::atomic<int> parked{0};
  gate.add(1);
  for (int i = 0; i < n; ++i) {
    done.go([&] {
      lock_os_thread();
      parked.fetch_add(1);
      gate.wait();
      unlock_os_thread();
    });
  }
  ASSERT_TRUE(wait_until([&] { return parked == n; }));
  EXPECT_GE(stats().threads, n);
  gate.done();
  done.wait();
}

TEST(IdleThreads, EndDownToTheReserve) {
  burst(30);
  EXPECT_TRUE(wait_until([] { return stats().threads <= idle_ms_reserve + 1; }));
  EXPECT_GE(stats().threads, 1);
  // Those that are left, and new ones, do the next work; records of the ended are used again.
  const auto records = [] {
    LockGuard guard(sched_lock);
    return threads.last_id;
  };
  const uint32_t before = records();
  burst(30);
  EXPECT_LE(records(), before + 10);
  EXPECT_TRUE(wait_until([] { return stats().threads <= idle_ms_reserve + 1; }));
  verify_scheduler();
}

TEST(IdleThreads, EndAfterAStormOfBlockingCalls) {
  const int count = sanitizers_enabled ? 20 : 100;
  const int most = idle_ms_reserve + own_threads + dump_threads() + 4;
  std::atomic<int> blocked{0};
  std::atomic<int> peak{0};
  wait_group all;
  for (int i = 0; i < count; ++i) {
    all.go([&] {
      ++blocked;
      blocking([&] {
        while (blocked < count) os::sleep_ns(1'000'000);
        const int now = os::count_threads();
        for (int most = peak; now > most && !peak.compare_exchange_weak(most, now);) {
        }
      });
    });
  }
  all.wait();
  EXPECT_GT(peak, count);
  EXPECT_TRUE(wait_until([&] { return os::count_threads() <= most; })) << os::count_threads();
}

TEST(IdleThreads, WorkThatComesWhileTheyEndIsNotLost) {
  for (int round = 0; round < (sanitizers_enabled ? 2 : 10); ++round) {
    burst(12);
    // Over the time in which they end.
    const int64_t until = os::now_ns() + 100'000'000;
    std::atomic<int> ran{0};
    int started = 0;
    while (os::now_ns() < until) {
      go([&] { ran.fetch_add(1); });
      ++started;
      ASSERT_TRUE(wait_until([&] { return ran == started; }));
    }
  }
  EXPECT_TRUE(wait_until([] { return stats().threads <= idle_ms_reserve + 1; }));
}

TEST(IdleThreads, CollectTheFreeStacksOfIdleProcessors) {
  run([] {
    wait_group done;
    for (int i = 0; i < 100; ++i) done.go([] { yield(); });
    done.wait();
  });
  EXPECT_TRUE(wait_until([] {
    LockGuard guard(sched_lock);
    if (wake_state.idle_p_count.load() != p_table.in_use.load()) return false;
    int cached = 0;
    for (P* p = idle_ps; p != nullptr; p = p->link) cached += p->stacks.count;
    return cached == 0;
  }));
}

size_t resident_bytes() {
  size_t all = 0;
  size_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * os::page_size;
}

// Touches that much of the stack below.
[[gnu::noinline]] void go_deep(size_t bytes) {
  volatile char frame[4096];
  frame[0] = 1;
  if (bytes > sizeof frame) go_deep(bytes - sizeof frame);
  frame[1] = frame[0];
}

TEST(IdleThreads, GiveBackThePagesOfStacksThatWentDeep) {
  if (sanitizers_enabled) GTEST_SKIP() << "the sanitizer's memory hides ours";
  constexpr int goroutines = 150;
  constexpr size_t depth = 512 * 1024;
  const size_t before = resident_bytes();
  run([] {
    wait_group deep;
    wait_group gate;
    wait_group done;
    deep.add(goroutines);
    gate.add(1);
    for (int i = 0; i < goroutines; ++i) {
      done.go([&] {
        go_deep(depth);
        deep.done();
        gate.wait();  // all at once: each has a stack of its own
      });
    }
    deep.wait();
    gate.done();
    done.wait();
  });
  EXPECT_TRUE(wait_until([=] { return resident_bytes() < before + goroutines * depth / 4; }))
      << before << " bytes before, " << resident_bytes() << " after";
}

TEST(IdleThreads, AreFewWhenGoroutinesComeOneByOne) {
  // Those of the tests before have ended.
  EXPECT_TRUE(wait_until([] { return stats().threads <= idle_ms_reserve + 1; }));
  for (int i = 0; i < scaled(2000); ++i) {
    wait_group done;
    done.go([] {});
    done.wait();
  }
  // Not one each: those there were, and sysmon's reserve if it saw work waiting.
  EXPECT_LE(stats().threads, gomaxprocs(0) + 2 * idle_ms_reserve);
}

}  // namespace
}  // namespace gofer::internal
