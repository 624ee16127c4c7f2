// Programs that end because of an uncaught exception, or a misuse that is fatal.
#include <gofer/gofer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

#include "../support/wait_until.h"
#include "scenarios.h"

namespace app {
struct Custom {
  int code = 3;
};
struct Problem : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct ThrowingWhat : std::exception {
  const char* what() const noexcept override {
    return std::string("in what()").substr(100).data() != nullptr ? "never" : "";
  }
};
struct WaitingWhat : std::exception {
  const char* what() const noexcept override {
    gofer::chan<int>(0).recv();
    return "never";
  }
};
struct NoWhat : std::exception {
  const char* what() const noexcept override { return nullptr; }
};
}  // namespace app

namespace {

using namespace gofer::test;

// The program's end comes from a goroutine.
[[noreturn]] void wait_for_the_end() {
  gofer::wait_group never;
  never.add(1);
  never.wait();
  std::abort();
}

template <class F>
int in_goroutine(F f) {
  gofer::go(f);
  wait_for_the_end();
}

int runtime_error() {
  return in_goroutine([] { throw std::runtime_error("boom"); });
}

int number() {
  return in_goroutine([] { throw 42; });
}

int custom() {
  return in_goroutine([] { throw app::Custom{}; });
}

int derived() {
  return in_goroutine([] { throw app::Problem("two\nlines"); });
}

int throwing_what() {
  return in_goroutine([] { throw app::ThrowingWhat(); });
}

int waiting_what() {
  return in_goroutine([] { throw app::WaitingWhat(); });
}

int waiting_what_locked() {
  return in_goroutine([] {
    gofer::lock_os_thread();
    throw app::WaitingWhat();
  });
}

int no_what() {
  return in_goroutine([] { throw app::NoWhat(); });
}

int long_text() {
  return in_goroutine([] { throw std::runtime_error(std::string(5000, 'x') + "END"); });
}

volatile int depth;

[[gnu::noinline]] void innermost() { GOFER_SAY_LINE("throw"), throw std::logic_error("deep"); }

[[gnu::noinline]] void middle() {
  GOFER_SAY_LINE("middle"), innermost();
  depth = 1;
}

[[gnu::noinline]] void outermost() {
  GOFER_SAY_LINE("outer"), middle();
  depth = 2;
}

[[gnu::noinline]] void start_it() {
  GOFER_SAY_LINE("go"), gofer::go(outermost);
  depth = 3;
}

int nested() {
  gofer::run([] {
    std::printf("parent=%lu\n", static_cast<unsigned long>(gofer::this_goroutine::id()));
    start_it();
    wait_for_the_end();
  });
  return 0;
}

int named() {
  gofer::go({.name = "the reader"}, [] {
    std::printf("id=%lu\n", static_cast<unsigned long>(gofer::this_goroutine::id()));
    std::fflush(stdout);
    throw std::runtime_error("boom");
  });
  wait_for_the_end();
}

int in_main_goroutine() {
  gofer::run([] { throw std::runtime_error("from main"); });
  return 0;
}

int locked() {
  return in_goroutine([] {
    gofer::lock_os_thread();
    throw std::runtime_error("boom");
  });
}

// Others throw, catch and switch meanwhile: the report must be about the right exception.
int rethrown_after_switches() {
  for (int i = 0; i < 10; ++i) {
    gofer::go([] {
      for (;;) {
        try {
          throw 7;
        } catch (int) {
          gofer::yield();
        }
      }
    });
  }
  return in_goroutine([] {
    try {
      throw std::runtime_error("kept");
    } catch (...) {
      for (int i = 0; i < 1000; ++i) gofer::yield();
      throw;
    }
  });
}

int all_at_once() {
  static std::atomic<int> ready{0};
  for (int i = 0; i < 50; ++i) {
    gofer::go([] {
      ++ready;
      require(wait_until([] { return ready == 50; }), "fifty goroutines");
      throw std::runtime_error("one of fifty");
    });
  }
  wait_for_the_end();
}

int no_descriptors() {
  return in_goroutine([] {
    const rlimit limit{3, 3};
    require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    throw std::runtime_error("boom");
  });
}

[[gnu::noinline]] void refuses() noexcept {
  innermost();
  depth = 4;
}

int through_noexcept() { return in_goroutine(refuses); }

int terminate() {
  return in_goroutine([] { std::terminate(); });
}

// ---- the program's own handler

void own_handler() {
  try {
    if (std::current_exception() != nullptr) throw;
    say("own handler: no exception");
  } catch (const std::exception& e) {
    std::printf("own handler: %s\n", e.what());
    std::fflush(stdout);
  } catch (...) {
    say("own handler: not a std::exception");
  }
  _exit(5);
}

void start_runtime() {
  gofer::run([] {});
}

int handler_before_thread_throws() {
  std::set_terminate(own_handler);
  start_runtime();
  std::thread([] { throw std::runtime_error("in a thread"); }).join();
  return 0;
}

int handler_before_main_throws() {
  std::set_terminate(own_handler);
  start_runtime();
  throw std::runtime_error("in main");
}

int handler_after_thread_throws() {
  start_runtime();
  std::set_terminate(own_handler);
  std::thread([] { throw std::runtime_error("in a thread"); }).join();
  return 0;
}

int handler_before_goroutine_throws() {
  std::set_terminate(own_handler);
  return in_goroutine([] { throw std::runtime_error("in a goroutine"); });
}

int no_handler_thread_throws() {
  start_runtime();
  std::thread([] { throw std::runtime_error("in a thread"); }).join();
  return 0;
}

// ---- goexit

int goexit_swallowed() {
  return in_goroutine([] {
    try {
      gofer::goexit();
    } catch (...) {
      say("caught");
    }
    say("went on");
  });
}

int goexit_rethrown() {
  gofer::wait_group wg;
  wg.go([] {
    try {
      gofer::goexit();
    } catch (...) {
      say("caught");
      throw;
    }
    say("went on");
  });
  wg.wait();
  return 0;
}

[[gnu::noinline]] void exits() noexcept { gofer::goexit(); }

int goexit_through_noexcept() { return in_goroutine(exits); }

// The exception of the catch block must not be taken for the reason.
int goexit_in_catch_block() {
  gofer::wait_group wg;
  wg.go([] {
    try {
      throw std::runtime_error("caught");
    } catch (const std::exception&) {
      gofer::goexit();
    }
  });
  wg.wait();
  say("completed");
  return 0;
}

int goexit_in_main_thread() {
  gofer::goexit();
  return 0;
}

int goexit_in_thread() {
  start_runtime();
  std::thread([] { gofer::goexit(); }).join();
  return 0;
}

// ---- wait_group

int negative_in_goroutine() {
  return in_goroutine([] {
    gofer::wait_group wg;
    wg.add(1);
    wg.done();
    GOFER_SAY_LINE("done"), wg.done();
  });
}

int negative_in_thread() {
  gofer::wait_group wg;
  wg.add(-3);
  return 0;
}

int negative_with_waiter() {
  static gofer::wait_group wg;
  wg.add(1);
  static std::atomic<bool> waits{false};
  gofer::go([] {
    waits = true;
    wg.wait();
  });
  require(wait_until([] { return waits.load(); }), "it waits");
  wg.add(-2);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(argc, argv,
                      {{"runtime_error", runtime_error},
                       {"number", number},
                       {"custom", custom},
                       {"derived", derived},
                       {"throwing_what", throwing_what},
                       {"waiting_what", waiting_what},
                       {"waiting_what_locked", waiting_what_locked},
                       {"no_what", no_what},
                       {"long_text", long_text},
                       {"nested", nested},
                       {"named", named},
                       {"in_main_goroutine", in_main_goroutine},
                       {"locked", locked},
                       {"rethrown_after_switches", rethrown_after_switches},
                       {"all_at_once", all_at_once},
                       {"no_descriptors", no_descriptors},
                       {"through_noexcept", through_noexcept},
                       {"terminate", terminate},
                       {"handler_before_thread_throws", handler_before_thread_throws},
                       {"handler_before_main_throws", handler_before_main_throws},
                       {"handler_after_thread_throws", handler_after_thread_throws},
                       {"handler_before_goroutine_throws", handler_before_goroutine_throws},
                       {"no_handler_thread_throws", no_handler_thread_throws},
                       {"goexit_swallowed", goexit_swallowed},
                       {"goexit_rethrown", goexit_rethrown},
                       {"goexit_through_noexcept", goexit_through_noexcept},
                       {"goexit_in_catch_block", goexit_in_catch_block},
                       {"goexit_in_main_thread", goexit_in_main_thread},
                       {"goexit_in_thread", goexit_in_thread},
                       {"negative_in_goroutine", negative_in_goroutine},
                       {"negative_in_thread", negative_in_thread},
                       {"negative_with_waiter", negative_with_waiter}});
}
