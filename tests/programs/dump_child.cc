// Goroutines in every state, and dumps of them.
#include <gofer/gofer.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "../support/scaled.h"
#include "../support/wait_until.h"
#include "runtime/goroutines/g.h"
#include "runtime/sched/sched_lock.h"
#include "runtime/wait/coarse_clock.h"
#include "scenarios.h"

namespace {

using namespace gofer::test;
using namespace std::chrono_literals;

std::atomic<bool> stop{false};
std::atomic<int> ready{0};
int never[2];  // a pipe into which nobody writes

gofer::chan<int> silent(0);
gofer::chan<int> full(0);
gofer::mutex taken;
gofer::rw_mutex taken_rw;
gofer::semaphore none_left(0);
gofer::wait_group group;
gofer::mutex cond_lock;
gofer::cond cond;

int count_of(std::string_view text, std::string_view part) {
  int n = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// Each is one function, so that a trace names it; none is inlined or ends by a jump.
#define IN_STATE(name, ...)        \
  [[gnu::noinline]] void name() {  \
    ++ready;                       \
    __VA_ARGS__;                   \
    asm volatile("" ::: "memory"); \
  }

IN_STATE(receives, (void)silent.recv())
IN_STATE(sends, full.send(1))
IN_STATE(selects, gofer::select(gofer::on_recv(silent, [](int) {}), gofer::on_send(full, 1, [] {})))
IN_STATE(sleeps, gofer::sleep_for(1h))
IN_STATE(locks, taken.lock())
IN_STATE(reads_rw, taken_rw.lock_shared())
IN_STATE(writes_rw, taken_rw.lock())
IN_STATE(acquires, none_left.acquire())
IN_STATE(waits, group.wait())
IN_STATE(waits_for_cond, cond_lock.lock(); cond.wait(cond_lock))
IN_STATE(receives_nil, gofer::chan<int> nil; (void)nil.recv())
IN_STATE(bound_receives, gofer::lock_os_thread(); (void)silent.recv())
IN_STATE(yields, while (!stop) gofer::yield())
IN_STATE(spins, while (!stop.load(std::memory_order_relaxed)) asm volatile("" ::: "memory"))
IN_STATE(bound_spins, gofer::lock_os_thread();
         while (!stop.load(std::memory_order_relaxed)) asm volatile("" ::
                                                                        : "memory"))
IN_STATE(blocks_unannounced, char c; (void)!read(never[0], &c, 1))
IN_STATE(blocks_announced, gofer::blocking([] {
           char c;
           (void)!read(never[0], &c, 1);
         }))
IN_STATE(never_begins, )

IN_STATE(is_deaf, sigset_t all; sigfillset(&all); pthread_sigmask(SIG_SETMASK, &all, nullptr);
         char c; (void)!read(never[0], &c, 1))

[[gnu::noinline]] void start_all() {
  group.add(1);
  taken.lock();
  taken_rw.lock();
  gofer::go({.name = "receiver"}, receives);
  gofer::go({.name = "sender"}, sends);
  gofer::go({.name = "selector"}, selects);
  gofer::go({.name = "sleeper"}, sleeps);
  gofer::go({.name = "locker"}, locks);
  gofer::go({.name = "reader"}, reads_rw);
  gofer::go({.name = "writer"}, writes_rw);
  gofer::go({.name = "acquirer"}, acquires);
  gofer::go({.name = "waiter"}, waits);
  gofer::go({.name = "cond"}, waits_for_cond);
  gofer::go({.name = "nil"}, receives_nil);
  gofer::go({.name = "bound"}, bound_receives);
  gofer::go({.name = "yielder"}, yields);
  gofer::go({.name = "unannounced"}, blocks_unannounced);
  gofer::go({.name = "announced"}, blocks_announced);
  gofer::go({.name = "spinner"}, spins);
  gofer::go({.name = "bound spinner"}, bound_spins);
}

constexpr int in_states = 17;

// All have begun; and those that park have done so after some more time.
void wait_for_all(int n) {
  while (ready < n) gofer::sleep_for(1ms);
  gofer::sleep_for(100ms);
}

int states(bool with_deaf) {
  gofer::run([with_deaf] {
    start_all();
    if (with_deaf) gofer::go({.name = "deaf"}, is_deaf);
    wait_for_all(in_states + (with_deaf ? 1 : 0));
    gofer::go({.name = "fresh"}, never_begins);
    gofer::debug::dump(STDOUT_FILENO, {.group = gofer::debug::grouping::never});
    _exit(0);
  });
  return 1;
}

int all_states() { return states(true); }
// Without membarrier, a thread that blocks the signal and keeps its P stops the dump, too.
int heard_states() { return states(false); }

int one_spins() {
  gofer::run([] {
    gofer::go({.name = "spinner"}, spins);
    wait_for_all(1);
    gofer::debug::dump(STDOUT_FILENO);
    _exit(0);
  });
  return 1;
}

// So many that do the same, a few that do not, and how long a dump of all takes.
[[gnu::noinline]] void start_many(int n) {
  for (int i = 0; i < n; ++i) gofer::go(receives);
}

int many() {
  const int n = std::atoi(scenario_argument);
  gofer::run([n] {
    start_many(n);
    gofer::go({.name = "odd"}, sends);
    wait_for_all(n + 1);
    const auto begin = std::chrono::steady_clock::now();
    gofer::debug::dump(STDOUT_FILENO);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::fprintf(stderr, "seconds=%.3f\n", took.count());
    _exit(0);
  });
  return 1;
}

// ---- SIGQUIT

// The process gets the signal; any thread may take it.
void send_to_self(int number) { kill(getpid(), number); }

// Goroutines in all states, and main blocked in run().
int quit() {
  gofer::run([] {
    start_all();
    wait_for_all(in_states);
    send_to_self(SIGQUIT);
    (void)silent.recv();
  });
  return 1;
}

int quit_from_thread() {
  std::thread([] {
    require(wait_until([] { return ready == 1; }), "the goroutine runs");
    send_to_self(SIGQUIT);
  }).detach();
  gofer::run(receives);
  return 1;
}

std::atomic<int> handled{0};
void handle(int) { ++handled; }

void install(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigaction(SIGQUIT, &action, nullptr);
}

int quit_after(void (*before)(), void (*meanwhile)()) {
  before();
  gofer::run([meanwhile] {
    meanwhile();
    send_to_self(SIGQUIT);
    gofer::sleep_for(10ms);
  });
  std::printf("handled=%d\n", handled.load());
  return 0;
}

int quit_handled_before() {
  return quit_after([] { install(handle); }, [] {});
}
int quit_handled_later() {
  return quit_after([] {}, [] { install(handle); });
}
int quit_ignored() {
  return quit_after([] { install(SIG_IGN); }, [] {});
}
int quit_default_later() {
  return quit_after([] {}, [] { install(SIG_DFL); });
}

int quit_notified() {
  gofer::run([] {
    const gofer::chan<int> c(1);
    gofer::signal_notify(c, {SIGQUIT});
    send_to_self(SIGQUIT);
    require(c.recv() == SIGQUIT, "the signal comes through the channel");
  });
  say("notified");
  return 0;
}

// A thread that holds the scheduler's lock for ever: the world cannot be stopped.
int quit_stuck() {
  gofer::run([] {
    gofer::go({.name = "receiver"}, receives);
    wait_for_all(1);
    std::thread([] {
      gofer::internal::sched_lock.lock();
      send_to_self(SIGQUIT);
      pause();
    }).detach();
    (void)silent.recv();
  });
  return 1;
}

int quit_in_child() {
  gofer::run([] {
    const pid_t child = fork();
    if (child == 0) {
      raise(SIGQUIT);
      _exit(0);
    }
    int status = 0;
    require(waitpid(child, &status, 0) == child, "the child ends");
    std::printf("signal=%d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  });
  return 0;
}

// ---- dumpsignal

// What comes on stderr goes through a pipe, so that the program knows when a dump is complete.
int dump_signal() {
  int errors[2];
  require(pipe(errors) == 0 && dup2(errors[1], STDERR_FILENO) >= 0, "stderr is a pipe");
  gofer::run([from = errors[0]] {
    gofer::go({.name = "last"}, receives);
    wait_for_all(1);
    std::string seen;
    for (int dumps = 1; dumps <= 3; ++dumps) {
      send_to_self(SIGUSR2);
      while (count_of(seen, "created by ") < dumps) {
        char buffer[4096];
        const ssize_t n = read(from, buffer, sizeof buffer);
        require(n > 0, "the dump comes");
        seen.append(buffer, static_cast<std::size_t>(n));
      }
    }
    std::fputs(seen.c_str(), stdout);
  });
  return 0;
}

// ---- Since when

// As if all had parked twelve minutes ago, and the one of that name five.
void back_date() {
  gofer::internal::for_each_g(
      [](gofer::internal::G* g, void*) {
        if (g->status.load() != gofer::internal::GStatus::waiting) return;
        const bool some = g->name != nullptr && std::strcmp(g->name, "later") == 0;
        g->head->parked_at -= gofer::internal::coarse_time((some ? 5 : 12) * 60'000'000'000);
      },
      nullptr);
}

int since() {
  gofer::run([] {
    gofer::go(receives);
    gofer::go({.name = "later"}, receives);
    gofer::go(bound_receives);
    wait_for_all(3);
    back_date();
    gofer::debug::dump(STDOUT_FILENO);
    say("----");
    gofer::debug::dump(STDOUT_FILENO, {.group = gofer::debug::grouping::always});
    say("----");
    gofer::debug::dump(STDOUT_FILENO, {.waiting_for = 10min});
    _exit(0);
  });
  return 1;
}

// ---- Reports

int throws() {
  gofer::run([] {
    gofer::go({.name = "receiver"}, receives);
    gofer::go({.name = "spinner"}, spins);
    wait_for_all(2);
    throw std::runtime_error("thrown");
  });
  return 1;
}

[[gnu::noinline]] int overflow(int n) {
  volatile char frame[4096];
  frame[n % 4096] = 1;
  return n < 0 ? 0 : overflow(n + 1) + frame[0];
}

int overflows() {
  gofer::run([] {
    gofer::go({.name = "receiver"}, receives);
    wait_for_all(1);
    std::printf("%d\n", overflow(0));
  });
  return 1;
}

int deadlocks() {
  gofer::run([] {
    gofer::go({.name = "receiver"}, receives);
    (void)silent.recv();
  });
  return 1;
}

// ---- Under fire

[[gnu::noinline]] void allocates() {
  for (unsigned i = 0; !stop; ++i) {
    volatile char* const block = new char[16 + i % 100'000];
    block[0] = 1;
    delete[] block;
  }
}

[[gnu::noinline]] void polls() {
  while (!stop) {
    pollfd nothing{never[0], POLLIN, 0};
    require(poll(&nothing, 1, 1) == 0, "no call is seen to be interrupted");
  }
}

[[gnu::noinline]] void throws_and_catches() {
  while (!stop) {
    try {
      throw std::runtime_error("not for long");
    } catch (const std::exception&) {
    }
  }
}

[[gnu::noinline]] void passes_on(const gofer::chan<int>& from, const gofer::chan<int>& to) {
  while (!stop) {
    if (from.recv_for(1ms)) (void)to.send_for(1ms, 1);
    (void)to.send_for(1ms, 1);
  }
}

[[gnu::noinline]] void starts_others() {
  while (!stop) {
    gofer::wait_group some;
    for (int i = 0; i < 20; ++i) some.go({.name = "short"}, [] { gofer::yield(); });
    some.wait();
  }
}

// Whole dumps, each with what must be in it.
void dump_again_and_again(int times, std::atomic<int>& unanswered) {
  for (int i = 0; i < times; ++i) {
    std::ostringstream out;
    gofer::debug::dump(out, {.group = i % 2 == 0 ? gofer::debug::grouping::never
                                                 : gofer::debug::grouping::automatic});
    const std::string text = out.str();
    for (const char* name : {"spinner", "allocator", "poller", "thrower", "starter"}) {
      require(text.find(std::string(" \"") + name + "\" [") != std::string::npos, name);
    }
    unanswered += count_of(text, "does not answer");
  }
}

int fire() {
  const int times = scaled(std::atoi(scenario_argument));
  gofer::run([times] {
    gofer::wait_group all;
    const gofer::chan<int> a(0);
    const gofer::chan<int> b(0);
    for (int i = 0; i < 2; ++i) {
      all.go({.name = "spinner"}, spins);
      all.go({.name = "allocator"}, allocates);
      all.go({.name = "allocator"}, allocates);
      all.go({.name = "poller"}, polls);
      all.go({.name = "thrower"}, throws_and_catches);
      all.go([&] { passes_on(a, b); });
      all.go([&] { passes_on(b, a); });
      all.go({.name = "starter"}, starts_others);
    }
    require(wait_until([] { return ready == 2; }), "all run");
    std::atomic<int> unanswered{0};
    std::thread other([&] { dump_again_and_again(times, unanswered); });
    dump_again_and_again(times, unanswered);
    gofer::blocking([&] { other.join(); });
    stop = true;
    all.wait();
    std::printf("unanswered=%d\n", unanswered.load());
  });
  say("completed");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (pipe(never) != 0) return 1;
  return run_scenario(argc, argv,
                      {{"states", all_states},
                       {"heard_states", heard_states},
                       {"one_spins", one_spins},
                       {"many", many},
                       {"quit", quit},
                       {"quit_from_thread", quit_from_thread},
                       {"quit_handled_before", quit_handled_before},
                       {"quit_handled_later", quit_handled_later},
                       {"quit_ignored", quit_ignored},
                       {"quit_default_later", quit_default_later},
                       {"quit_notified", quit_notified},
                       {"quit_stuck", quit_stuck},
                       {"quit_in_child", quit_in_child},
                       {"dump_signal", dump_signal},
                       {"since", since},
                       {"throws", throws},
                       {"overflows", overflows},
                       {"deadlocks", deadlocks},
                       {"fire", fire}});
}
