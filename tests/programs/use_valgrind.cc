// A bit of everything that valgrind could be confused by: many stacks, deep ones, exceptions, and
// goroutines that are paused. Run under valgrind, it must show no error.
#include <gofer/gofer.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

// NOLINTNEXTLINE(misc-no-recursion)
int descend(int n) {
  volatile char frame[512];
  frame[0] = 1;
  if (n == 0) throw std::runtime_error("from below");
  return descend(n - 1) + frame[0];
}

int caught(int depth) {
  try {
    return descend(depth);
  } catch (const std::runtime_error& e) {
    gofer::yield();  // inside of the handler
    return e.what()[0];
  }
}

}  // namespace

int main() {
  return gofer::run([] {
    gofer::chan<int> results(4);
    gofer::wait_group all;
    for (int i = 0; i < 100; ++i) {
      all.go([=] {
        gofer::sleep_for(std::chrono::microseconds(i));
        results.send(caught(50 + i));
      });
    }
    gofer::go([=, &all] {
      all.wait();
      results.close();
    });
    int sum = 0;
    for (int r : results) sum += r;

    std::atomic<bool> stop{false};
    gofer::wait_group spinner;
    spinner.go([&] {
      while (!stop) asm volatile("");
    });
    int ends[2];
    if (pipe(ends) != 0) return 1;
    const gofer::fd in(ends[0]);
    const gofer::fd out(ends[1]);
    gofer::go([=] {
      gofer::sleep_for(std::chrono::milliseconds(20));
      out.write_all("done");
    });
    std::string said(4, ' ');
    in.read_full(said);
    stop = true;
    spinner.wait();
    std::printf("%d %s\n", sum, said.c_str());
    return sum == 100 * 'f' && said == "done" ? 0 : 1;
  });
}
