// Programs whose main goroutine, or one in the middle of handling an exception, calls goexit.
#include <gofer/gofer.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

namespace {

struct Say {
  const char* text;
  ~Say() { std::puts(text); }
};

std::atomic<bool> unwound{false};
std::atomic<int> done{0};

struct SetUnwound {
  ~SetUnwound() { unwound = true; }
};

// A hundred goroutines that wait for the unwinding; the last to be done ends the process.
void start_others() {
  for (int i = 0; i < 100; ++i) {
    gofer::go([] {
      while (!unwound) gofer::yield();
      for (int round = 0; round < 50; ++round) gofer::yield();
      if (++done < 100) return;
      std::printf("others done: %d\n", done.load());
      std::fflush(stdout);
      std::_Exit(0);
    });
  }
}

void main_exits() {
  gofer::run([] {
    start_others();
    const SetUnwound set;
    const Say say{"main unwound"};
    gofer::goexit();
  });
}

void inner_run() {
  gofer::run([] {
    start_others();
    gofer::run([] {
      const SetUnwound set;
      gofer::goexit();
    });
    std::puts("the inner run returned");
  });
}

void nested_catch() {
  gofer::wait_group group;
  group.go([] {
    const Say ended{"ended"};
    try {
      throw std::runtime_error("being handled");
    } catch (const std::exception&) {
      const Say left{"outer handler left"};
      try {
        gofer::goexit();
      } catch (...) {
        std::puts("inner handler");
        throw;
      }
    }
    std::puts("not reached");
  });
  group.wait();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view mode = argc > 1 ? argv[1] : "";
  if (mode == "main") {
    main_exits();
    std::puts("run returned");
  }
  if (mode == "inner_run") {
    inner_run();
    std::puts("the outer run returned");
  }
  if (mode == "nested_catch") nested_catch();
  return 0;
}
