// What a program does when the kernel refuses a system call that it has granted before.
// gofer-test: once
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>

#include "runtime/base/sanitizer.h"
#include "support/child.h"

namespace gofer::test {
namespace {

using namespace std::chrono_literals;

// Sanitizers make calls of their own, which must not fail.
class Denied : public testing::Test {
 protected:
  void SetUp() override {
    if (internal::sanitizers_enabled) GTEST_SKIP() << "a sanitizer needs these calls itself";
  }
};

ChildResult denied(const std::string& scenario, const std::string& calls = "",
                   const std::string& procs = "2") {
  return run_child("denied_child", {scenario, calls}, {"GOMAXPROCS=" + procs});
}

// The program does all that it did before, burns no core, and has nothing to say.
void expect_goes_on(const std::string& scenario, const std::string& calls) {
  const std::pair<const char*, const char*> errors[] = {
      {"EPERM", "2"}, {"ENOSYS", "1"}, {"EACCES", "8"}};
  for (const auto& [error, procs] : errors) {
    const std::string what = std::string(error) + ":" + calls;
    const ChildResult r = denied(scenario, what, procs);
    EXPECT_TRUE(r.exited_with(0)) << what << ": " << r;
    EXPECT_TRUE(r.out_has("idle: yes\ncompleted\n")) << what << ": " << r;
    EXPECT_EQ(r.err, "") << what << ": " << r;
  }
}

TEST_F(Denied, MembarrierIsReplacedBySignals) {
  expect_goes_on("later", "membarrier");
  expect_goes_on("at_first_use", "membarrier");
}

TEST_F(Denied, SignalsWithAMarkAreReplacedByPlainOnes) {
  expect_goes_on("later", "rt_tgsigqueueinfo");
}

TEST_F(Denied, SignalsOfAnyKindAreMissedOnceAloud) {
  const ChildResult r = denied("unpreempted", "EPERM:rt_tgsigqueueinfo,tgkill");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "completed\n") << r;
  EXPECT_EQ(r.err,
            "gofer: tgkill fails with errno 1: a goroutine that computes is not preempted any "
            "more\n")
      << r;
}

TEST_F(Denied, HandlersOfSignalsAreMissedOnceAloud) {
  const ChildResult r = denied("unpreempted_at_start", "EPERM:rt_sigaction");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "completed\n") << r;
  EXPECT_EQ(r.err,
            "gofer: sigaction fails for SIGURG: a goroutine that computes is not preempted\n")
      << r;
}

TEST_F(Denied, RoomInTheSignalQueueIsNotNeeded) {
  for (const char* procs : {"1", "2"}) {
    const ChildResult r = denied("full_signal_queue", "", procs);
    EXPECT_TRUE(r.exited_with(0)) << r;
    EXPECT_EQ(r.out, "completed\n") << r;
    EXPECT_EQ(r.err, "") << r;
  }
}

TEST_F(Denied, EventfdIsReplacedByAPipe) {
  expect_goes_on("at_first_use", "eventfd2");
  expect_goes_on("later", "eventfd2");
}

TEST_F(Denied, WaysToWaitForEventsReplaceEachOther) {
  for (const char* calls : {"epoll_pwait", "epoll_pwait2", "epoll_pwait,epoll_pwait2"}) {
    expect_goes_on("while_it_waits", calls);
  }
}

// The call on a descriptor fails, one message says why, and all else goes on.
void expect_refused(const std::string& scenario, const std::string& calls,
                    const std::string& answer, bool said) {
  const ChildResult r = denied(scenario, "EPERM:" + calls);
  EXPECT_TRUE(r.exited_with(0)) << calls << ": " << r;
  EXPECT_TRUE(r.out_has(answer)) << calls << ": " << r;
  EXPECT_TRUE(r.out_has("idle: yes\ncompleted\n")) << calls << ": " << r;
  EXPECT_EQ(count_of(r.err, "gofer: "), said ? 1 : 0) << calls << ": " << r;
  EXPECT_EQ(count_of(r.err, "errno 1: goroutines cannot wait for descriptors\n"), said ? 1 : 0)
      << calls << ": " << r;
}

TEST_F(Denied, EpollIsAnErrorOfTheDescriptorAndNotTakenForARegularFile) {
  const std::string error = "communicate: gofer::fd: Operation not permitted (1)\n";
  expect_refused("at_first_use", "epoll_create1", error, true);
  expect_refused("at_first_use", "epoll_ctl", error, true);
  expect_refused("later", "epoll_ctl", error, false);
}

TEST_F(Denied, EpollIsNoMatterToDescriptorsThatAreWatchedAlready) {
  const ChildResult r = denied("watched", "EPERM:epoll_ctl,epoll_create1");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_TRUE(r.out_has("idle: yes\ncompleted\n")) << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST_F(Denied, EventsEndAllWaitsForDescriptorsWithAnError) {
  const std::string all = "epoll_pwait,epoll_pwait2,epoll_wait";
  // A thread that is in the call already may still get the event for which it waits.
  expect_refused("while_it_waits", all, "read: ", true);
  // It may also have failed when the next descriptor is made.
  expect_refused("at_first_use", all, "Operation not permitted (1)\n", true);
  expect_refused("later", all, "Operation not permitted (1)\n", true);
}

TEST_F(Denied, AcceptingIsAnErrorOfTheListener) {
  const ChildResult r = denied("accept_connections", "EPERM:accept4");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out,
            "accept: Operation not permitted\n"
            "gofer::net::server::serve: Operation not permitted\n"
            "completed\n")
      << r;
}

TEST_F(Denied, GuardsOfStacksAreMadeInAnotherWay) {
  expect_goes_on("later", "madvise");
  // libc needs mprotect to start a thread, so that may fail as well.
  const ChildResult r = denied("without_threads", "EPERM:madvise,mprotect");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_TRUE(r.out_has("idle: yes\ncompleted\n")) << r;
  EXPECT_FALSE(r.err_has("no stack to be had")) << r;
}

TEST_F(Denied, FutexesEndTheProcessWithAMessage) {
  for (const char* scenario : {"at_first_use", "without_threads", "first_wait"}) {
    const ChildResult r = denied(scenario, "EPERM:futex");
    EXPECT_TRUE(r.exited_with(2)) << scenario << ": " << r;
    EXPECT_EQ(count_of(r.err,
                       "fatal error: futex fails with errno 001: threads can neither sleep nor be "
                       "woken\n"),
              1)
        << scenario << ": " << r;
  }
}

TEST_F(Denied, MemoryIsNotNeededByAThreadThatWaitsForTheFirstTime) {
  const ChildResult r = denied("first_wait", "EPERM:mmap");
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.out, "completed\n") << r;
}

TEST_F(Denied, CallsAreReplacedFromTheStart) {
  for (const char* calls : {"membarrier", "rt_tgsigqueueinfo", "eventfd2", "epoll_pwait", "madvise",
                            "process_vm_readv", "clock_gettime", "prctl"}) {
    expect_goes_on("at_start", calls);
  }
}

// What is a hint only, or has a second way that was there before.
TEST_F(Denied, CallsThatTellAboutThreadsAreMissedSilently) {
  for (const char* calls : {"openat", "getdents64", "clock_gettime", "process_vm_readv",
                            "clock_gettime,openat", "sched_getaffinity", "getpid,getuid"}) {
    expect_goes_on("later", calls);
  }
}

TEST_F(Denied, CallsThatMakeThingsBetterAreMissedSilently) {
  for (const char* calls : {"prctl", "sched_setattr", "sched_yield", "nanosleep", "process_madvise",
                            "munmap", "sigaltstack"}) {
    expect_goes_on("later", calls);
  }
}

TEST_F(Denied, ThreadsThatCannotBeStartedAreDoneWithout) {
  for (const char* calls : {"clone,clone3", "mprotect"}) {
    const ChildResult r = denied("without_threads", std::string("EPERM:") + calls);
    EXPECT_TRUE(r.exited_with(0)) << calls << ": " << r;
    EXPECT_TRUE(r.out_has("idle: yes\ncompleted\n")) << calls << ": " << r;
    EXPECT_EQ(count_of(r.err, "gofer: cannot start one more thread"), count_of(r.err, "\n"))
        << calls << ": " << r;
    EXPECT_LE(count_of(r.err, "\n"), 1) << calls << ": " << r;
  }
}

TEST(ClosedDescriptors, OfTheRuntimeAreOpenedAnew) {
  if (internal::sanitizers_enabled) GTEST_SKIP() << "a sanitizer has descriptors of its own";
  for (const char* then : {"left", "reused", "at_once"}) {
    for (const char* procs : {"1", "2", "8"}) {
      // An idle thread does not wake by itself.
      const ChildResult r =
          run_child("denied_child", {"closed_descriptors", then},
                    {std::string("GOMAXPROCS=") + procs, with_debug("idlems=600000")});
      EXPECT_TRUE(r.exited_with(0)) << then << ": " << r;
      EXPECT_TRUE(r.out_has("idle: yes\ncompleted\n")) << then << ": " << r;
      EXPECT_EQ(r.err, "") << then << ": " << r;
    }
  }
}

TEST(ClosedDescriptors, OfTheRuntimeAreToldFromTheProgramsOwnInstanceAtTheirNumbers) {
  if (internal::sanitizers_enabled) GTEST_SKIP() << "a sanitizer has descriptors of its own";
  for (const char* then : {"left", "rung", "watched"}) {
    for (const char* procs : {"1", "2", "8"}) {
      const ChildResult r =
          run_child("denied_child", {"own_instance", then},
                    {std::string("GOMAXPROCS=") + procs, with_debug("idlems=600000")}, 30s);
      EXPECT_TRUE(r.exited_with(0)) << then << ": " << r;
      EXPECT_TRUE(r.out_has("idle: yes\ncompleted\n")) << then << ": " << r;
      EXPECT_EQ(r.err, "") << then << ": " << r;
    }
  }
}

TEST(ClosedDescriptors, AreOpenedAgainWhenThereIsRoomForThem) {
  if (internal::sanitizers_enabled) GTEST_SKIP() << "a sanitizer has descriptors of its own";
  for (const char* first : {"new", "old"}) {
    for (const char* procs : {"1", "2", "8"}) {
      const ChildResult r = run_child("denied_child", {"no_room_for_descriptors", first},
                                      {std::string("GOMAXPROCS=") + procs}, 30s);
      EXPECT_TRUE(r.exited_with(0)) << first << ": " << r;
      EXPECT_EQ(r.out.find("read: Too many open files\n"), 0u) << first << ": " << r;
      EXPECT_TRUE(r.out_has("idle: yes\ncompleted\n")) << first << ": " << r;
      EXPECT_EQ(count_of(r.err, "errno 24: goroutines cannot wait for descriptors\n"), 1)
          << first << ": " << r;
    }
  }
}

TEST(ClosedDescriptors, DoNotKeepThePollerAsleepThatWasToldSomethingJustBefore) {
  for (const char* procs : {"2", "8"}) {
    // An idle thread does not wake by itself.
    const ChildResult r =
        run_child("denied_child", {"lost_break"},
                  {std::string("GOMAXPROCS=") + procs, with_debug("idlems=600000")});
    EXPECT_TRUE(r.exited_with(0)) << r;
    EXPECT_EQ(r.out, "completed\n") << r;
  }
}

TEST(WithoutMembarrier, TheNumberOfProcessorsChangesBesideAGoroutineThatComputes) {
  if (internal::tsan_enabled) GTEST_SKIP() << "no signals under TSan";
  const ChildResult r = run_child("denied_child", {"resize_beside_hog"},
                                  {"GOMAXPROCS=2", with_debug("membarrier=0")});
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_TRUE(r.out_has("completed\n")) << r;
}

}  // namespace
}  // namespace gofer::test
