// Paused threads that go on without a P, because the M with the P waits for them inside.
#include <gofer/gofer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "runtime/procs/current.h"
#include "runtime/procs/lost.h"
#include "runtime/procs/retake.h"
#include "support/beside.h"
#include "support/procs.h"

namespace gofer {
namespace {

using test::compute;

class Release : public test::PausingTest {};

uint64_t releases() { return internal::taking.released.load(); }

// Takes a mutex and computes, so that it is paused, until a thread waits for the mutex.
struct Owner {
  std::mutex mutex;
  std::atomic<bool> held{false};
  std::atomic<bool> awaited{false};

  void own() {
    mutex.lock();
    held = true;
    while (!awaited) compute(1000);
    compute(1'000'000);
    mutex.unlock();
  }
  void await_inside() {
    while (!held) yield();
    const internal::Inside inside;
    awaited = true;
    mutex.lock();
    mutex.unlock();
  }
};

TEST_F(Release, OwnerOfALockThatIsAwaitedInside) {
  const test::Procs procs(1);
  for (int round = 0; round < 3; ++round) {
    const uint64_t before = releases();
    Owner owner;
    wait_group all;
    all.go([&] { owner.own(); });
    all.go([&] { owner.await_inside(); });
    all.wait();
    EXPECT_GT(releases(), before);
  }
}

TEST_F(Release, OwnerAmongOthersThatArePaused) {
  const test::Procs procs(1);
  Owner owner;
  std::atomic<bool> stop{false};
  wait_group all;
  for (int i = 0; i < 5; ++i) {
    all.go([&] {
      while (!stop) compute(1000);
    });
  }
  all.go([&] { owner.own(); });
  all.go([&] {
    owner.await_inside();
    stop = true;
  });
  all.wait();
}

TEST_F(Release, OwnerThatIsLockedToItsThread) {
  const test::Procs procs(1);
  Owner owner;
  wait_group all;
  all.go([&] {
    lock_os_thread();
    owner.own();
    unlock_os_thread();
  });
  all.go([&] { owner.await_inside(); });
  all.wait();
}

// Those that were released are held to their P again: they do not compute beside the others.
TEST_F(Release, IsForAMomentOnly) {
  const test::Procs procs(1);
  Owner owner;
  std::atomic<bool> stop{false};
  std::atomic<int64_t> counted{0};
  wait_group all;
  for (int i = 0; i < 2; ++i) {
    all.go([&] {
      while (!stop) {
        compute(1000);
        ++counted;
      }
    });
  }
  all.go([&] { owner.own(); });
  all.go([&] { owner.await_inside(); });
  EXPECT_TRUE(test::wait_until([&] {
    return owner.awaited && owner.mutex.try_lock() && (owner.mutex.unlock(), true) &&
           internal::lost_ms.load() == 0;
  }));
  stop = true;
  all.wait();
}

TEST_F(Release, WhileTheWorldIsToStop) {
  const test::Procs procs(2);
  Owner owner;
  wait_group all;
  all.go([&] { owner.own(); });
  all.go([&] {
    while (!owner.held) yield();
    test::Procs one(1);
    owner.await_inside();
  });
  all.wait();
}

}  // namespace
}  // namespace gofer
