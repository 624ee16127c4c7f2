// Programs whose static objects and exit handlers use goroutines while the process exits.
#include <gofer/gofer.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

#include "../support/start_detached.h"
#include "../support/wait_until.h"
#include "scenarios.h"

namespace {

using namespace gofer::test;
using namespace std::chrono_literals;

constexpr int status = 4;

// ---- static objects: what their destructors do is up to the scenario

struct Static {
  const char* name;
  void (*at_end)() = nullptr;
  ~Static() {
    if (at_end != nullptr) at_end();
    std::printf("%s destroyed\n", name);
    std::fflush(stdout);
  }
};
Static first{"first"};    // destroyed after all others
Static second{"second"};  // before the runtime starts, like the first

// Constructed once the runtime has started, and destroyed before the others.
Static& late() {
  static Static object{"late"};
  return object;
}

// A goroutine prints what it receives, and the destructor waits for it.
class Logger {
 public:
  void start() {
    done_.go([this] {
      for (const std::string& line : lines_) say(line.c_str());
      gofer::sleep_for(1ms);
      say("log ended");
    });
  }
  void log(std::string line) { lines_.send(std::move(line)); }
  void close() {
    log("last line");
    lines_.close();
    done_.wait();
    say("log closed");
  }

 private:
  gofer::chan<std::string> lines_{16};
  gofer::wait_group done_;
};

Logger& logger() {
  static auto* object = new Logger;
  return *object;
}

void close_log() { logger().close(); }

void start_log() {
  logger().start();
  logger().log("first line");
}

std::atomic<int> running{0};

template <class F>
void start(int n, F f) {
  running = 0;
  for (int i = 0; i < n; ++i) {
    gofer::go([f] {
      ++running;
      f();
    });
  }
  require(wait_until([n] { return running == n; }), "all goroutines started");
}

[[noreturn]] void spin() {
  for (;;) asm volatile("");
}

gofer::wait_group never;

[[noreturn]] void wait_for_the_end() {
  never.wait();
  std::abort();
}

// ---- ways to exit, with the log closed by a static object

int log_main_returns() {
  second.at_end = close_log;
  start_log();
  return status;
}

int log_late() {
  start_log();
  late().at_end = close_log;
  return status;
}

int log_atexit() {
  std::atexit(close_log);
  start_log();
  return status;
}

int log_at_quick_exit() {
  std::at_quick_exit(close_log);
  start_log();
  std::quick_exit(status);
}

int log_exit_after_run() {
  second.at_end = close_log;
  gofer::run(start_log);
  std::exit(status);
}

int log_exit_in_main_goroutine() {
  second.at_end = close_log;
  gofer::run([] {
    start_log();
    std::exit(status);
  });
  return 0;
}

int log_exit_in_goroutine() {
  second.at_end = close_log;
  start_log();
  gofer::go([] { std::exit(status); });
  wait_for_the_end();
}

int log_exit_in_bound_goroutine() {
  second.at_end = close_log;
  start_log();
  gofer::go([] {
    gofer::lock_os_thread();
    std::exit(status);
  });
  wait_for_the_end();
}

int log_exit_in_blocking_call() {
  second.at_end = close_log;
  start_log();
  gofer::go([] { gofer::blocking(gofer::handoff, [] { std::exit(status); }); });
  wait_for_the_end();
}

int log_exit_in_thread() {
  second.at_end = close_log;
  start_log();
  std::thread([] { std::exit(status); }).join();
  return 0;
}

// ---- with others about

int log_beside_spinners() {
  start(gofer::gomaxprocs(0) + 2, [] { spin(); });
  return log_main_returns();
}

int log_exit_beside_spinners() {
  start(gofer::gomaxprocs(0) + 2, [] { spin(); });
  return log_exit_in_goroutine();
}

int log_beside_blocked() {
  start(gofer::gomaxprocs(0) + 2, [] { ::sleep(1000); });
  return log_main_returns();
}

int log_beside_parked() {
  start(1000, [] { never.wait(); });
  return log_main_returns();
}

int log_beside_bound() {
  start(10, [] {
    gofer::lock_os_thread();
    never.wait();
  });
  return log_main_returns();
}

int log_beside_yielding() {
  start(20, [] {
    for (;;) gofer::yield();
  });
  return log_main_returns();
}

// ---- everything that a destructor may do

void use_everything() {
  gofer::chan<int> c(0);
  gofer::go([c] {
    for (int i = 0; i < 100; ++i) c.send(i);
    c.close();
  });
  int sum = 0;
  for (const int i : c) sum += i;
  require(sum == 4950, "a channel");

  gofer::mutex m;
  int count = 0;
  gofer::wait_group wg;
  for (int i = 0; i < 10; ++i) {
    wg.go([&] {
      for (int n = 0; n < 100; ++n) {
        const std::lock_guard guard(m);
        ++count;
        gofer::yield();
      }
    });
  }
  for (int n = 0; n < 100; ++n) {
    const std::lock_guard guard(m);
    ++count;
  }
  wg.wait();
  require(count == 1100, "a mutex");

  const auto begin = std::chrono::steady_clock::now();
  gofer::sleep_for(2ms);
  bool late = false;
  gofer::select(gofer::on_recv(gofer::chan<int>(0), [](int) {}),
                gofer::on_timeout(2ms, [&late] { late = true; }));
  require(late && std::chrono::steady_clock::now() - begin >= 4ms, "time");

  require(gofer::run([] { return 5; }) == 5, "run");
  const int procs = gofer::gomaxprocs(3);
  gofer::gomaxprocs(procs);
  require(gofer::async([] { return 6; }).get() == 6, "async");
  require(gofer::blocking([] { return 7; }) == 7, "blocking");
  std::thread([] {
    gofer::wait_group in_thread;
    in_thread.go([] { gofer::yield(); });
    in_thread.wait();
  }).join();
  gofer::yield();
  say("used everything");
}

int everything_main_returns() {
  second.at_end = use_everything;
  gofer::run([] {});
  late().at_end = use_everything;
  return status;
}

int everything_exit_in_goroutine() {
  second.at_end = use_everything;
  gofer::go([] {
    late().at_end = use_everything;
    std::exit(status);
  });
  wait_for_the_end();
}

// A destructor may wait for a goroutine without our help, too.
int joined_by_polling() {
  static std::atomic<bool> told{false};
  static std::atomic<bool> ended{false};
  gofer::go([] {
    while (!told) gofer::sleep_for(1ms);
    ended = true;
  });
  second.at_end = [] {
    told = true;
    while (!ended) std::this_thread::sleep_for(1ms);
    say("ended");
  };
  return status;
}

// The very first use of the runtime.
int started_at_exit() {
  second.at_end = use_everything;
  return status;
}

// ---- waits that can never end

[[gnu::noinline]] void wait_for_ever() {
  never.wait();
  say("the wait has ended");
}

int endless_early() {
  second.at_end = wait_for_ever;
  gofer::run([] {});
  return status;
}

int endless_late() {
  gofer::run([] {});
  late().at_end = wait_for_ever;
  return status;
}

int endless_in_goroutine() {
  gofer::go([] {
    late().at_end = wait_for_ever;
    std::exit(status);
  });
  wait_for_the_end();
}

int endless_in_main_goroutine() {
  gofer::run([] {
    late().at_end = wait_for_ever;
    std::exit(status);
  });
  return 0;
}

int endless_in_thread() {
  second.at_end = wait_for_ever;
  start(3, [] { never.wait(); });
  gofer::wait_group parked;
  parked.add(1);
  start_detached([] { std::exit(status); });
  parked.wait();
  return 0;
}

int endless_beside_parked() {
  second.at_end = wait_for_ever;
  start(100, [] { never.wait(); });
  start(3, [] {
    gofer::lock_os_thread();
    never.wait();
  });
  return status;
}

// The event of the first wait comes after all, but too late: it must not wake any thread.
int endless_twice() {
  gofer::run([] {});
  static auto* c = new gofer::chan<int>(0);
  late().at_end = [] { c->recv(); };
  second.at_end = [] {
    c->close();
    use_everything();
    wait_for_ever();
  };
  return status;
}

int endless_twice_in_goroutine() {
  gofer::go([] {
    endless_twice();
    std::exit(status);
  });
  wait_for_the_end();
}

// Long, but not for ever: a goroutine is on its way.
int long_wait() {
  second.at_end = [] {
    gofer::wait_group wg;
    wg.go([] { gofer::sleep_for(100ms); });
    wg.wait();
    wg.go([] { ::usleep(100'000); });
    wg.wait();
    wg.add(1);
    std::thread thread([&wg] {
      ::usleep(100'000);
      wg.done();
    });
    wg.wait();
    thread.join();
    say("waited");
  };
  gofer::run([] {});
  return status;
}

// ---- a report, and an exit at the same time

std::atomic<bool> in_report{false};

struct Slow : std::exception {
  const char* what() const noexcept override {
    in_report = true;
    ::usleep(100'000);
    return "slow";
  }
};

void begin_report() {
  gofer::go([] { throw Slow(); });
  while (!in_report) ::usleep(100);
}

int report_then_main_returns() {
  begin_report();
  return status;
}

int report_then_exit_in_thread() {
  begin_report();
  std::thread([] { std::exit(status); }).join();
  return 0;
}

int report_then_quick_exit() {
  begin_report();
  std::quick_exit(status);
}

int report_then_exit_in_goroutine() {
  gofer::gomaxprocs(2);
  start(1, [] {
    while (!in_report) asm volatile("");
    std::exit(status);
  });
  begin_report();
  wait_for_the_end();
}

int report_then_thread_throws() {
  begin_report();
  throw std::runtime_error("in main, during the report");
}

int report_in_exit_handler() {
  second.at_end = begin_report;
  gofer::run([] {});
  return status;
}

int report_in_exit_handler_of_goroutine() {
  second.at_end = begin_report;
  gofer::go([] { std::exit(status); });
  wait_for_the_end();
}

int exit_in_report() {
  struct Exits : std::exception {
    const char* what() const noexcept override { std::exit(status); }
  };
  gofer::go([] { throw Exits(); });
  wait_for_the_end();
}

// No thread waits for another: the exit or the report may come first.
int report_races() {
  static std::atomic<bool> throws{false};
  gofer::go([] {
    throws = true;
    throw std::runtime_error("as main returns");
  });
  while (!throws) {
  }
  for (int i = std::atoi(scenario_argument); i > 0; --i) asm volatile("");
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  never.add(1);
  return run_scenario(argc, argv,
                      {{"log_main_returns", log_main_returns},
                       {"log_late", log_late},
                       {"log_atexit", log_atexit},
                       {"log_at_quick_exit", log_at_quick_exit},
                       {"log_exit_after_run", log_exit_after_run},
                       {"log_exit_in_main_goroutine", log_exit_in_main_goroutine},
                       {"log_exit_in_goroutine", log_exit_in_goroutine},
                       {"log_exit_in_bound_goroutine", log_exit_in_bound_goroutine},
                       {"log_exit_in_blocking_call", log_exit_in_blocking_call},
                       {"log_exit_in_thread", log_exit_in_thread},
                       {"log_beside_spinners", log_beside_spinners},
                       {"log_exit_beside_spinners", log_exit_beside_spinners},
                       {"log_beside_blocked", log_beside_blocked},
                       {"log_beside_parked", log_beside_parked},
                       {"log_beside_bound", log_beside_bound},
                       {"log_beside_yielding", log_beside_yielding},
                       {"everything_main_returns", everything_main_returns},
                       {"everything_exit_in_goroutine", everything_exit_in_goroutine},
                       {"joined_by_polling", joined_by_polling},
                       {"started_at_exit", started_at_exit},
                       {"endless_early", endless_early},
                       {"endless_late", endless_late},
                       {"endless_in_goroutine", endless_in_goroutine},
                       {"endless_in_main_goroutine", endless_in_main_goroutine},
                       {"endless_in_thread", endless_in_thread},
                       {"endless_beside_parked", endless_beside_parked},
                       {"endless_twice", endless_twice},
                       {"endless_twice_in_goroutine", endless_twice_in_goroutine},
                       {"long_wait", long_wait},
                       {"report_then_main_returns", report_then_main_returns},
                       {"report_then_exit_in_thread", report_then_exit_in_thread},
                       {"report_then_quick_exit", report_then_quick_exit},
                       {"report_then_exit_in_goroutine", report_then_exit_in_goroutine},
                       {"report_then_thread_throws", report_then_thread_throws},
                       {"report_in_exit_handler", report_in_exit_handler},
                       {"report_in_exit_handler_of_goroutine", report_in_exit_handler_of_goroutine},
                       {"exit_in_report", exit_in_report},
                       {"report_races", report_races}});
}
