// Programs that are sent signals.
#include <gofer/gofer.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

#include "../support/scaled.h"
#include "../support/send_signal.h"
#include "scenarios.h"

namespace {

using namespace gofer::test;
using namespace std::chrono_literals;

int first_of_all() {
  const gofer::chan<int> c(1);
  gofer::signal_notify(c, {SIGTERM});
  raise(SIGTERM);
  require(c.recv_for(60s) == SIGTERM, "received");
  return 0;
}

int server() {
  const int number = std::strcmp(scenario_argument, "INT") == 0 ? SIGINT : SIGTERM;
  return gofer::run([number] {
    gofer::chan<int>(1).send(0);  // the runtime's threads are there
    const auto [ctx, stop] = gofer::notify_context(gofer::background(), {SIGINT, SIGTERM});
    const auto l = gofer::net::listen("127.0.0.1:0");
    gofer::go([number, at = l.local_address().to_string()] {
      const gofer::net::conn c = gofer::net::dial(at);
      c.write_all("x");
      char byte = 0;
      c.read_full({&byte, 1});
      send_signal(number);
      (void)c.read({&byte, 1});
    });
    gofer::net::serve(ctx, l,
                      [](const gofer::net::conn& c, const gofer::context& handling) {
                        char byte;
                        std::error_code ec;
                        while (c.read(gofer::net::serving(handling), {&byte, 1}, ec) != 0) {
                          c.write_all({&byte, 1});
                        }
                      },
                      {.grace = 60s});
    say("served and ended");
    return 0;
  });
}

int default_is_back() {
  gofer::run([] {
    const gofer::chan<int> c(1);
    gofer::signal_notify(c, {SIGTERM});
    send_signal(SIGTERM);
    c.recv();
    say("once");
    gofer::signal_stop(c);
    send_signal(SIGTERM);
    gofer::sleep_for(60s);
  });
  return 0;
}

int ignored() {
  signal(SIGHUP, SIG_IGN);
  return gofer::run([] {
    const gofer::chan<int> c(1);
    gofer::signal_notify(c, {SIGHUP});
    send_signal(SIGHUP);
    require(c.recv_for(60s) == SIGHUP, "received");
    gofer::signal_stop(c);
    raise(SIGHUP);
    return 0;
  });
}

// Nothing else can happen than the signal, which another process sends.
int waits() {
  const pid_t parent = getpid();
  if (fork() == 0) {
    std::this_thread::sleep_for(500ms);  // four looks of the detector
    kill(parent, SIGUSR1);
    _exit(0);
  }
  return gofer::run([] {
    const gofer::chan<int> c(1);
    gofer::signal_notify(c, {SIGUSR1});
    require(c.recv() == SIGUSR1, "received");
    say("has come");
    return 0;
  });
}

int stopped() {
  gofer::run([] {
    const gofer::chan<int> c(1);
    gofer::signal_notify(c, {SIGUSR1});
    gofer::signal_stop(c);
    c.recv();
  });
  return 0;
}

// The program closes all descriptors that it does not know, with the runtime's among them.
// "reused": other files have their numbers then. The digit is how many files are open before the
// runtime's, so that one of those gets the number of another when they are opened again.
int closed_descriptors() {
  const std::string_view argument = scenario_argument;
  const bool reused = argument.starts_with("reused");
  for (int k = argument.back() - '0'; k > 0; --k) require(memfd_create("file", 0) >= 0, "a file");
  return gofer::run([reused] {
    const gofer::chan<int> c(1);
    gofer::signal_notify(c, {SIGTERM});
    for (int i = 0; i < 3; ++i) {
      send_signal(SIGTERM);
      require(c.recv_for(60s) == SIGTERM, "received");
      require(syscall(SYS_close_range, 3, ~0u, 0) == 0, "close_range");
      if (reused) {
        for (int k = 0; k < 8; ++k) require(memfd_create("file", 0) >= 0, "a file");
      }
      // The netpoller notices at the next wait.
      bool received = false;
      for (int k = 0; k < 60'000 && !received; ++k) {
        gofer::sleep_for(1ms);
        send_signal(SIGTERM);
        received = c.recv_for(1ms) == SIGTERM;
      }
      require(received, "received with a new reader");
    }
    say("received");
    gofer::signal_stop(c);
    send_signal(SIGTERM);
    gofer::sleep_for(60s);
    return 0;
  });
}

// The same while every thread of the runtime sleeps, so that nothing but the signal can tell.
int closed_while_all_sleep() {
  return gofer::run([] {
    const gofer::chan<int> c(1);
    gofer::signal_notify(c, {SIGTERM});
    std::thread closer([] {
      std::this_thread::sleep_for(200ms);  // until they do, as a rule
      require(syscall(SYS_close_range, 3, ~0u, 0) == 0, "close_range");
      send_signal(SIGTERM);
    });
    require(c.recv() == SIGTERM, "received");
    gofer::blocking([&] { closer.join(); });
    return 0;
  });
}

// The child has the handlers of its parent, and no receiver. The argument chooses what a
// signal does there.
int forked() {
  const bool ignores = std::strcmp(scenario_argument, "ignores") == 0;
  if (ignores) signal(SIGTERM, SIG_IGN);
  const gofer::chan<int> c(1);
  gofer::signal_notify(c, {SIGTERM});
  const pid_t child = fork();
  if (child == 0) {
    raise(SIGTERM);
    _exit(7);
  }
  int status = 0;
  require(waitpid(child, &status, 0) == child, "waitpid");
  if (ignores) {
    require(WIFEXITED(status) && WEXITSTATUS(status) == 7, "ignored");
  } else {
    require(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "ended by the signal");
  }
  send_signal(SIGTERM);
  require(c.recv_for(60s) == SIGTERM, "received in the parent");
  return 0;
}

// In a function of its own: compilers keep the address of errno, and a goroutine may go on in
// another thread.
[[gnu::noinline]] int count_changes_of_errno(int value) {
  int changes = 0;
  errno = value;
  for (int k = 0; k < 20'000; ++k) {
    asm volatile("" ::: "memory");
    if (errno != value) ++changes;
  }
  return changes;
}

// Goroutines that compute, block, allocate and talk while every thread is hit.
int storm() {
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0};
  std::atomic<int> received{0};
  const gofer::chan<int> c(1);
  gofer::signal_notify(c, {SIGUSR1, SIGUSR2});
  gofer::wait_group work;
  for (int i = 0; i < 8; ++i) {
    work.go([&, i] {
      const gofer::chan<int> talk(0);
      while (!over) {
        if (i % 2 == 0) {
          gofer::wait_group wg;
          wg.go([&] { talk.send(i); });
          if (talk.recv() != i) ++wrong;
          wg.wait();
        } else {
          wrong += count_changes_of_errno(i);
          gofer::yield();  // under TSan goroutines that compute are not preempted
        }
      }
    });
  }
  work.go([&] {
    for (const int number : c) {
      if (number != SIGUSR1 && number != SIGUSR2) ++wrong;
      ++received;
    }
  });
  for (int i = 0; i < scaled(3000); ++i) {
    send_signal(i % 2 == 0 ? SIGUSR1 : SIGUSR2);
    if (i % 100 == 0) std::this_thread::sleep_for(1ms);
  }
  gofer::signal_stop(c);
  c.close();
  over = true;
  work.wait();
  require(wrong == 0, "nothing was disturbed");
  require(received > 0, "some have come");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(argc, argv,
                      {{"first_of_all", first_of_all},
                       {"server", server},
                       {"default_is_back", default_is_back},
                       {"ignored", ignored},
                       {"waits", waits},
                       {"stopped", stopped},
                       {"closed_descriptors", closed_descriptors},
                       {"closed_while_all_sleep", closed_while_all_sleep},
                       {"forked", forked},
                       {"storm", storm}});
}
