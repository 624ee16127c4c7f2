// Reports while libdw faults: the program has a function of libdw's name that does.
#include <gofer/gofer.h>
#include <unistd.h>

#include <climits>

#include "scenarios.h"

extern "C" const char* dwfl_module_addrinfo() {
  volatile int* nowhere = nullptr;
  *nowhere = 1;
  return nullptr;
}

namespace {

using namespace gofer::test;

int fatal() {
  return gofer::run([] {
    gofer::wait_group one;
    one.go([] {
      gofer::wait_group negative;
      negative.done();
    });
    one.wait();
    return 0;
  });
}

int deadlock() {
  return gofer::run([] {
    gofer::wait_group never;
    never.add(1);
    gofer::go([&] { never.wait(); });
    never.wait();
    return 0;
  });
}

[[gnu::noinline]] int recurse(int n) {  // NOLINT(misc-no-recursion)
  volatile char frame[1024];
  frame[0] = static_cast<char>(n);
  return n == INT_MAX ? 0 : recurse(n + 1) + frame[0];
}

int overflow() {
  return gofer::run([] { return recurse(0); });
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(argc, argv,
                      {{"fatal", fatal}, {"deadlock", deadlock}, {"overflow", overflow}});
}
