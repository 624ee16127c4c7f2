// Programs whose goroutines compute without end: what others see of it, and how such programs end.
#include <gofer/gofer.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "../support/wait_until.h"
#include "os/raw_syscall.h"
#include "os/thread.h"
#include "runtime/procs/thread_gate.h"
#include "runtime/threads/m_table.h"
#include "runtime/watch/preempt.h"
#include "scenarios.h"

namespace {

using namespace gofer::test;
using namespace std::chrono_literals;
using gofer::internal::m_table;
using gofer::internal::preemption;
using gofer::internal::thread_gate;

[[noreturn]] void spin() {
  for (;;) asm volatile("");
}

[[noreturn]] void spin_in_malloc() {
  for (;;) {
    std::vector<std::unique_ptr<char[]>> blocks;
    for (size_t i = 0; i < 100; ++i) blocks.push_back(std::make_unique<char[]>(i * 211 % 3000 + 1));
  }
}

void compute() {
  for (int i = 0; i < 1'000'000; ++i) asm volatile("");
}

std::mutex shared_mutex;

[[noreturn]] void spin_with_mutex() {
  for (;;) {
    {
      std::lock_guard lock(shared_mutex);
      compute();
    }
    compute();
  }
}

[[noreturn]] void spin_in_stdout() {
  for (;;) {
    flockfile(stdout);
    compute();
    funlockfile(stdout);
    compute();
  }
}

// f in more goroutines than there are Ps, until some of them were paused.
void start_paused(void (*f)()) {
  const uint64_t before = preemption.paused.load();
  for (int i = 0; i < gofer::gomaxprocs(0) + 3; ++i) gofer::go(f);
  // Threads that wait for a lock lose their Ps to others.
  for (int i = 0; i < gofer::gomaxprocs(0); ++i) gofer::go(spin);
  require(wait_until([&] { return preemption.paused.load() >= before + 5; }),
          "goroutines were paused");
}

// ---- the classic programs

int got_scheduled() {
  gofer::run([] {
    gofer::go(spin);
    gofer::sleep_for(1ms);
    say("i got scheduled");
  });
  return 0;
}

// The same with yields: main is in a queue, not asleep.
int got_scheduled_by_yield() {
  gofer::run([] {
    gofer::go(spin);
    gofer::yield();
    say("i got scheduled");
  });
  return 0;
}

// ---- ends

int return_with(void (*f)()) {
  start_paused(f);
  std::puts("returns");
  return 4;
}
int return_spinning() { return return_with(spin); }
int return_in_malloc() { return return_with(spin_in_malloc); }
int return_with_mutex() {
  std::atexit([] {
    std::lock_guard lock(shared_mutex);
    std::puts("locked");
  });
  return return_with(spin_with_mutex);
}
int return_with_stdout() { return return_with(spin_in_stdout); }

// A handler that runs after the runtime has heard of the end.
struct Early {
  ~Early() {
    if (!wants_mutex) return;
    const std::unique_ptr<char[]> memory(new char[5000]);
    std::lock_guard lock(shared_mutex);
    std::puts("locked at last");
  }
  bool wants_mutex = false;
};
Early early;

int return_with_mutex_late() {
  early.wants_mutex = true;
  return return_with(spin_with_mutex);
}

int exit_with(void (*f)()) {
  gofer::run([=] {
    start_paused(f);
    std::exit(5);
  });
  return 0;
}
int exit_spinning() { return exit_with(spin); }
int exit_in_malloc() { return exit_with(spin_in_malloc); }
int exit_with_mutex() {
  early.wants_mutex = true;
  std::atexit([] {
    std::lock_guard lock(shared_mutex);
    std::puts("locked");
  });
  return exit_with(spin_with_mutex);
}
int exit_with_stdout() { return exit_with(spin_in_stdout); }

// Goroutines that lost their P while they slept, and wait for one on their own threads in a call of
// the runtime.
int return_with_tied() {
  for (int i = 0; i < 50; ++i) {
    gofer::go([] {
      for (;;) {
        usleep(100);
        gofer::go([] {});
        gofer::wait_group wg;
        wg.go([] {});
        wg.wait();
      }
    });
  }
  for (int i = 0; i < gofer::gomaxprocs(0); ++i) gofer::go(spin);
  require(wait_until([] { return thread_gate.tied > 20; }, 10s), "goroutines are tied");
  return 4;
}

// ---- fork

int fork_in_malloc() {
  const int code = gofer::run([] {
    start_paused(spin_in_malloc);
    for (int i = 0; i < 3; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        if (i == 0) execl("/bin/true", "true", nullptr);
        std::free(std::malloc(1000));
        _exit(i == 0 ? 1 : 0);
      }
      int status = -1;
      require(waitpid(child, &status, 0) == child, "the child was waited for");
      if (status != 0) return 1;
    }
    say("forked");
    return 0;
  });
  return code;
}

// ---- reports

int report_of(void (*f)()) {
  gofer::run([=] {
    start_paused(spin_in_malloc);
    gofer::go(f);
    gofer::sleep_for(1h);
  });
  return 0;
}
int report_exception() {
  return report_of([] { throw std::runtime_error("thrown beside spinners"); });
}
int report_closed_channel() {
  return report_of([] {
    gofer::chan<int> c(1);
    c.close();
    c.send(1);
  });
}
int report_unlock() {
  return report_of([] {
    gofer::mutex m;
    m.unlock();
  });
}
int report_wait_group() {
  return report_of([] {
    gofer::wait_group wg;
    wg.done();
  });
}
[[gnu::noinline]] int recurse(int n) {
  volatile char frame[1000];
  frame[0] = static_cast<char>(n);
  return n < 0 ? 0 : recurse(n + 1) + frame[0];
}
int report_overflow() {
  return report_of([] { std::printf("%d", recurse(0)); });
}
int report_threads() {
  gofer::run([] {
    start_paused(spin_in_malloc);
    gofer::set_max_threads(30);
    for (int i = 0; i < 100; ++i) {
      gofer::go([] { gofer::blocking([] { usleep(10'000'000); }); });
    }
    gofer::sleep_for(1h);
  });
  return 0;
}

// Nothing can wake main any more, but that is certain only when the last of the others has ended:
// one computes, some are paused, one blocks its thread.
int deadlock_beside() {
  gofer::run([] {
    const auto end = std::chrono::steady_clock::now() + 400ms;
    for (int i = 0; i < gofer::gomaxprocs(0) + 2; ++i) {
      gofer::go([=] {
        while (std::chrono::steady_clock::now() < end) {
        }
        say("computed");
      });
    }
    gofer::go([] {
      usleep(700'000);
      say("slept");
    });
    gofer::chan<int>(0).recv();
  });
  return 0;
}

// ---- SIGURG of the user

std::atomic<int> user_signals{0};
void on_user_signal(int) { ++user_signals; }
void on_user_siginfo(int, siginfo_t* info, void*) {
  if (info->si_pid == getpid()) ++user_signals;
}

void wait_for_signal(int before) {
  require(wait_until([=] { return user_signals > before; }, 10s), "the user's handler was called");
}

// To one thread: the kernel merges it with one of the runtime's that has not arrived there yet.
void send_to(int tid) {
  const int before = user_signals;
  require(wait_until(
              [=] {
                gofer::internal::os::raw_syscall(SYS_tgkill, getpid(), tid, SIGURG);
                return user_signals > before;
              },
              10s),
          "the user's handler was called");
}

// To the process, as the kernel itself sends it: none is lost.
void send_to_process() {
  for (int i = 0; i < 200; ++i) {
    const int before = user_signals;
    require(kill(getpid(), SIGURG) == 0, "kill");
    wait_for_signal(before);
  }
}

void check_user_signals() {
  raise(SIGURG);
  require(user_signals == 1, "raised before the start");
  gofer::run([] {
    raise(SIGURG);
    require(user_signals == 2, "raised in a goroutine");
    std::atomic<int> tid{0};
    std::atomic<bool> stop{false};
    gofer::wait_group wg;
    wg.go([&] {
      tid = gofer::internal::os::thread_id();
      while (!stop) asm volatile("");
    });
    require(wait_until([&] { return tid != 0; }), "the goroutine runs");
    send_to(tid);
    send_to_process();
    std::thread sleeper([&] {
      tid = gofer::internal::os::thread_id();
      while (!stop) usleep(1000);
    });
    send_to(tid);
    stop = true;
    sleeper.join();
    wg.wait();
  });
}

int user_handler() {
  signal(SIGURG, on_user_signal);
  check_user_signals();
  say("chained");
  return 0;
}

int user_siginfo_handler() {
  struct sigaction action {};
  action.sa_sigaction = on_user_siginfo;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGURG, &action, nullptr);
  check_user_signals();
  say("chained");
  return 0;
}

// The runtime's own signals are none of the user's business.
int own_signals() {
  signal(SIGURG, on_user_signal);
  start_paused(spin);
  const uint64_t before = preemption.paused.load();
  require(wait_until([&] { return preemption.paused.load() > before + 50; }), "more pauses");
  std::printf("user's: %d\n", user_signals.load());
  return 0;
}

// The same when a signal is sent again before the last one has arrived.
int own_signals_repeated() {
  signal(SIGURG, on_user_signal);
  start_paused(spin);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  for (int i = 0; i < 200'000 && std::chrono::steady_clock::now() < end; ++i) {
    for (uint32_t id = 1;; ++id) {
      gofer::internal::M* m = m_table[id].load();
      if (m == nullptr) break;
      if (m->tid != 0) gofer::internal::signal_m(m);
    }
    if (user_signals != 0) break;
  }
  std::printf("user's: %d\n", user_signals.load());
  return 0;
}

int user_ignores() {
  signal(SIGURG, SIG_IGN);
  gofer::run([] {
    for (int i = 0; i < 100; ++i) raise(SIGURG);
    start_paused(spin);
  });
  say("ignored");
  return 0;
}

// The thread that starts the runtime has SIGURG blocked, as in a program that waits for signals in
// one thread.
int blocked_in_starter() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  gofer::run([] { start_paused(spin); });
  say("paused");
  return 0;
}

// ---- the start

// A timer is due while the last P is on its way to a thread that is only being started.
int timer_at_start() {
  gofer::run([] {
    for (int i = 0; i < 40; ++i) {
      gofer::go([=] {
        gofer::sleep_for(std::chrono::microseconds(50 + i * 20));
        const auto end = std::chrono::steady_clock::now() + 3ms;
        while (std::chrono::steady_clock::now() < end) {
        }
      });
    }
    for (int i = 0; i < 8; ++i) {
      gofer::go([] {
        const auto end = std::chrono::steady_clock::now() + 5ms;
        while (std::chrono::steady_clock::now() < end) {
        }
      });
      const auto end = std::chrono::steady_clock::now() + 300us;
      while (std::chrono::steady_clock::now() < end) {
      }
    }
  });
  say("done");
  return 0;
}

// A child process stops this one again and again, in the middle of whatever it does.
int stopped_and_continued() {
  constexpr int stops = 30;
  return gofer::run([] {
    for (int i = 0; i < 3; ++i) gofer::go(spin);
    const pid_t stopped = getpid();
    const pid_t child = fork();
    if (child == 0) {
      for (int i = 0; i < stops; ++i) {
        kill(stopped, SIGSTOP);
        usleep(5000 + 700 * i);
        kill(stopped, SIGCONT);
        usleep(1000 + 500 * i);
      }
      _exit(0);
    }
    int woken = 0;
    int status = 0;
    for (; waitpid(child, &status, WNOHANG) == 0; ++woken) gofer::sleep_for(500us);
    gofer::sleep_for(1ms);
    say(woken >= 5 ? "went on" : "hardly went on");
    return status;
  });
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(argc, argv,
                      {{"got_scheduled", got_scheduled},
                       {"got_scheduled_by_yield", got_scheduled_by_yield},
                       {"return_spinning", return_spinning},
                       {"return_in_malloc", return_in_malloc},
                       {"return_with_mutex", return_with_mutex},
                       {"return_with_mutex_late", return_with_mutex_late},
                       {"return_with_stdout", return_with_stdout},
                       {"return_with_tied", return_with_tied},
                       {"exit_spinning", exit_spinning},
                       {"exit_in_malloc", exit_in_malloc},
                       {"exit_with_mutex", exit_with_mutex},
                       {"exit_with_stdout", exit_with_stdout},
                       {"fork_in_malloc", fork_in_malloc},
                       {"report_exception", report_exception},
                       {"report_closed_channel", report_closed_channel},
                       {"report_unlock", report_unlock},
                       {"report_wait_group", report_wait_group},
                       {"report_overflow", report_overflow},
                       {"report_threads", report_threads},
                       {"deadlock_beside", deadlock_beside},
                       {"user_handler", user_handler},
                       {"user_siginfo_handler", user_siginfo_handler},
                       {"own_signals", own_signals},
                       {"own_signals_repeated", own_signals_repeated},
                       {"user_ignores", user_ignores},
                       {"blocked_in_starter", blocked_in_starter},
                       {"timer_at_start", timer_at_start},
                       {"stopped_and_continued", stopped_and_continued}});
}
