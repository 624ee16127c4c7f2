// Programs that hold a lock of the C library across a park, and signal handlers that call Gofer.
#include <fcntl.h>
#include <gofer/gofer.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "../support/start_detached.h"
#include "scenarios.h"

namespace {

using namespace gofer::test;
using namespace std::chrono_literals;

[[gnu::noinline]] long thread_id() { return syscall(SYS_gettid); }

// Goroutines that lock, park and unlock, until one of them has been moved while it held the lock.
template <class Mutex>
int until_moved() {
  std::atomic<bool> moved{false};
  gofer::wait_group wg;
  for (int i = 0; i < 8; ++i) {
    wg.go([&] {
      Mutex own;
      while (!moved) {
        own.lock();
        const long before = thread_id();
        gofer::sleep_for(50us);
        if (thread_id() != before) moved = true;
        own.unlock();
      }
    });
  }
  wg.wait();
  say("moved");
  return 0;
}

int holds_mutex() { return until_moved<std::mutex>(); }
int holds_shared_mutex() { return until_moved<std::shared_mutex>(); }
int holds_gofer_mutex() { return until_moved<gofer::mutex>(); }

int holds_mutex_with_full_stderr() {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full < 0 || dup2(full, STDERR_FILENO) < 0) return 1;
  return holds_mutex();
}

// As malloc libraries do: their handlers lock before the fork and unlock on both sides.
std::mutex over_fork;

int unlocks_in_child_of_fork() {
  pthread_atfork([] { over_fork.lock(); }, [] { over_fork.unlock(); }, [] { over_fork.unlock(); });
  const pid_t child = fork();
  if (child == 0) {
    say("unlocked");
    _exit(0);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

// Locks of the C library, each released before its goroutine parks.
int releases() {
  std::mutex shared;
  gofer::wait_group wg;
  for (int i = 0; i < 8; ++i) {
    wg.go([&] {
      for (int k = 0; k < 200; ++k) {
        { std::lock_guard guard(shared); }
        gofer::sleep_for(20us);
      }
    });
  }
  wg.wait();
  say("released");
  return 0;
}

const gofer::chan<int>& room() {
  static const gofer::chan<int> c(1 << 20);
  return c;
}

void send_in_handler(int) { room().send(1); }

void install(int flags) {
  room();
  struct sigaction action {};
  action.sa_handler = send_in_handler;
  action.sa_flags = flags;
  sigaction(SIGUSR1, &action, nullptr);
}

int handler_on_signal_stack() {
  install(SA_ONSTACK);
  gofer::run([] { raise(SIGUSR1); });
  say("went on");
  return 0;
}

// Signals hit a goroutine that is in and out of the runtime, until one has hit it inside.
int handler_inside() {
  install(SA_RESTART);
  gofer::run([] {
    gofer::lock_os_thread();
    const pthread_t self = pthread_self();
    start_detached([self] {
      for (;;) {
        pthread_kill(self, SIGUSR1);
        std::this_thread::sleep_for(50us);
      }
    });
    const gofer::chan<int> c(1);
    const auto end = std::chrono::steady_clock::now() + 50s;
    while (std::chrono::steady_clock::now() < end) {
      for (int i = 0; i < 1000; ++i) {
        c.send(i);
        c.recv();
      }
      while (room().try_recv()) {
      }
    }
  });
  say("went on");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(argc, argv,
                      {{"holds_mutex", holds_mutex},
                       {"holds_mutex_with_full_stderr", holds_mutex_with_full_stderr},
                       {"unlocks_in_child_of_fork", unlocks_in_child_of_fork},
                       {"holds_shared_mutex", holds_shared_mutex},
                       {"holds_gofer_mutex", holds_gofer_mutex},
                       {"releases", releases},
                       {"handler_on_signal_stack", handler_on_signal_stack},
                       {"handler_inside", handler_inside}});
}
