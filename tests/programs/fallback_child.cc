// A goroutine that blocks its thread, or computes, for ever, on the only processor, and others that
// want to run: run with fall-backs of the runtime forced by the environment.
#include <gofer/gofer.h>
#include <unistd.h>

#include <chrono>

#include "scenarios.h"

namespace {

using namespace gofer::test;
using namespace std::chrono_literals;

void let_others_run() {
  gofer::wait_group others;
  for (int i = 0; i < 10; ++i) others.go([] { gofer::sleep_for(1ms); });
  others.wait();
  say("others ran");
}

// `call` makes a blocking call and returns what it returned.
template <class Call>
int read_beside_others(Call call) {
  int ends[2];
  require(pipe(ends) == 0, "pipe");
  gofer::run([&] {
    gofer::wait_group reader;
    reader.go([&] {
      char c = 0;
      const ssize_t n = call([&] { return read(ends[0], &c, 1); });
      require(n == 1 && c == 'x', "the call was not disturbed");
    });
    gofer::yield();
    let_others_run();
    require(write(ends[1], "x", 1) == 1, "write");
    reader.wait();
  });
  say("completed");
  return 0;
}

int blocked() {
  return read_beside_others([](auto read) { return read(); });
}

int announced() {
  return read_beside_others([](auto read) { return gofer::blocking(read); });
}

int computing() {
  std::atomic<bool> stop{false};
  gofer::run([&] {
    gofer::wait_group hog;
    hog.go([&] {
      while (!stop) asm volatile("");
    });
    gofer::yield();
    let_others_run();
    stop = true;
    hog.wait();
  });
  say("completed");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(argc, argv,
                      {{"blocked", blocked}, {"announced", announced}, {"computing", computing}});
}
