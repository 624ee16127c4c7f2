// Programs for the trace of the scheduler: all Ps idle, all held, and a mixture, for 200 ms.
#include <gofer/gofer.h>
#include <unistd.h>

#include <atomic>
#include <chrono>

#include "scenarios.h"

namespace {

using namespace gofer::test;
using namespace std::chrono_literals;

constexpr auto time_to_trace = 200ms;

int idle() {
  gofer::run([] { gofer::sleep_for(time_to_trace); });
  return 0;
}

int hogged() {
  std::atomic<bool> stop{false};
  gofer::wait_group wg;
  for (int i = 0; i < gofer::gomaxprocs(0) + 2; ++i) {
    wg.go([&] {
      while (!stop) asm volatile("");
    });
  }
  usleep(std::chrono::microseconds(time_to_trace).count());
  stop = true;
  wg.wait();
  return 0;
}

int mixed() {
  std::atomic<bool> stop{false};
  gofer::wait_group wg;
  gofer::chan<int> c(0);
  for (int i = 0; i < 5; ++i) {
    wg.go([&] {
      while (!stop) gofer::blocking([] { usleep(1000); });
    });
    wg.go([&] {
      while (!stop) usleep(1000);
    });
    wg.go([&] {
      while (!stop) {
        gofer::sleep_for(1ms);
        gofer::go([] {});
      }
    });
    wg.go([&] { c.recv(); });
    wg.go([&] {
      gofer::lock_os_thread();
      while (!stop) gofer::yield();
    });
  }
  usleep(std::chrono::microseconds(time_to_trace).count());
  stop = true;
  c.close();
  wg.wait();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(argc, argv, {{"idle", idle}, {"hogged", hogged}, {"mixed", mixed}});
}
