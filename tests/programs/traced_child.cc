// Programs that GOFER_TRACE records, and that end in different ways.
#include <gofer/gofer.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "scenarios.h"

namespace {

using namespace std::chrono_literals;

void work() {
  gofer::wait_group all;
  for (int i = 0; i < 10; ++i) all.go([] { gofer::sleep_for(1ms); });
  all.wait();
}

int returns() {
  gofer::run(work);
  return 0;
}

int exits() {
  gofer::run([] {
    work();
    std::exit(3);
  });
  return 0;
}

int deadlock() {
  gofer::run([] {
    work();
    gofer::chan<int>(0).recv();
  });
  return 0;
}

int throws() {
  gofer::run([] {
    work();
    throw std::runtime_error("uncaught");
  });
  return 0;
}

int aborts() {
  gofer::run([] {
    work();
    std::abort();
  });
  return 0;
}

int forks() {
  gofer::run(work);
  const pid_t child = fork();
  if (child == 0) std::exit(0);
  waitpid(child, nullptr, 0);
  gofer::run(work);
  return 0;
}

int says_pid() {
  gofer::run([] { std::printf("%d\n", getpid()); });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return gofer::test::run_scenario(argc, argv,
                                   {{"returns", returns},
                                    {"exits", exits},
                                    {"deadlock", deadlock},
                                    {"throws", throws},
                                    {"aborts", aborts},
                                    {"forks", forks},
                                    {"says_pid", says_pid}});
}
