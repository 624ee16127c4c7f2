// Programs that end by an uncaught exception, with a panic handler or a terminate handler that do
// what they may do, and what they may not.
#include <gofer/gofer.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

#include "scenarios.h"

namespace {

using namespace gofer::test;
using namespace std::chrono_literals;

[[noreturn]] void wait_for_the_end() {
  gofer::wait_group never;
  never.add(1);
  never.wait();
  std::abort();
}

template <class F>
int in_goroutine(F f) {
  gofer::go({.name = "the culprit"}, f);
  wait_for_the_end();
}

int throws() {
  return in_goroutine([] { throw std::runtime_error("boom"); });
}

int* volatile null_pointer = nullptr;
__attribute__((no_sanitize("undefined"))) void store_to_null() { *null_pointer = 1; }

// ---- panic handlers

std::string text_of(const std::exception_ptr& exception) {
  if (exception == nullptr) return "no exception";
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "something else";
  }
}

void shows(const gofer::panic_info& panic) {
  std::printf("handler: %s in %lu \"%s\", itself in %lu\n", text_of(panic.exception).c_str(),
              static_cast<unsigned long>(panic.goroutine), std::string(panic.name).c_str(),
              static_cast<unsigned long>(gofer::this_goroutine::id()));
  std::fflush(stdout);
}

int with_handler(gofer::panic_handler handler) {
  require(gofer::set_panic_handler(handler) == nullptr, "no handler before");
  require(gofer::set_panic_handler(handler) == handler, "the handler before");
  return throws();
}

int handler_shows() { return with_handler(shows); }

int handler_is_removed() {
  gofer::set_panic_handler(shows);
  gofer::set_panic_handler(nullptr);
  return throws();
}

int handler_of_terminate() {
  gofer::set_panic_handler(shows);
  return in_goroutine([] { std::terminate(); });
}

int handler_of_number() {
  gofer::set_panic_handler(shows);
  return in_goroutine([] { throw 42; });
}

int handler_throws() {
  return with_handler([](const gofer::panic_info&) { throw std::logic_error("in the handler"); });
}

int handler_goexits() {
  return with_handler([](const gofer::panic_info&) { gofer::goexit(); });
}

int handler_terminates() {
  return with_handler([](const gofer::panic_info&) { std::terminate(); });
}

[[gnu::noinline]] void throws_inner() { throw std::logic_error("inner"); }

int handler_meets_noexcept() {
  return with_handler([](const gofer::panic_info&) noexcept { throws_inner(); });
}

int handler_exits() {
  return with_handler([](const gofer::panic_info& panic) {
    shows(panic);
    std::exit(7);
  });
}

int handler_exits_at_once() {
  return with_handler([](const gofer::panic_info&) { _exit(7); });
}

int handler_crashes() {
  return with_handler([](const gofer::panic_info&) { store_to_null(); });
}

int handler_aborts() {
  return with_handler([](const gofer::panic_info&) { std::abort(); });
}

// The other goroutines run while it waits for them.
gofer::chan<std::string> log_lines(0);
gofer::chan<bool> logged(0);

int handler_logs_by_a_channel() {
  gofer::go([] {
    for (const std::string& line : log_lines) {
      say(line.c_str());
      gofer::sleep_for(1ms);
      logged.send(true);
    }
  });
  return with_handler([](const gofer::panic_info& panic) {
    log_lines.send("logged: " + text_of(panic.exception));
    logged.recv();
  });
}

std::atomic<bool> handler_runs{false};

void is_slow(const gofer::panic_info& panic) {
  handler_runs = true;
  gofer::sleep_for(200ms);
  shows(panic);
}

int handler_is_slow_and_main_returns() {
  gofer::set_panic_handler(is_slow);
  gofer::go([] { throw std::runtime_error("boom"); });
  while (!handler_runs) usleep(100);
  return 3;
}

int handler_is_slow_and_a_thread_exits() {
  gofer::set_panic_handler(is_slow);
  gofer::go([] { throw std::runtime_error("boom"); });
  while (!handler_runs) usleep(100);
  std::thread([] { std::exit(3); }).join();
  return 0;
}

int many_throw() {
  gofer::set_panic_handler([](const gofer::panic_info& panic) {
    for (int i = 0; i < 100; ++i) gofer::yield();
    gofer::sleep_for(20ms);
    shows(panic);
  });
  for (int i = 0; i < 50; ++i) {
    gofer::go([] {
      gofer::yield();
      throw std::runtime_error("one of fifty");
    });
  }
  wait_for_the_end();
}

// The report of the deadlock shows the goroutine whose handler waits.
int handler_never_returns() {
  gofer::set_panic_handler([](const gofer::panic_info&) { gofer::chan<int>(0).recv(); });
  gofer::run([] {
    gofer::go([] { throw std::runtime_error("boom"); });
    gofer::chan<int>(0).recv();
  });
  return 0;
}

int handler_and_fork() {
  gofer::set_panic_handler(shows);
  gofer::wait_group wg;
  wg.go([] {
    const pid_t child = fork();
    if (child == 0) throw std::runtime_error("in the child");
    int status = 0;
    require(waitpid(child, &status, 0) == child, "a child to wait for");
    std::printf("child=%d\n", WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status));
    std::fflush(stdout);
  });
  wg.wait();
  return 0;
}

// ---- terminate handlers that were there before

int with_terminate(std::terminate_handler handler) {
  std::set_terminate(handler);
  return throws();
}

int terminate_returns() {
  return with_terminate([] { say("terminate handler"); });
}

int terminate_exits() {
  return with_terminate([] {
    say("terminate handler");
    std::exit(7);
  });
}

int terminate_aborts() {
  return with_terminate([] {
    say("terminate handler");
    std::abort();
  });
}

int terminate_throws() {
  return with_terminate([] { throw std::logic_error("in the terminate handler"); });
}

int terminate_waits() {
  return with_terminate([] {
    say("terminate handler");
    gofer::chan<int>(0).recv();
  });
}

int terminate_crashes() { return with_terminate(store_to_null); }

int abort_handler() {
  signal(SIGABRT, [](int) {
    (void)!write(STDOUT_FILENO, "own handler of SIGABRT\n", 23);
    _exit(8);
  });
  return throws();
}

// ---- texts that do not come

struct CrashingWhat : std::exception {
  const char* what() const noexcept override {
    store_to_null();
    return "never";
  }
};

struct AbortingWhat : std::exception {
  const char* what() const noexcept override { std::abort(); }
};

int crashing_what() {
  return in_goroutine([] { throw CrashingWhat(); });
}

int aborting_what() {
  return in_goroutine([] { throw AbortingWhat(); });
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(argc, argv,
                      {{"throws", throws},
                       {"handler_shows", handler_shows},
                       {"handler_is_removed", handler_is_removed},
                       {"handler_of_terminate", handler_of_terminate},
                       {"handler_of_number", handler_of_number},
                       {"handler_throws", handler_throws},
                       {"handler_goexits", handler_goexits},
                       {"handler_terminates", handler_terminates},
                       {"handler_meets_noexcept", handler_meets_noexcept},
                       {"handler_exits", handler_exits},
                       {"handler_exits_at_once", handler_exits_at_once},
                       {"handler_crashes", handler_crashes},
                       {"handler_aborts", handler_aborts},
                       {"handler_logs_by_a_channel", handler_logs_by_a_channel},
                       {"handler_is_slow_and_main_returns", handler_is_slow_and_main_returns},
                       {"handler_is_slow_and_a_thread_exits", handler_is_slow_and_a_thread_exits},
                       {"many_throw", many_throw},
                       {"handler_never_returns", handler_never_returns},
                       {"handler_and_fork", handler_and_fork},
                       {"terminate_returns", terminate_returns},
                       {"terminate_exits", terminate_exits},
                       {"terminate_aborts", terminate_aborts},
                       {"terminate_throws", terminate_throws},
                       {"terminate_waits", terminate_waits},
                       {"terminate_crashes", terminate_crashes},
                       {"abort_handler", abort_handler},
                       {"crashing_what", crashing_what},
                       {"aborting_what", aborting_what}});
}
