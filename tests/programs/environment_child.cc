// A program that says what the runtime made of its environment.
#include <gofer/gofer.h>
#include <sched.h>

#include <atomic>

#include "../support/scenarios.h"

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

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(argc, argv, {{"print", print}, {"one_cpu", one_cpu}});
}
