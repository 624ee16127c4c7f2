// Programs that say what the runtime made of its environment and of limits.
#include <gofer/gofer.h>
#include <sched.h>

#include <atomic>

#include "../support/wait_until.h"
#include "scenarios.h"

namespace {

using namespace gofer::test;

int print() {
  std::atomic<int> ran{0};
  gofer::wait_group wg;
  for (int i = 0; i < 100; ++i) {
    wg.go([&] {
      gofer::yield();
      ++ran;
    });
  }
  wg.wait();
  std::printf("gomaxprocs=%d num_cpu=%d ran=%d\n", gofer::gomaxprocs(0), gofer::num_cpu(),
              ran.load());
  return 0;
}

int one_cpu() {
  cpu_set_t all;
  CPU_ZERO(&all);
  require(sched_getaffinity(0, sizeof all, &all) == 0, "sched_getaffinity");
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = CPU_SETSIZE - 1; i >= 0; --i) {
    if (!CPU_ISSET(i, &all)) continue;
    CPU_SET(i, &one);
    break;
  }
  require(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity");
  return print();
}

gofer::wait_group never;

void wait_locked() {
  gofer::lock_os_thread();
  never.wait();
}

// ---- set_max_threads

int max_threads_answers() {
  for (int n : {0, 500, -1, 600, 0}) std::printf("%d\n", gofer::set_max_threads(n));
  return 0;
}

int limit() {
  gofer::set_max_threads(10);
  for (int i = 0; i < 30; ++i) gofer::go(wait_locked);
  never.wait();
  return 0;
}

int limit_lowered() {
  std::atomic<int> started{0};
  for (int i = 0; i < 10; ++i) {
    gofer::go([&] {
      ++started;
      wait_locked();
    });
  }
  require(wait_until([&] { return started == 10; }), "ten goroutines");
  gofer::set_max_threads(5);
  say("went on");
  return 0;
}

int within_limit() {
  gofer::set_max_threads(100);
  gofer::wait_group wg;
  for (int i = 0; i < 500; ++i) {
    wg.go([] {
      for (int j = 0; j < 10; ++j) gofer::yield();
    });
  }
  wg.wait();
  say("completed");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  never.add(1);
  return run_scenario(argc, argv,
                      {{"print", print},
                       {"one_cpu", one_cpu},
                       {"max_threads_answers", max_threads_answers},
                       {"limit", limit},
                       {"limit_lowered", limit_lowered},
                       {"within_limit", within_limit}});
}
