#include <gofer/gofer.h>

#include <cstdio>
#include <stdexcept>

[[gnu::noinline]] int parse(int line) {
  if (line == 3) throw std::runtime_error("line 3: no number");
  return line;
}

int main() {
  gofer::set_panic_handler([](const gofer::panic_info& panic) {
    std::fprintf(stderr, "goroutine %d gives up\n", static_cast<int>(panic.goroutine));
  });
  return gofer::run([] {
    gofer::wait_group wg;
    wg.go({.name = "parser"}, [] {
      for (int line = 1; line <= 5; ++line) parse(line);
    });
    wg.wait();
    return 0;
  });
}
