// Programs that fork, in goroutines and in foreign threads. The child of the fork says nothing on
// stdout unless the scenario wants it to; the parent says how it ended.
#include <gofer/gofer.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#include "../support/wait_until.h"
#include "scenarios.h"

extern char** environ;

namespace {

using namespace gofer::test;

struct Static {
  ~Static() { say("static destroyed"); }
};
Static object;

void report(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status)) std::printf("fork exited %d\n", WEXITSTATUS(status));
  if (WIFSIGNALED(status)) std::printf("fork killed %d\n", WTERMSIG(status));
  std::fflush(stdout);
}

// The parent is unharmed: its goroutines still run, on all Ps.
void check_parent() {
  std::atomic<int> ran{0};
  gofer::wait_group wg;
  for (int i = 0; i < 200; ++i) {
    wg.go([&] {
      gofer::yield();
      ++ran;
    });
  }
  wg.wait();
  require(ran == 200, "goroutines run in the parent");
  say("parent unharmed");
}

pid_t checked_fork() {
  std::fflush(stdout);
  const pid_t pid = fork();
  require(pid >= 0, "fork");
  return pid;
}

// Runs `child` in a fork that a goroutine made, beside others at work.
int fork_in_goroutine(void (*child)()) {
  std::atomic<bool> stop{false};
  gofer::wait_group busy;
  for (int i = 0; i < 4; ++i) {
    busy.go([&] {
      while (!stop) {
        free(malloc(100));
        gofer::yield();
      }
    });
  }
  gofer::wait_group forked;
  forked.add(1);
  gofer::go([&] {
    const pid_t pid = checked_fork();
    if (pid == 0) {
      child();
      return;  // from the goroutine's function
    }
    report(pid);
    forked.done();
  });
  forked.wait();
  stop = true;
  busy.wait();
  check_parent();
  return 0;
}

int fork_in_thread(void (*child)()) {
  gofer::wait_group wg;
  for (int i = 0; i < 10; ++i) wg.go([] { gofer::yield(); });
  wg.wait();
  std::thread([child] {
    const pid_t pid = checked_fork();
    if (pid == 0) {
      child();
      _exit(50);
    }
    report(pid);
  }).join();
  check_parent();
  return 0;
}

void exec_true() {
  execl("/bin/sh", "sh", "-c", "echo from exec; exit 11", static_cast<char*>(nullptr));
  _exit(51);
}

void use_go() {
  gofer::go([] {});
}

void use_yield() { gofer::yield(); }

void use_wait() {
  gofer::wait_group wg;
  wg.add(1);
  wg.wait();
}

void use_run() {
  gofer::run([] {});
}

void use_gomaxprocs() { gofer::gomaxprocs(3); }

void do_nothing() {}

void call_goexit() { gofer::goexit(); }

void call_exit() { std::exit(12); }

void call_exit_at_once() { _exit(13); }

void throw_exception() { throw std::runtime_error("in the child of a fork"); }

// wait_group::go calls done() when the function returns.
int wait_group_go_returns() {
  gofer::wait_group wg;
  pid_t pid = 0;
  wg.go([&] { pid = checked_fork(); });
  wg.wait();
  report(pid);
  check_parent();
  return 0;
}

// Nothing of the runtime was there: the child may start its own.
int before_start() {
  const pid_t pid = checked_fork();
  gofer::wait_group wg;
  std::atomic<int> ran{0};
  for (int i = 0; i < 100; ++i) wg.go([&] { ++ran; });
  wg.wait();
  require(ran == 100, "goroutines run on both sides");
  if (pid == 0) _exit(14);
  report(pid);
  return 0;
}

int fork_twice() {
  return fork_in_goroutine([] {
    const pid_t pid = checked_fork();
    if (pid == 0) exec_true();
    report(pid);
    _exit(15);
  });
}

// Beside goroutines that do everything the runtime can.
int many() {
  std::atomic<bool> stop{false};
  gofer::wait_group busy;
  for (int i = 0; i < 8; ++i) {
    busy.go([&] {
      while (!stop) {
        gofer::wait_group wg;
        for (int j = 0; j < 10; ++j) wg.go([] { gofer::yield(); });
        wg.wait();
      }
    });
  }
  std::atomic<int> good{0};
  gofer::wait_group forks;
  for (int i = 0; i < 20; ++i) {
    forks.go([&] {
      const pid_t pid = checked_fork();
      if (pid == 0) _exit(16);
      int status = 0;
      while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
      if (WIFEXITED(status) && WEXITSTATUS(status) == 16) ++good;
    });
  }
  forks.wait();
  stop = true;
  busy.wait();
  std::printf("good: %d\n", good.load());
  check_parent();
  return 0;
}

int spawn_and_system() {
  gofer::wait_group wg;
  wg.go([] {
    std::fflush(stdout);
    const int status = std::system("echo from system; exit 17");
    std::printf("system: %d\n", WEXITSTATUS(status));
    std::fflush(stdout);
    const char* argv[] = {"sh", "-c", "echo from spawn; exit 18", nullptr};
    pid_t pid = 0;
    const int error =
        posix_spawn(&pid, "/bin/sh", nullptr, nullptr, const_cast<char**>(argv), environ);
    require(error == 0, "posix_spawn");
    report(pid);
  });
  wg.wait();
  check_parent();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(
      argc, argv,
      {{"goroutine_exec", [] { return fork_in_goroutine(exec_true); }},
       {"goroutine_go", [] { return fork_in_goroutine(use_go); }},
       {"goroutine_yield", [] { return fork_in_goroutine(use_yield); }},
       {"goroutine_wait", [] { return fork_in_goroutine(use_wait); }},
       {"goroutine_run", [] { return fork_in_goroutine(use_run); }},
       {"goroutine_gomaxprocs", [] { return fork_in_goroutine(use_gomaxprocs); }},
       {"goroutine_returns", [] { return fork_in_goroutine(do_nothing); }},
       {"goroutine_goexit", [] { return fork_in_goroutine(call_goexit); }},
       {"goroutine_exit", [] { return fork_in_goroutine(call_exit); }},
       {"goroutine_exit_at_once", [] { return fork_in_goroutine(call_exit_at_once); }},
       {"goroutine_throws", [] { return fork_in_goroutine(throw_exception); }},
       {"thread_exec", [] { return fork_in_thread(exec_true); }},
       {"thread_go", [] { return fork_in_thread(use_go); }},
       {"thread_wait", [] { return fork_in_thread(use_wait); }},
       {"thread_run", [] { return fork_in_thread(use_run); }},
       {"thread_gomaxprocs", [] { return fork_in_thread(use_gomaxprocs); }},
       {"thread_exit", [] { return fork_in_thread(call_exit); }},
       {"wait_group_go_returns", wait_group_go_returns},
       {"before_start", before_start},
       {"fork_twice", fork_twice},
       {"many", many},
       {"spawn_and_system", spawn_and_system}});
}
