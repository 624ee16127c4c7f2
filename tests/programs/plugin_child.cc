// A program with libgofer.a that loads a plug-in with another copy of it.
#include <gofer/gofer.h>

#include <atomic>
#include <thread>

#include "../plugins/plugin.h"
#include "scenarios.h"

namespace {

using namespace gofer::test;

const char* program;

void use_own_copy() {
  gofer::wait_group wg;
  wg.go([] { gofer::yield(); });
  wg.wait();
}

int load_and_run(int flags) {
  use_own_copy();
  const Plugin plugin(program, "plugin_static.so", flags);
  say("loaded");
  std::printf("ran %d\n", plugin.run());
  return 0;
}

int plugin_second() { return load_and_run(RTLD_LOCAL); }
int plugin_second_global() { return load_and_run(RTLD_GLOBAL); }

int plugin_first() {
  const Plugin plugin(program, "plugin_static.so", RTLD_LOCAL);
  std::printf("ran %d\n", plugin.run());
  std::fflush(stdout);
  use_own_copy();
  return 0;
}

int plugin_in_goroutine() {
  return gofer::run([] { return load_and_run(RTLD_LOCAL); });
}

// Two threads start a copy each, as nearly at once as they can.
int plugin_at_once() {
  const Plugin plugin(program, "plugin_static.so", RTLD_LOCAL);
  std::atomic<int> ready{0};
  const auto together = [&ready](auto start) {
    return [&ready, start] {
      ++ready;
      while (ready != 2) {
      }
      start();
    };
  };
  std::thread one(together([] { use_own_copy(); }));
  std::thread other(together([&] { plugin.run(); }));
  one.join();
  other.join();
  say("both went on");
  return 0;
}

int plugin_unused() {
  const Plugin plugin(program, "plugin_static.so", RTLD_LOCAL);
  use_own_copy();
  say("completed");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  program = argv[0];
  return run_scenario(argc, argv,
                      {{"plugin_second", plugin_second},
                       {"plugin_second_global", plugin_second_global},
                       {"plugin_first", plugin_first},
                       {"plugin_in_goroutine", plugin_in_goroutine},
                       {"plugin_at_once", plugin_at_once},
                       {"plugin_unused", plugin_unused}});
}
