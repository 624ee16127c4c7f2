// Signals in channels. What ends the process, and what needs other dispositions, is in
// programs/signal_child.cc.
#include <gofer/gofer.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/sanitizer.h"
#include "support/child.h"
#include "support/descriptors.h"
#include "support/goroutines_and_threads.h"
#include "support/send_signal.h"

namespace gofer {
namespace {

using namespace std::chrono_literals;
using namespace test;

class Signal : public NetworkTest {
 protected:
  void TearDown() override {
    NetworkTest::TearDown();  // the reader has ended
    for (const int number : {SIGUSR1, SIGUSR2, SIGHUP}) {
      struct sigaction now {};
      sigaction(number, nullptr, &now);
      EXPECT_EQ(now.sa_handler, SIG_DFL) << number;
    }
  }
};

TEST_F(Signal, ReachesAChannel) {
  in_goroutine_and_thread([] {
    const chan<int> c(1);
    signal_notify(c, {SIGUSR1, SIGUSR2});
    for (int i = 0; i < 20; ++i) {
      const int number = i % 2 == 0 ? SIGUSR1 : SIGUSR2;
      send_signal(number);
      EXPECT_EQ(c.recv_for(60s), number);
    }
    signal_stop(c);
  });
}

TEST_F(Signal, RuntimeThatWasNotThereYetIsNoObstacle) {
  const ChildResult r = run_child("signal_child", {"first_of_all"});
  EXPECT_TRUE(r.exited_with(0)) << r;
}

TEST_F(Signal, ReachesEveryChannelThatWantsIt) {
  const chan<int> a(4);
  const chan<int> b(4);
  const chan<int> other(4);
  signal_notify(a, {SIGUSR1});
  signal_notify(b, {SIGUSR2});
  signal_notify(b, {SIGUSR1});
  signal_notify(other, {SIGHUP});
  raise(SIGUSR1);
  EXPECT_EQ(a.recv_for(60s), SIGUSR1);
  EXPECT_EQ(b.recv_for(60s), SIGUSR1);
  signal_stop(a);
  raise(SIGUSR1);
  raise(SIGUSR2);
  const int sum = b.recv_for(60s).value_or(0) + b.recv_for(60s).value_or(0);
  EXPECT_EQ(sum, SIGUSR1 + SIGUSR2);
  EXPECT_EQ(a.len(), 0u);
  EXPECT_EQ(other.len(), 0u);
  signal_stop(b);
  signal_stop(other);
  signal_stop(other);
  signal_stop(chan<int>(1));
}

// A stop waits for what came before, so every signal was sent, or had no room.
TEST_F(Signal, IsLostWithoutRoomAndNeverWaitedFor) {
  const chan<int> narrow(2);
  const chan<int> none(0);
  const chan<int> wide(10);
  for (const auto& c : {narrow, none, wide}) signal_notify(c, {SIGUSR1});
  for (int i = 0; i < 5; ++i) {
    raise(SIGUSR1);
    EXPECT_TRUE(wait_until([&] { return wide.len() == static_cast<std::size_t>(i) + 1; }));
  }
  for (const auto& c : {narrow, none, wide}) signal_stop(c);
  EXPECT_EQ(narrow.len(), 2u);
  EXPECT_EQ(none.len(), 0u);
  EXPECT_EQ(wide.len(), 5u);
}

TEST_F(Signal, ThatCameBeforeAStopIsInTheChannel) {
  in_goroutine_and_thread([] {
    for (int i = 0; i < scaled(2000); ++i) {
      const chan<int> c(1);
      signal_notify(c, {SIGUSR1});
      raise(SIGUSR1);  // it has been handled when this returns
      signal_stop(c);
      ASSERT_EQ(c.len(), 1u) << i;
    }
  });
}

TEST_F(Signal, NoneComesAfterAStop) {
  const chan<int> keep(1);
  signal_notify(keep, {SIGUSR1});  // or the process would end
  std::atomic<bool> over{false};
  std::thread sender([&] {
    while (!over) raise(SIGUSR1);
  });
  in_goroutine_and_thread([] {
    for (int i = 0; i < scaled(300); ++i) {
      const chan<int> c(1000);
      signal_notify(c, {SIGUSR1});
      if (i % 3 == 0) yield();
      signal_stop(c);
      const std::size_t then = c.len();
      yield();
      ASSERT_EQ(c.len(), then);
    }
  });
  over = true;
  sender.join();
  signal_stop(keep);
}

TEST_F(Signal, ManyNotifyAndStopAtOnce) {
  const chan<int> keep(1);
  signal_notify(keep, {SIGUSR1, SIGUSR2});
  in_all(8, 2, [](int n) {
    for (int i = 0; i < scaled(100); ++i) {
      const chan<int> c(1);
      const int number = (n + i) % 2 == 0 ? SIGUSR1 : SIGUSR2;
      signal_notify(c, {number});
      send_signal(number);
      EXPECT_EQ(c.recv_for(60s), number);
      signal_stop(c);
    }
  });
  signal_stop(keep);
}

TEST_F(Signal, ClosedChannelIsStoppedByTheNextOne) {
  const chan<int> closed(1);
  const chan<int> open(1);
  signal_notify(closed, {SIGUSR1});
  signal_notify(open, {SIGUSR1});
  closed.close();
  for (int i = 0; i < 2; ++i) {
    raise(SIGUSR1);
    EXPECT_EQ(open.recv_for(60s), SIGUSR1);
  }
  signal_stop(open);
  signal_notify(closed, {SIGUSR2});
  raise(SIGUSR2);  // its fixture sees that the default is back
  EXPECT_TRUE(wait_until([] { return num_goroutine() == 0; }));
}

TEST_F(Signal, ResetTakesASignalFromAllChannels) {
  const chan<int> a(1);
  const chan<int> b(1);
  signal_notify(a, {SIGUSR1, SIGUSR2});
  signal_notify(b, {SIGUSR1});
  signal_reset({SIGUSR1});
  struct sigaction now {};
  sigaction(SIGUSR1, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
  raise(SIGUSR2);
  EXPECT_EQ(a.recv_for(60s), SIGUSR2);
  signal_reset({SIGUSR1, SIGUSR2});
}

// ---- others' handlers

std::atomic<int> own_calls{0};
void own_handler(int) { ++own_calls; }
void another_handler(int) {}

struct sigaction install(int number, void (*handler)(int)) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = handler;
  action.sa_flags = SA_NODEFER;
  sigaction(number, &action, &before);
  return before;
}

TEST_F(Signal, HandlerFromBeforeRestsAndComesBack) {
  own_calls = 0;
  install(SIGUSR1, own_handler);
  for (int i = 1; i <= 3; ++i) {
    const chan<int> c(1);
    signal_notify(c, {SIGUSR1});
    raise(SIGUSR1);
    EXPECT_EQ(c.recv_for(60s), SIGUSR1);
    EXPECT_EQ(own_calls, i - 1);
    signal_stop(c);
    raise(SIGUSR1);
    EXPECT_EQ(own_calls, i);
  }
  EXPECT_EQ(install(SIGUSR1, SIG_DFL).sa_flags & SA_NODEFER, SA_NODEFER) << "with all it had";
}

TEST_F(Signal, HandlerFromMeanwhileStays) {
  const chan<int> c(1);
  signal_notify(c, {SIGUSR1});
  const struct sigaction ours = install(SIGUSR1, another_handler);
  signal_stop(c);
  const struct sigaction now = install(SIGUSR1, SIG_DFL);
  EXPECT_EQ(now.sa_handler, another_handler);
  ours.sa_handler(SIGUSR1);  // as one that calls its predecessor: does nothing any more
  EXPECT_EQ(c.len(), 0u);
}

// ---- what is refused

TEST_F(Signal, RefusesWhatCannotBeCaught) {
  const chan<int> c(1);
  const auto refused = [&](const std::vector<int>& signals, const std::string& why) {
    try {
      signal_notify(c, signals);
      ADD_FAILURE() << why;
    } catch (const std::system_error& e) {
      EXPECT_EQ(e.code(), std::errc::invalid_argument);
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    }
  };
  refused({SIGKILL}, "SIGKILL cannot be caught");
  refused({SIGUSR1, SIGSTOP}, "SIGSTOP cannot be caught");
  refused({SIGURG}, "SIGURG belongs to the runtime");
  refused({SIGSEGV}, "SIGSEGV is a fault");
  refused({0}, "signal 0 is none");
  refused({65}, "signal 65 is none");
  refused({-1}, "signal -1 is none");
  refused({32}, "signal 32 is none");
  refused({}, "no signals");
  EXPECT_EQ(thrown_by([] { signal_notify(chan<int>(), {SIGUSR1}); }), std::errc::invalid_argument);
  EXPECT_EQ(thrown_by([] { static_cast<void>(notify_context(background(), {SIGKILL})); }),
            std::errc::invalid_argument);
}

// ---- contexts

TEST_F(Signal, CancelsAContextAndIsItsCause) {
  in_goroutine_and_thread([] {
    const auto [ctx, stop] = notify_context(background(), {SIGUSR1, SIGUSR2});
    EXPECT_FALSE(ctx.err());
    send_signal(SIGUSR2);
    EXPECT_FALSE(ctx.done().recv_for(60s));
    EXPECT_EQ(ctx.err(), std::errc::operation_canceled);
    try {
      std::rethrow_exception(ctx.cause());
    } catch (const signal_error& e) {
      EXPECT_EQ(e.number(), SIGUSR2);
      EXPECT_STREQ(e.what(), "SIGUSR2 received");
    }
    raise(SIGUSR1);  // ends nothing before stop()
    stop();
    stop();
  });
}

TEST_F(Signal, ContextEndsWithItsParentAndByStop) {
  const auto [parent, cancel] = with_cancel(background());
  const auto [a, stop_a] = notify_context(parent, {SIGUSR1});
  const auto [b, stop_b] = notify_context(parent, {SIGUSR1});
  stop_a();
  EXPECT_EQ(a.err(), std::errc::operation_canceled);
  EXPECT_FALSE(b.err());
  cancel();
  EXPECT_EQ(b.err(), std::errc::operation_canceled);
  stop_b();
}

// ---- programs

TEST_F(Signal, ServerInThreeLinesEndsWell) {
  for (const char* number : {"INT", "TERM"}) {
    const ChildResult r = run_child("signal_child", {"server", number});
    EXPECT_TRUE(r.exited_with(0)) << r;
    EXPECT_TRUE(r.out_has("served and ended")) << r;
  }
}

TEST_F(Signal, DefaultIsBackAfterAStop) {
  const ChildResult r = run_child("signal_child", {"default_is_back"});
  EXPECT_TRUE(r.killed_by(SIGTERM)) << r;
  EXPECT_TRUE(r.out_has("once")) << r;
}

TEST_F(Signal, IgnoredSignalCanBeNotifiedAndIsIgnoredAgain) {
  const ChildResult r = run_child("signal_child", {"ignored"});
  EXPECT_TRUE(r.exited_with(0)) << r;
}

TEST_F(Signal, KeepsTheDeadlockDetectorSilentAsLongAsOneMayCome) {
  if (internal::tsan_enabled) GTEST_SKIP() << "silent: a thread of TSan's own is always there";
  const ChildResult waits = run_child("signal_child", {"waits"});
  EXPECT_TRUE(waits.exited_with(0)) << waits;
  EXPECT_TRUE(waits.out_has("has come")) << waits;
  const ChildResult stopped = run_child("signal_child", {"stopped"});
  EXPECT_TRUE(stopped.exited_with(2)) << stopped;
  EXPECT_TRUE(stopped.err_has("all goroutines are asleep - deadlock!")) << stopped;
}

TEST_F(Signal, IsReceivedAfterTheProgramHasClosedTheRuntimesDescriptors) {
  if (internal::sanitizers_enabled) GTEST_SKIP() << "a sanitizer has descriptors of its own";
  for (const char* then : {"left0", "left1", "left2", "left3", "reused0", "reused1", "reused4"}) {
    const ChildResult r = run_child("signal_child", {"closed_descriptors", then});
    EXPECT_TRUE(r.killed_by(SIGTERM)) << then << ": " << r;
    EXPECT_EQ(r.out, "received\n") << then << ": " << r;
    EXPECT_EQ(r.err, "") << then << ": " << r;
  }
}

TEST_F(Signal, IsReceivedIfThePollerSleepsInADescriptorThatTheProgramHasClosed) {
  if (internal::sanitizers_enabled) GTEST_SKIP() << "a sanitizer has descriptors of its own";
  // An idle thread does not wake by itself.
  const ChildResult r =
      run_child("signal_child", {"closed_while_all_sleep"}, {with_debug("idlems=600000")});
  EXPECT_TRUE(r.exited_with(0)) << r;
  EXPECT_EQ(r.err, "") << r;
}

TEST_F(Signal, HasItsOldEffectInTheChildOfAFork) {
  for (const char* child : {"ends", "ignores"}) {
    const ChildResult r = run_child("signal_child", {"forked", child});
    EXPECT_TRUE(r.exited_with(0)) << child << ": " << r;
  }
}

// The handler may run in any thread, in the middle of everything.
TEST_F(Signal, ComesInTheMiddleOfEverything) {
  const ChildResult r = run_child("signal_child", {"storm"});
  EXPECT_TRUE(r.exited_with(0)) << r;
}

}  // namespace
}  // namespace gofer
