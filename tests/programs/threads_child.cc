// Programs that get no more threads from the system: played by a pthread_create of our own, which
// the library calls in place of libc's.
#include <dlfcn.h>
#include <gofer/gofer.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <system_error>
#include <thread>

#include "../support/wait_until.h"
#include "scenarios.h"

namespace {
std::atomic<int> allowed{INT_MAX};  // threads that may still be started
std::atomic<int> refused{0};
constexpr int own = 2;  // that the runtime starts for itself before the first one for goroutines
}  // namespace

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*body)(void*), void* argument) noexcept {
  static const auto next =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  if (allowed.load() <= 0) {
    ++refused;
    return EAGAIN;
  }
  --allowed;
  return next(thread, attributes, body, argument);
}

namespace {

using namespace gofer::test;
using namespace std::chrono_literals;

void work() {
  std::atomic<int> ran{0};
  gofer::wait_group wg;
  for (int i = 0; i < 1000; ++i) {
    wg.go([&] {
      gofer::yield();
      gofer::wait_group inner;
      for (int j = 0; j < 3; ++j) inner.go([&] { ++ran; });
      inner.wait();
      ++ran;
    });
  }
  wg.wait();
  require(ran == 4000, "all goroutines ran");
}

int refused_after() {
  allowed = own + std::atoi(scenario_argument);
  work();
  std::printf("refused: %s\n", refused > 0 ? "yes" : "no");
  say("completed");
  return 0;
}

int refused_for_a_while() {
  allowed = own + 1;
  work();
  allowed = INT_MAX;
  const int wanted = gofer::gomaxprocs(0) < 2 ? 1 : 2;
  gofer::wait_group wg;
  std::atomic<bool> there{false};
  for (int i = 0; i < 4; ++i) {
    wg.go([&] {
      if (wait_until([&] { return gofer::stats().threads >= wanted; })) there = true;
    });
  }
  wg.wait();
  require(there, "threads were started again");
  work();
  say("completed");
  return 0;
}

// The only thread belongs to a goroutine that waits for one in the queue. As soon as there are
// threads, another thread has to notice.
int refused_for_a_while_locked() {
  allowed = own + 1;
  gofer::wait_group first;
  gofer::wait_group second;
  first.add(1);
  second.add(1);
  gofer::go([&] {
    gofer::lock_os_thread();
    gofer::go([&] { second.done(); });
    second.wait();
    first.done();
  });
  std::this_thread::sleep_for(200ms);  // for the runtime to find that it gets none
  std::printf("refused: %s\n", refused > 0 ? "yes" : "no");
  allowed = INT_MAX;
  first.wait();
  say("completed");
  return 0;
}

// The only thread sleeps in a call until another goroutine has run, which is in the queue or waits
// for a timer.
int blocked_while_refused(bool announced, bool timer) {
  allowed = own + 1;
  int ends[2];
  require(pipe(ends) == 0, "a pipe");
  gofer::wait_group first;
  first.go([&] {
    gofer::go([&, timer] {
      if (timer) gofer::sleep_for(300ms);
      require(write(ends[1], "x", 1) == 1, "a byte is written");
    });
    if (timer) gofer::yield();
    const auto wait = [&] {
      char byte;
      require(read(ends[0], &byte, 1) == 1, "a byte is read");
    };
    announced ? gofer::blocking(wait) : wait();
  });
  require(wait_until([] { return refused > 0; }), "the runtime asks for a thread");
  std::this_thread::sleep_for(200ms);  // for the runtime to settle without one
  allowed = INT_MAX;
  first.wait();
  say("completed");
  return 0;
}

int refused_for_a_while_asleep() { return blocked_while_refused(false, false); }
int refused_for_a_while_announced() { return blocked_while_refused(true, false); }
int refused_for_a_while_before_timer() { return blocked_while_refused(false, true); }

void expect_system_error(void (*call)()) {
  try {
    call();
    say("no exception");
  } catch (const std::system_error& e) {
    std::printf("system_error %s\n", e.code() == std::errc::resource_unavailable_try_again
                                         ? "EAGAIN"
                                         : e.code().message().c_str());
  }
}

int first_refused() {
  allowed = 0;
  expect_system_error([] { gofer::go([] { say("ran"); }); });
  allowed = 1;  // the next two fail later, each after one more of the runtime's own threads
  expect_system_error([] { gofer::run([] { say("ran"); }); });
  allowed = 1;
  expect_system_error([] {
    gofer::wait_group wg;
    try {
      wg.go([] { say("ran"); });
    } catch (...) {
      wg.wait();  // its counter is zero again
      throw;
    }
  });
  expect_system_error([] { gofer::gomaxprocs(0); });
  std::printf("goroutines: %zu\n", gofer::num_goroutine());
  allowed = INT_MAX;
  work();
  say("completed");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(argc, argv,
                      {{"refused_after", refused_after},
                       {"refused_for_a_while", refused_for_a_while},
                       {"refused_for_a_while_locked", refused_for_a_while_locked},
                       {"refused_for_a_while_asleep", refused_for_a_while_asleep},
                       {"refused_for_a_while_announced", refused_for_a_while_announced},
                       {"refused_for_a_while_before_timer", refused_for_a_while_before_timer},
                       {"first_refused", first_refused}});
}
