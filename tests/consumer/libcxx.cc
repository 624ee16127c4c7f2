// A program and the library, both with LLVM's standard library: what depends on the inside of one,
// exceptions above all.
#include <gofer/gofer.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <version>

#ifndef _LIBCPP_VERSION
#error "not LLVM's standard library"
#endif

namespace {

using namespace std::chrono_literals;

// Each goroutine is switched away inside of its catch block, and still finds its own exception.
bool exceptions_survive_switches() {
  std::atomic<int> right{0};
  gofer::wait_group wg;
  for (int i = 0; i < 100; ++i) {
    wg.go([&right, i] {
      try {
        throw std::runtime_error(std::to_string(i));
      } catch (const std::runtime_error&) {
        gofer::yield();
        try {
          throw;
        } catch (const std::runtime_error& again) {
          right += again.what() == std::to_string(i);
        }
      }
    });
  }
  wg.wait();
  return right == 100;
}

bool goexit_unwinds() {
  std::atomic<int> destroyed{0};
  struct Counts {
    std::atomic<int>& n;
    ~Counts() { ++n; }
  };
  gofer::wait_group wg;
  wg.go([&] {
    Counts c{destroyed};
    gofer::goexit();
  });
  wg.wait();
  return destroyed == 1;
}

bool results_come_back() {
  auto [ctx, cancel] = gofer::with_timeout(gofer::background(), 1h);
  gofer::cancel_guard at_end(cancel);
  auto sum = gofer::async([](int a, int b) { return a + b; }, 2, 3);
  auto failed = gofer::async([]() -> int { throw std::out_of_range("far"); });
  try {
    failed.get(ctx);
    return false;
  } catch (const std::out_of_range&) {
  }
  gofer::chan<std::string> c(0);
  gofer::go([c] { c.send("text"); });
  std::string got;
  gofer::select(gofer::on_recv(c, [&](std::string s) { got = s; }), gofer::on_done(ctx));
  return sum.get(ctx) == 5 && got == "text";
}

}  // namespace

int main() {
  return gofer::run([] {
    std::printf("libc++ %d\n", _LIBCPP_VERSION);
    if (!exceptions_survive_switches()) return 1;
    if (!goexit_unwinds()) return 2;
    return results_come_back() ? 0 : 3;
  });
}
