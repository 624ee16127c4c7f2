// Programs in which no goroutine can ever go on, and some that only look like it.
#include <gofer/gofer.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "../support/start_detached.h"
#include "../support/wait_until.h"
#include "scenarios.h"

namespace {

using namespace gofer::test;
using namespace std::chrono_literals;

gofer::wait_group never;  // its counter is 1 and stays so, unless a scenario ends it
std::atomic<int> waiting{0};

[[gnu::noinline]] void wait_for_ever() {
  GOFER_SAY_LINE("wait"), ++waiting, never.wait();
  asm volatile("");  // no tail call
}

// As GOFER_SAY_LINE once, not a thousand times.
[[gnu::noinline]] void wait_quietly() {
  ++waiting;
  never.wait();
  asm volatile("");
}

[[gnu::noinline]] void start_waiters(int n) {
  for (int i = 0; i < n; ++i) {
    gofer::go(wait_quietly);
  }
}

void ends_in_silence(int) { _exit(7); }

// The process ends with code 7 in 800 ms (six looks of the detector), whatever its threads do.
void end_soon() {
  signal(SIGALRM, ends_in_silence);
  const itimerval once{{0, 0}, {0, 800'000}};
  setitimer(ITIMER_REAL, &once, nullptr);
}

int main_only() {
  gofer::run([] { wait_for_ever(); });
  return 0;
}

int all_waiting() {
  gofer::run([] {
    start_waiters(3);
    wait_for_ever();
  });
  return 0;
}

int thousand() {
  gofer::run([] {
    start_waiters(1000);
    wait_for_ever();
  });
  return 0;
}

int locked() {
  gofer::run([] {
    for (int i = 0; i < 3; ++i) {
      gofer::go([] {
        gofer::lock_os_thread();
        wait_quietly();
      });
    }
    wait_for_ever();
  });
  return 0;
}

int main_locked() {
  gofer::run([] {
    gofer::lock_os_thread();
    start_waiters(2);
    wait_for_ever();
  });
  return 0;
}

// A goroutine that ends while it is bound to its thread ends the thread as well, after all others
// have gone to sleep.
int locked_ends_last() {
  gofer::run([] {
    gofer::go([] {
      gofer::lock_os_thread();
      require(wait_until([] { return waiting == 1; }), "main waits");
      std::this_thread::sleep_for(100ms);  // no event tells that its M sleeps
    });
    wait_for_ever();
  });
  return 0;
}

int thread_waits_too() {
  start_detached([] { wait_quietly(); });
  gofer::run([] { wait_for_ever(); });
  return 0;
}

int many_threads_wait() {
  for (int i = 0; i < 100; ++i) start_detached([] { wait_quietly(); });
  gofer::run([] {
    for (int i = 0; i < 50; ++i) {
      gofer::go([] {
        gofer::lock_os_thread();
        wait_quietly();
      });
    }
    wait_for_ever();
  });
  return 0;
}

int thread_waits_later() {
  start_detached([] {
    std::this_thread::sleep_for(300ms);
    wait_quietly();
  });
  gofer::run([] { wait_for_ever(); });
  return 0;
}

int thread_releases() {
  std::thread t([] {
    std::this_thread::sleep_for(300ms);
    never.done();
  });
  gofer::run([] {
    start_waiters(10);
    wait_for_ever();
  });
  t.join();
  say("completed");
  return 0;
}

// Each thread starts the next one and ends; the last one is kind. Many idle threads of the runtime
// make the list of threads long.
void relay(int left) {
  if (left == 0) {
    never.done();
    return;
  }
  std::this_thread::sleep_for(1ms);
  start_detached([left] { relay(left - 1); });
}

int thread_relay() {
  gofer::run([] {
    gofer::wait_group all;
    for (int i = 0; i < 80; ++i) {
      all.go([] {
        gofer::lock_os_thread();
        gofer::yield();
        gofer::unlock_os_thread();
      });
    }
    all.wait();
    start_detached([] { relay(150); });
    wait_for_ever();
  });
  say("completed");
  return 0;
}

int thread_ends() {
  start_detached([] { std::this_thread::sleep_for(300ms); });
  gofer::run([] {
    start_waiters(2);
    wait_for_ever();
  });
  return 0;
}

// Longer than the idle threads of the runtime live (the test sets that time).
int thread_ends_late() {
  gofer::gomaxprocs(8);
  start_detached([] { std::this_thread::sleep_for(800ms); });
  gofer::run([] {
    gofer::wait_group all;  // at least eight threads are started and idle
    std::atomic<int> locked{0};
    for (int i = 0; i < 8; ++i) {
      all.go([&] {
        gofer::lock_os_thread();
        ++locked;
        require(wait_until([&] { return locked == 8; }), "eight goroutines locked");
        gofer::unlock_os_thread();
      });
    }
    all.wait();
    wait_for_ever();
  });
  return 0;
}

int thread_sleeps() {
  start_detached([] { pause(); });
  end_soon();
  gofer::run([] { wait_for_ever(); });
  return 0;
}

// The goroutine's thread is in a system call that the runtime knows nothing of.
int goroutine_in_system_call() {
  gofer::run([] {
    gofer::go([] {
      usleep(300'000);
      never.done();
    });
    wait_for_ever();
  });
  say("completed");
  return 0;
}

int not_running() {
  end_soon();
  start_waiters(10);
  wait_for_ever();
  return 0;
}

int after_run() {
  gofer::run([] { start_waiters(10); });
  end_soon();
  wait_for_ever();
  return 0;
}

int second_run() {
  gofer::run([] { start_waiters(2); });
  gofer::run([] { wait_for_ever(); });
  return 0;
}

int two_runs() {
  start_detached([] { gofer::run([] { wait_quietly(); }); });
  gofer::run([] { wait_for_ever(); });
  return 0;
}

int run_in_goroutine() {
  gofer::run([] { gofer::run([] { wait_for_ever(); }); });
  return 0;
}

int stderr_closed() {
  close(STDERR_FILENO);
  return main_only();
}

int named() {
  gofer::run([] {
    gofer::go({.name = "reader"}, [] { wait_quietly(); });
    wait_for_ever();
  });
  return 0;
}

// A goroutine with a stack of its own size, that was given to it before it first ran.
int large_stack() {
  gofer::run([] {
    gofer::go({.stack_size = 4 << 20}, [] { wait_quietly(); });
    wait_for_ever();
  });
  return 0;
}

int goexit_others_finish() {
  gofer::run([] {
    for (int i = 0; i < 10; ++i) {
      gofer::go([] {
        for (int j = 0; j < 10; ++j) gofer::yield();
      });
    }
    gofer::goexit();
  });
  say("run returned");
  return 0;
}

int goexit_others_wait() {
  gofer::run([] {
    start_waiters(2);
    gofer::goexit();
  });
  say("run returned");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  never.add(1);
  return run_scenario(argc, argv,
                      {{"main_only", main_only},
                       {"all_waiting", all_waiting},
                       {"thousand", thousand},
                       {"locked", locked},
                       {"main_locked", main_locked},
                       {"locked_ends_last", locked_ends_last},
                       {"thread_waits_too", thread_waits_too},
                       {"many_threads_wait", many_threads_wait},
                       {"thread_waits_later", thread_waits_later},
                       {"thread_releases", thread_releases},
                       {"thread_relay", thread_relay},
                       {"thread_ends", thread_ends},
                       {"thread_ends_late", thread_ends_late},
                       {"thread_sleeps", thread_sleeps},
                       {"goroutine_in_system_call", goroutine_in_system_call},
                       {"not_running", not_running},
                       {"after_run", after_run},
                       {"second_run", second_run},
                       {"two_runs", two_runs},
                       {"run_in_goroutine", run_in_goroutine},
                       {"stderr_closed", stderr_closed},
                       {"named", named},
                       {"large_stack", large_stack},
                       {"goexit_others_finish", goexit_others_finish},
                       {"goexit_others_wait", goexit_others_wait}});
}
