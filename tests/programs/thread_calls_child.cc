// Goroutines that change their threads by calls of libc, and threads that are changed from outside.
#include <gofer/gofer.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <string>
#include <thread>

#include "../support/wait_until.h"
#include "scenarios.h"

namespace {

using namespace gofer::test;

// ---- Signal masks

bool is_blocked(int signal) {
  sigset_t now;
  pthread_sigmask(SIG_BLOCK, nullptr, &now);
  return sigismember(&now, signal) == 1;
}

sigset_t set_of(int signal) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  sigaddset(&set, SIGURG);
  return set;
}

// How many of so many goroutines, started one after the other, have it blocked.
int count_blocked(int signal) {
  std::atomic<int> blocked{0};
  for (int i = 0; i < 200; ++i) {
    gofer::wait_group one;
    one.go([&] { blocked += is_blocked(signal) ? 1 : 0; });
    one.wait();
  }
  return blocked;
}

int mask_ends_with_goroutine() {
  return gofer::run([] {
    gofer::wait_group one;
    one.go([] {
      const sigset_t set = set_of(SIGTERM);
      require(pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0, "pthread_sigmask");
    });
    one.go([] {
      const sigset_t set = set_of(SIGHUP);
      require(sigprocmask(SIG_BLOCK, &set, nullptr) == 0, "sigprocmask");
    });
    for (int i = 0; i < 50; ++i) {
      one.go([] {
        const sigset_t set = set_of(SIGUSR1);
        require(pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0, "pthread_sigmask");
        gofer::unlock_os_thread();  // one too many
        gofer::yield();
      });
    }
    one.wait();
    std::printf("SIGTERM=%d SIGHUP=%d SIGUSR1=%d SIGURG=%d\n", count_blocked(SIGTERM),
                count_blocked(SIGHUP), count_blocked(SIGUSR1), count_blocked(SIGURG));
    return 0;
  });
}

// It parks with the mask, and others run meanwhile.
int mask_belongs_to_goroutine() {
  return gofer::run([] {
    gofer::chan<int> go_on(0);
    gofer::wait_group one;
    std::atomic<bool> parks{false};
    one.go([&, go_on] {
      const sigset_t set = set_of(SIGTERM);
      pthread_sigmask(SIG_BLOCK, &set, nullptr);
      const pid_t thread = gettid();
      parks = true;
      go_on.recv();
      std::printf("own=%d moved=%d\n", is_blocked(SIGTERM) ? 1 : 0, gettid() != thread ? 1 : 0);
      pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    });
    while (!parks) gofer::yield();
    std::printf("others=%d\n", count_blocked(SIGTERM));
    go_on.send(1);
    one.wait();
    std::printf("later=%d\n", count_blocked(SIGTERM));
    return 0;
  });
}

// Once it is as usual again, the goroutine is bound no more: its thread does not end with it.
int mask_that_is_restored_binds_nobody() {
  return gofer::run([] {
    for (int i = 0; i < 1000; ++i) {
      gofer::wait_group one;
      one.go([] {
        sigset_t before;
        const sigset_t set = set_of(SIGTERM);
        pthread_sigmask(SIG_BLOCK, &set, &before);
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
      });
      one.wait();
    }
    std::printf("threads=%s\n", gofer::stats().threads < 20 ? "few" : "many");
    return 0;
  });
}

// ---- Signal stacks

size_t signal_stack_size() {
  stack_t now;
  require(sigaltstack(nullptr, &now) == 0, "sigaltstack");
  return (now.ss_flags & SS_DISABLE) != 0 ? 0 : now.ss_size;
}

[[gnu::noinline]] int recurse(int n) {  // NOLINT(misc-no-recursion)
  volatile char frame[1024];
  frame[0] = static_cast<char>(n);
  return n == INT_MAX ? 0 : recurse(n + 1) + frame[0];
}

int small_signal_stack() {
  return gofer::run([] {
    const size_t usual = signal_stack_size();
    alignas(16) char memory[4096];
    stack_t small{};
    small.ss_sp = memory;
    small.ss_size = sizeof memory;
    require(sigaltstack(&small, nullptr) == 0, "sigaltstack");
    std::printf("kept=%d\n", signal_stack_size() == usual ? 1 : 0);
    std::fflush(stdout);
    return recurse(0);
  });
}

constexpr int autodisarm = 1 << 31;  // SS_AUTODISARM, which libc's headers do not have

stack_t stack_of(char* memory, size_t size, int flags) {
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = size;
  stack.ss_flags = flags;
  return stack;
}

constexpr int signal_stack_flags[] = {0,
                                      SS_ONSTACK,
                                      SS_DISABLE,
                                      SS_ONSTACK | SS_DISABLE,
                                      autodisarm,
                                      SS_ONSTACK | autodisarm,
                                      SS_DISABLE | autodisarm,
                                      4};
constexpr size_t signal_stack_sizes[] = {0, 256, 256 * 1024};

// The answers to all of them, in order: 0, or what errno says. The thread has no such stack then.
std::string answers_for_signal_stacks(char* memory) {
  std::string answers;
  for (const int flags : signal_stack_flags) {
    for (const size_t size : signal_stack_sizes) {
      const stack_t stack = stack_of(memory, size, flags);
      answers += std::to_string(sigaltstack(&stack, nullptr) == 0 ? 0 : errno) + " ";
    }
  }
  return answers;
}

// A goroutine gets the answers that a thread of the program gets.
int answers_for_signal_stack() {
  static char memory[256 * 1024];
  std::string of_kernel;
  std::thread([&] { of_kernel = answers_for_signal_stacks(memory); }).join();
  return gofer::run([&] {
    const size_t usual = signal_stack_size();
    const std::string of_goroutine = answers_for_signal_stacks(memory);
    std::printf("kernel:    %s\ngoroutine: %s\nsame=%d kept=%d\n", of_kernel.c_str(),
                of_goroutine.c_str(), of_kernel == of_goroutine ? 1 : 0,
                signal_stack_size() == usual ? 1 : 0);
    return 0;
  });
}

int bound_signal_stack() {
  return gofer::run([] {
    gofer::lock_os_thread();
    static char memory[256 * 1024];
    stack_t large{};
    large.ss_sp = memory;
    large.ss_size = sizeof memory;
    require(sigaltstack(&large, nullptr) == 0, "sigaltstack");
    std::printf("taken=%d\n", signal_stack_size() == sizeof memory ? 1 : 0);
    return 0;
  });
}

// ---- Ends of threads

// They do not wait for the group: the goroutine leaves it before its thread ends.
int pthread_exit_in_goroutine() {
  return gofer::run([] {
    gofer::wait_group one;
    one.go([] { pthread_exit(nullptr); });
    gofer::sleep_for(std::chrono::seconds(60));
    return 0;
  });
}

int cancelled_goroutine() {
  return gofer::run([] {
    std::atomic<pthread_t> thread{};
    gofer::wait_group one;
    one.go([&] {
      thread = pthread_self();
      for (;;) pause();
    });
    while (thread.load() == pthread_t{}) gofer::yield();
    pthread_cancel(thread);
    gofer::sleep_for(std::chrono::seconds(60));
    return 0;
  });
}

// The wait is no cancellation point: the thread gets its value, and ends at the next point.
int cancelled_thread() {
  gofer::chan<int> values(0);
  struct Shared {
    gofer::chan<int> values;
    std::atomic<bool> waits{false};
    std::atomic<int> got{0};
    std::atomic<bool> went_on{false};
  } shared{values};
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void* arg) -> void* {
        auto* s = static_cast<Shared*>(arg);
        s->waits = true;
        if (auto v = s->values.recv()) s->got = *v;
        pthread_testcancel();
        s->went_on = true;
        return nullptr;
      },
      &shared);
  require(wait_until([&] { return shared.waits.load(); }), "the thread waits");
  usleep(20'000);
  pthread_cancel(thread);
  values.send(7);
  void* result = nullptr;
  pthread_join(thread, &result);
  std::printf("got=%d cancelled=%d went_on=%d\n", shared.got.load(),
              result == PTHREAD_CANCELED ? 1 : 0, shared.went_on ? 1 : 0);
  return 0;
}

// ---- What children inherit

std::string name_of_thread() {
  char name[17] = "";
  prctl(PR_GET_NAME, name);
  return name;
}

void print_inherited(const char* by) {
  std::printf("%s=%d %s_name=%s\n", by, prctl(PR_GET_TIMERSLACK), by, name_of_thread().c_str());
}

extern "C" char** environ;

int children() {
  std::printf("usual=%d\n", prctl(PR_GET_TIMERSLACK));
  std::fflush(stdout);
  return gofer::run([] {
    gofer::sleep_for(std::chrono::milliseconds(5));  // the M has slept for a timer
    print_inherited("goroutine");
    std::thread([] { print_inherited("thread"); }).join();
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      char line[64];
      const int n = snprintf(line, sizeof line, "fork=%d fork_name=%s\n", prctl(PR_GET_TIMERSLACK),
                             name_of_thread().c_str());
      _exit(write(STDOUT_FILENO, line, static_cast<size_t>(n)) == n ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    char self[] = "/proc/self/exe";
    char scenario[] = "print_slack";
    char* argv[] = {self, scenario, nullptr};
    pid_t spawned = 0;
    posix_spawn(&spawned, self, nullptr, nullptr, argv, environ);
    waitpid(spawned, &status, 0);
    return 0;
  });
}

int print_slack() {
  std::printf("spawned=%d\n", prctl(PR_GET_TIMERSLACK));
  return 0;
}

// ---- Small stacks

int first_call_on_small_stack() {
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  require(pthread_attr_setstacksize(&attr, static_cast<size_t>(PTHREAD_STACK_MIN)) == 0, "stack");
  pthread_t thread;
  require(pthread_create(
              &thread, &attr,
              [](void*) -> void* {
                gofer::chan<int> c(0);
                gofer::go([c] { c.send(7); });
                return reinterpret_cast<void*>(static_cast<intptr_t>(c.recv().value_or(0)));
              },
              nullptr) == 0,
          "pthread_create");
  void* result = nullptr;
  pthread_join(thread, &result);
  std::printf("got=%d\n", static_cast<int>(reinterpret_cast<intptr_t>(result)));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(argc, argv,
                      {{"mask_ends_with_goroutine", mask_ends_with_goroutine},
                       {"mask_belongs_to_goroutine", mask_belongs_to_goroutine},
                       {"mask_that_is_restored_binds_nobody", mask_that_is_restored_binds_nobody},
                       {"small_signal_stack", small_signal_stack},
                       {"answers_for_signal_stack", answers_for_signal_stack},
                       {"bound_signal_stack", bound_signal_stack},
                       {"pthread_exit_in_goroutine", pthread_exit_in_goroutine},
                       {"cancelled_goroutine", cancelled_goroutine},
                       {"cancelled_thread", cancelled_thread},
                       {"children", children},
                       {"print_slack", print_slack},
                       {"first_call_on_small_stack", first_call_on_small_stack}});
}
