// Programs that end while goroutines are at work: main returns, exit(), quick_exit(), abort().
#include <gofer/gofer.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#include "../support/wait_until.h"
#include "scenarios.h"

namespace {

using namespace gofer::test;
using namespace std::chrono_literals;

// ---- static objects that are older and younger than the runtime

struct Static {
  const char* name;
  bool uses_runtime = false;
  ~Static() {
    std::printf("%s destroyed\n", name);
    if (uses_runtime) use();
    std::fflush(stdout);
  }
  void use() {
    std::printf("goroutines: %s\n", gofer::num_goroutine() < 1'000'000 ? "counted" : "nonsense");
    gofer::wait_group wg;
    wg.add(1);
    wg.done();
    wg.wait();
    gofer::yield();
    gofer::go([] {});
    gofer::yield();
    std::printf("%s used the runtime\n", name);
  }
};
Static early{"early"};

// Constructed when the runtime has started.
Static& late() {
  static Static object{"late"};
  return object;
}

gofer::wait_group never;
std::atomic<int> running{0};

void park_for_ever() {
  ++running;
  never.wait();
}

void spin() {
  ++running;
  for (;;) asm volatile("");
}

void yield_for_ever() {
  ++running;
  for (;;) gofer::yield();
}

void spawn_for_ever() {
  ++running;
  for (;;) {
    gofer::wait_group wg;
    for (int i = 0; i < 10; ++i) wg.go([] { gofer::yield(); });
    wg.wait();
  }
}

void start(void (*f)(), int n) {
  running = 0;
  for (int i = 0; i < n; ++i) gofer::go(f);
  require(wait_until([n] { return running == n; }), "all goroutines started");
}

int return_idle() {
  late();
  gofer::run([] {});
  return 4;
}

int return_parked() {
  start(park_for_ever, 1000);
  late();
  return 4;
}

int return_yielding() {
  start(yield_for_ever, 20);
  late();
  return 4;
}

int return_spawning() {
  start(spawn_for_ever, 20);
  late();
  return 4;
}

// As many spin as can, with many more in the queues.
int return_spinning() {
  start(spin, gofer::gomaxprocs(0));
  for (int i = 0; i < 10'000; ++i) gofer::go(park_for_ever);
  late();
  return 4;
}

int return_with_locked() {
  start(
      [] {
        gofer::lock_os_thread();
        park_for_ever();
      },
      10);
  return 4;
}

// Threads start and end all the time.
int return_with_ending_threads() {
  start(
      [] {
        ++running;
        for (;;) {
          gofer::wait_group wg;
          wg.go([] { gofer::lock_os_thread(); });
          wg.wait();
        }
      },
      4);
  return 4;
}

// The world is stopped again and again.
int return_resizing() {
  start(
      [] {
        ++running;
        for (int i = 0;; ++i) gofer::gomaxprocs(1 + i % 8);
      },
      2);
  start(yield_for_ever, 4);
  return 4;
}

int return_from_run() {
  return gofer::run([] {
    for (int i = 0; i < 100; ++i) gofer::go(yield_for_ever);
    return 4;
  });
}

int statics_use_runtime() {
  start(park_for_ever, 10);
  early.uses_runtime = true;
  late().uses_runtime = true;
  return 4;
}

// ---- exit in a goroutine

[[noreturn]] void wait_for_the_end() {
  never.wait();
  std::abort();
}

int exit_in_goroutine() {
  std::atexit([] { say("atexit"); });
  start(yield_for_ever, 10);
  late();
  gofer::go([] { std::exit(7); });
  wait_for_the_end();
}

int exit_in_main_goroutine() {
  gofer::run([] {
    for (int i = 0; i < 100; ++i) gofer::go(yield_for_ever);
    late();
    std::exit(7);
  });
  return 0;
}

int exit_after_goexit_of_main() {
  gofer::run([] {
    late();
    gofer::go([] {
      for (int i = 0; i < 100; ++i) gofer::yield();
      std::exit(7);
    });
    gofer::goexit();
  });
  return 0;
}

int exit_in_locked_goroutine() {
  gofer::go([] {
    gofer::lock_os_thread();
    late();
    std::exit(7);
  });
  wait_for_the_end();
}

int exit_in_goroutine_statics_use_runtime() {
  early.uses_runtime = true;
  start(yield_for_ever, 10);
  late().uses_runtime = true;
  gofer::go([] { std::exit(7); });
  wait_for_the_end();
}

int exit_in_thread() {
  start(yield_for_ever, 10);
  std::thread([] { std::exit(7); }).join();
  return 0;
}

int quick_exit_in_goroutine() {
  std::at_quick_exit([] { say("at_quick_exit"); });
  start(yield_for_ever, 10);
  gofer::go([] { std::quick_exit(3); });
  wait_for_the_end();
}

int exit_at_once_in_goroutine() {
  start(yield_for_ever, 10);
  gofer::go([] { _exit(3); });
  wait_for_the_end();
}

int abort_in_goroutine() {
  start(yield_for_ever, 10);
  gofer::go([] { std::abort(); });
  wait_for_the_end();
}

// ---- threads that end

std::atomic<int> ended{0};

// As destroyed with its thread: everything that a foreign thread may do.
struct UsesRuntime {
  gofer::wait_group* released = nullptr;
  ~UsesRuntime() {
    gofer::wait_group wg;
    for (int i = 0; i < 10; ++i) wg.go([] { gofer::yield(); });
    wg.wait();
    require(gofer::this_goroutine::id() == 0, "an ordinary thread");
    gofer::yield();
    if (released != nullptr) released->wait();
    ++ended;
  }
};
thread_local UsesRuntime uses_runtime;

int thread_locals() {
  gofer::wait_group busy;
  std::atomic<bool> stop{false};
  for (int i = 0; i < 4; ++i) {
    busy.go([&] {
      while (!stop) gofer::yield();
    });
  }
  // One that is there before the thread first waits, and so goes after what the runtime keeps.
  gofer::wait_group released;
  released.add(1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 20; ++i) {
    threads.emplace_back([&] {
      uses_runtime.released = &released;
      gofer::wait_group wg;
      wg.go([] { gofer::yield(); });
      wg.wait();
    });
  }
  gofer::go([&] {
    for (int i = 0; i < 1000; ++i) gofer::yield();
    released.done();
  });
  for (std::thread& t : threads) t.join();
  stop = true;
  busy.wait();
  std::printf("ended: %d\n", ended.load());
  return 0;
}

// The same for the runtime's own threads, which end with a goroutine that is locked to them.
int thread_locals_of_ended_m() {
  for (int i = 0; i < 20; ++i) {
    gofer::go([] {
      gofer::lock_os_thread();
      uses_runtime.released = nullptr;
    });
  }
  require(wait_until([] { return ended == 20; }), "twenty threads ended");
  gofer::wait_group wg;
  for (int i = 0; i < 100; ++i) wg.go([] { gofer::yield(); });
  wg.wait();
  std::printf("ended: %d\n", ended.load());
  return 0;
}

// The main thread ends before the others: the process lives on.
int main_thread_ends() {
  gofer::go([] {
    for (int i = 0; i < 1000; ++i) gofer::yield();
    say("went on");
    std::exit(6);
  });
  pthread_exit(nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  never.add(1);
  return run_scenario(
      argc, argv,
      {{"return_idle", return_idle},
       {"return_parked", return_parked},
       {"return_yielding", return_yielding},
       {"return_spawning", return_spawning},
       {"return_spinning", return_spinning},
       {"return_with_locked", return_with_locked},
       {"return_with_ending_threads", return_with_ending_threads},
       {"return_resizing", return_resizing},
       {"return_from_run", return_from_run},
       {"statics_use_runtime", statics_use_runtime},
       {"exit_in_goroutine", exit_in_goroutine},
       {"exit_in_main_goroutine", exit_in_main_goroutine},
       {"exit_after_goexit_of_main", exit_after_goexit_of_main},
       {"exit_in_locked_goroutine", exit_in_locked_goroutine},
       {"exit_in_goroutine_statics_use_runtime", exit_in_goroutine_statics_use_runtime},
       {"exit_in_thread", exit_in_thread},
       {"quick_exit_in_goroutine", quick_exit_in_goroutine},
       {"exit_at_once_in_goroutine", exit_at_once_in_goroutine},
       {"abort_in_goroutine", abort_in_goroutine},
       {"thread_locals", thread_locals},
       {"thread_locals_of_ended_m", thread_locals_of_ended_m},
       {"main_thread_ends", main_thread_ends}});
}
