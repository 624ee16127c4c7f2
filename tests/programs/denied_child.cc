// Programs from which system calls are taken away while they run. The second argument names the
// error and the calls: EPERM:membarrier,madvise.
#include <fcntl.h>
#include <gofer/gofer.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "../support/wait_until.h"
#include "os/thread_state.h"
#include "runtime/poll/netpoll.h"
#include "runtime/procs/current.h"
#include "runtime/sched/sched_lock.h"
#include "runtime/threads/idle.h"
#include "runtime/threads/threads.h"
#include "runtime/wait/waiter.h"
#include "runtime/watch/preempt.h"
#include "scenarios.h"
#include "seccomp.h"

namespace {

using namespace gofer::test;
using namespace std::chrono_literals;

struct Call {
  const char* name;
  long number;
};

// Those that the runtime makes.
constexpr Call all_calls[] = {
    {"accept4", SYS_accept4},
    {"clock_gettime", SYS_clock_gettime},
    {"clone", SYS_clone},
    {"clone3", SYS_clone3},
    {"epoll_create1", SYS_epoll_create1},
    {"epoll_ctl", SYS_epoll_ctl},
    {"epoll_pwait", SYS_epoll_pwait},
    {"epoll_pwait2", SYS_epoll_pwait2},
#ifdef SYS_epoll_wait
    {"epoll_wait", SYS_epoll_wait},
#endif
    {"eventfd2", SYS_eventfd2},
    {"futex", SYS_futex},
    {"getdents64", SYS_getdents64},
    {"getpid", SYS_getpid},
    {"getuid", SYS_getuid},
    {"madvise", SYS_madvise},
    {"membarrier", SYS_membarrier},
    {"mmap", SYS_mmap},
    {"mprotect", SYS_mprotect},
    {"munmap", SYS_munmap},
    {"nanosleep", SYS_nanosleep},
    {"openat", SYS_openat},
    {"prctl", SYS_prctl},
    {"process_madvise", SYS_process_madvise},
    {"process_vm_readv", SYS_process_vm_readv},
    {"rt_sigaction", SYS_rt_sigaction},
    {"rt_sigprocmask", SYS_rt_sigprocmask},
    {"rt_tgsigqueueinfo", SYS_rt_tgsigqueueinfo},
    {"sched_getaffinity", SYS_sched_getaffinity},
    {"sched_setattr", SYS_sched_setattr},
    {"sched_yield", SYS_sched_yield},
    {"sigaltstack", SYS_sigaltstack},
    {"tgkill", SYS_tgkill},
};

long number_of(std::string_view name) {
  for (const Call& call : all_calls) {
    if (name == call.name) return call.number;
  }
  std::fprintf(stderr, "unknown call: %s\n", std::string(name).c_str());
  std::_Exit(97);
}

void deny_argument() {
  std::string_view rest = scenario_argument;
  const std::size_t colon = rest.find(':');
  require(colon != std::string_view::npos, "an argument such as EPERM:futex");
  const std::string_view error = rest.substr(0, colon);
  rest.remove_prefix(colon + 1);
  std::vector<long> calls;
  while (!rest.empty()) {
    const std::size_t end = rest.find(',');
    calls.push_back(number_of(rest.substr(0, end)));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  require(deny(calls, error == "ENOSYS" ? ENOSYS : error == "EACCES" ? EACCES : EPERM), "seccomp");
}

// ---- What a program does

void talk() {
  gofer::chan<int> numbers(0);
  gofer::wait_group wg;
  for (int i = 0; i < 8; ++i) {
    wg.go([&] {
      for (int n = 0; n < 100; ++n) numbers.send(n);
    });
  }
  int sum = 0;
  for (int i = 0; i < 800; ++i) sum += numbers.recv().value();
  wg.wait();
  require(sum == 8 * 4950, "every number came");
}

void sleep_a_little() {
  gofer::wait_group wg;
  for (int i = 0; i < 20; ++i) {
    wg.go([=] { gofer::sleep_for(std::chrono::milliseconds(1 + i % 5)); });
  }
  wg.wait();
}

// As many compute as there are processors, until others have run.
void compute() {
  std::atomic<bool> stop{false};
  gofer::wait_group hogs;
  for (int i = 0; i < gofer::gomaxprocs(0); ++i) {
    hogs.go([&] {
      while (!stop) asm volatile("");
    });
  }
  gofer::yield();
  sleep_a_little();
  stop = true;
  hogs.wait();
}

// A call of which the runtime knows nothing.
void block() {
  int ends[2];
  require(pipe(ends) == 0, "pipe");
  gofer::wait_group readers;
  const int count = gofer::gomaxprocs(0);
  for (int i = 0; i < count; ++i) {
    readers.go([&] {
      char c = 0;
      require(read(ends[0], &c, 1) == 1, "the call was not disturbed");
    });
  }
  gofer::yield();
  sleep_a_little();
  for (int i = 0; i < count; ++i) require(write(ends[1], "x", 1) == 1, "write");
  readers.wait();
  close(ends[0]);
  close(ends[1]);
}

void grow_stacks() {
  gofer::wait_group gate;
  gofer::wait_group wg;
  gate.add(1);
  for (int i = 0; i < 300; ++i) {
    wg.go([&] {
      volatile char deep[32 * 1024];
      for (std::size_t at = 0; at < sizeof deep; at += 1024) deep[at] = 1;
      gate.wait();
    });
  }
  gate.done();
  wg.wait();
}

struct Pair {
  gofer::fd near;
  gofer::fd far;
};

int next_number = 100;

Pair make_pair_of_sockets() {
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
  for (int& end : ends) {  // to numbers that nothing has had before
    const int high = fcntl(end, F_DUPFD_CLOEXEC, next_number);
    require(high >= 0 && close(end) == 0, "fcntl");
    end = high;
  }
  return {gofer::fd(ends[0]), gofer::fd(ends[1])};
}

void echo(const Pair& pair) {
  gofer::wait_group wg;
  wg.go([&] {
    char c = 0;
    std::error_code ec;
    for (int i = 0; i < 20; ++i) {
      if (pair.far.read({&c, 1}, ec) != 1) return;
      pair.far.write_all({&c, 1}, ec);
    }
  });
  const auto wait = [&](auto*) { wg.wait(); };
  const std::unique_ptr<gofer::wait_group, decltype(wait)> ended(&wg, wait);
  char c = 'x';
  for (int i = 0; i < 20; ++i) {
    gofer::sleep_for(1ms);  // the other one waits
    pair.near.write_all({&c, 1});
    require(pair.near.read({&c, 1}) == 1 && c == 'x', "an echo");
  }
}

void communicate() { echo(make_pair_of_sockets()); }

void resize() {
  const int before = gofer::gomaxprocs(3);
  talk();
  gofer::gomaxprocs(1);
  talk();
  gofer::gomaxprocs(before);
}

void run_some_calls_at_once() {
  gofer::wait_group wg;
  for (int i = 0; i < 6; ++i) wg.go([] { gofer::blocking([] { usleep(2000); }); });
  wg.wait();
}

struct Part {
  const char* name;
  void (*run)();
};
constexpr Part parts[] = {{"talk", talk},          {"sleep", sleep_a_little},
                          {"stacks", grow_stacks}, {"calls", run_some_calls_at_once},
                          {"block", block},        {"compute", compute},
                          {"resize", resize}};

void do_all(const char* when) {
  for (const Part& part : parts) {
    part.run();
    std::printf("%s %s\n", when, part.name);
    std::fflush(stdout);
  }
}

int64_t processor_time_us() {
  rusage u{};
  require(getrusage(RUSAGE_SELF, &u) == 0, "getrusage");
  return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * int64_t{1'000'000} + u.ru_utime.tv_usec +
         u.ru_stime.tv_usec;
}

// All wait, and no thread burns a core meanwhile.
void be_idle() {
  gofer::sleep_for(50ms);
  const int64_t before = processor_time_us();
  gofer::sleep_for(250ms);
  const int64_t used = processor_time_us() - before;
  std::printf("idle: %s\n", used < 125'000 ? "yes" : "no");
  std::fflush(stdout);
}

void try_to_communicate() {
  try {
    communicate();
    say("after communicate");
  } catch (const std::system_error& e) {
    std::printf("communicate: %s (%d)\n", e.what(), e.code().value());
    std::fflush(stdout);
  }
}

// Everything has been used once when the calls are denied.
int later() {
  gofer::run([] {
    do_all("before");
    communicate();
    deny_argument();
    do_all("after");
    try_to_communicate();
    be_idle();
  });
  say("completed");
  return 0;
}

// The runtime starts without the calls.
int at_start() {
  deny_argument();
  gofer::run([] {
    try_to_communicate();
    do_all("after");
    be_idle();
  });
  say("completed");
  return 0;
}

// The runtime has been started, and nothing more.
int at_first_use() {
  gofer::run([] {
    deny_argument();
    try_to_communicate();
    do_all("after");
    be_idle();
  });
  say("completed");
  return 0;
}

// The same, with nothing that needs one more thread to go on.
int without_threads() {
  gofer::run([] {
    gofer::sleep_for(1ms);  // timers have their memory
    deny_argument();
    talk();
    sleep_a_little();
    grow_stacks();
    resize();
    be_idle();
  });
  say("completed");
  return 0;
}

// Descriptors are watched when the calls are denied.
int watched() {
  gofer::run([] {
    const Pair pair = make_pair_of_sockets();
    echo(pair);
    deny_argument();
    do_all("after");
    echo(pair);
    be_idle();
  });
  say("completed");
  return 0;
}

// A goroutine waits for a descriptor when the calls are denied.
int while_it_waits() {
  gofer::run([] {
    const Pair pair = make_pair_of_sockets();
    echo(pair);
    gofer::wait_group wg;
    wg.go([&] {
      char c = 0;
      std::error_code ec;
      (void)pair.far.read({&c, 1}, ec);
      std::printf("read: %s\n", ec ? ec.message().c_str() : c == 'x' ? "x" : "?");
      std::fflush(stdout);
    });
    gofer::sleep_for(20ms);
    deny_argument();
    gofer::sleep_for(20ms);
    char c = 'x';
    std::error_code ec;
    pair.near.write_all({&c, 1}, ec);
    wg.wait();
    do_all("after");
    be_idle();
  });
  say("completed");
  return 0;
}

// Threads wait for the first time when there is no memory for that.
int first_wait() {
  gofer::wait_group end;
  std::atomic<bool> runs{false};
  std::atomic<int> ready{0};
  std::atomic<bool> may_wait{false};
  end.add(1);
  gofer::go([&] {
    runs = true;
    while (gofer::internal::parked_threads.load() != 3) gofer::yield();
    end.done();
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      delete new std::string(100, 'x');  // libc has memory for the thread
      ++ready;
      while (!may_wait) std::this_thread::yield();
      end.wait();
    });
  }
  // A thread that starts without memory is ended by libc.
  const auto none_starts = [] {
    const gofer::internal::LockGuard guard(gofer::internal::sched_lock);
    return gofer::internal::threads.reserve_coming == 0 && gofer::internal::threads.unborn_ps == 0;
  };
  require(wait_until([&] { return runs && ready == 2 && none_starts(); }), "all run");
  deny_argument();
  may_wait = true;
  end.wait();
  for (std::thread& t : threads) t.join();
  say("completed");
  return 0;
}

// The program closes all descriptors, with the runtime's own among them, while a goroutine waits
// for one. "reused": other files have their numbers then. "at_once": the first thing that happens
// then is that a new instance is opened, while the poller sleeps in the old one.
int closed_descriptors() {
  gofer::run([] {
    const auto* pair = new Pair(make_pair_of_sockets());  // never closed: its numbers are others'
    echo(*pair);
    gofer::wait_group wg;
    wg.go([&] {
      char c = 0;
      std::error_code ec;
      (void)pair->far.read({&c, 1}, ec);
      require(ec.value() == EBADF, "the socket is gone");
    });
    gofer::sleep_for(20ms);
    require(syscall(SYS_close_range, 3, ~0u, 0) == 0, "close_range");
    std::vector<int> files;
    if (std::strcmp(scenario_argument, "reused") == 0) {
      for (int i = 0; i < 8; ++i) files.push_back(memfd_create("file", MFD_CLOEXEC));
    }
    if (std::strcmp(scenario_argument, "at_once") == 0) {
      next_number += 10;
      communicate();
    }
    do_all("after");
    for (int i = 0; i < 3; ++i) {
      next_number += 10;
      communicate();
    }
    wg.wait();
    be_idle();
    for (int file : files) {
      struct stat info;
      require(fstat(file, &info) == 0 && info.st_size == 0, "nobody has written to the file");
    }
  });
  say("completed");
  return 0;
}

// The numbers of open descriptors whose file the kernel names so.
std::vector<int> descriptors_named(const char* name) {
  std::vector<int> found;
  for (int fd = 3; fd < 100; ++fd) {
    const std::string link = "/proc/self/fd/" + std::to_string(fd);
    char target[64] = "";
    if (readlink(link.c_str(), target, sizeof target - 1) > 0 && std::strcmp(target, name) == 0) {
      found.push_back(fd);
    }
  }
  return found;
}

// A program's own event loop: an epoll instance, and two sockets of which one is watched.
struct OwnLoop {
  static constexpr uint64_t data = 7;
  int epoll;
  int watched;
  int far;

  // At the numbers of the runtime's descriptors, which are closed by that.
  OwnLoop(int queue, int bell) : epoll(queue), watched(bell) {
    int ends[2];
    require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
    far = ends[1];
    const int instance = epoll_create1(EPOLL_CLOEXEC);
    require(instance >= 0 && dup2(instance, queue) == queue && close(instance) == 0, "epoll");
    require(dup2(ends[0], bell) == bell && close(ends[0]) == 0, "the socket");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = data;
    require(epoll_ctl(queue, EPOLL_CTL_ADD, bell, &event) == 0, "epoll_ctl");
  }

  void be_ready() const { require(write(far, "x", 1) == 1, "write"); }

  // It gets its own event and no other.
  bool is_intact() const {
    epoll_event events[4];
    const int n = epoll_wait(epoll, events, 4, 0);
    return n == 1 && events[0].data.u64 == data && events[0].events == EPOLLIN;
  }
};

// The program closes the runtime's epoll instance, and has one of its own at that number before
// anybody looks. "rung": the poller is told something at once. "watched": a descriptor is made at
// once.
int own_instance() {
  gofer::run([] {
    const Pair pair = make_pair_of_sockets();
    echo(pair);
    gofer::wait_group wg;
    wg.go([&] {
      char c = 0;
      require(pair.far.read({&c, 1}) == 1, "read");
    });
    gofer::sleep_for(20ms);
    const std::vector<int> queues = descriptors_named("anon_inode:[eventpoll]");
    const std::vector<int> bells = descriptors_named("anon_inode:[eventfd]");
    require(queues.size() == 1 && bells.size() == 1, "the runtime has one of each");
    const OwnLoop loop(queues[0], bells[0]);
    if (std::strcmp(scenario_argument, "rung") == 0) {
      gofer::internal::netpoll_break(gofer::internal::current_m());
    }
    if (std::strcmp(scenario_argument, "watched") == 0) communicate();
    loop.be_ready();
    do_all("after");
    communicate();
    pair.near.write_all({"x", 1});
    wg.wait();
    be_idle();
    require(loop.is_intact(), "the program's own instance is as it was");
  });
  say("completed");
  return 0;
}

void set_most_descriptors(rlim_t most) {
  rlimit limit{};
  require(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
  limit.rlim_cur = most;
  require(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
}

// The program closes the runtime's descriptors while it may open none, and later it may again. Two
// sockets stay open.
int no_room_for_descriptors() {
  gofer::run([] {
    const Pair pair = make_pair_of_sockets();
    echo(pair);
    std::error_code ec;
    gofer::wait_group wg;
    wg.go([&] {
      char c = 0;
      (void)pair.far.read({&c, 1}, ec);
    });
    gofer::sleep_for(20ms);
    rlimit before{};
    require(getrlimit(RLIMIT_NOFILE, &before) == 0, "getrlimit");
    set_most_descriptors(3);
    require(syscall(SYS_close_range, 3, 99, 0) == 0, "close_range");
    wg.wait();
    std::printf("read: %s\n", ec.message().c_str());
    talk();
    sleep_a_little();
    set_most_descriptors(before.rlim_cur);
    next_number += 10;
    if (std::strcmp(scenario_argument, "new") == 0) communicate();
    echo(pair);
    next_number += 10;
    communicate();
    be_idle();
  });
  say("completed");
  return 0;
}

// The poller is told something, and the kernel has taken back the event that would end its sleep:
// so it is if the program closes the runtime's descriptors before the poller's thread gets a
// processor. Here it gets no event at all.
int lost_break() {
  using gofer::internal::idle_ms;
  using gofer::internal::threads;
  namespace os = gofer::internal::os;
  gofer::run([] {
    const Pair pair = make_pair_of_sockets();
    gofer::wait_group wg;
    wg.go([&] {
      char c = 0;
      require(pair.far.read({&c, 1}) == 1, "read");
    });
    gofer::internal::M* poller = nullptr;
    const auto sleeps = [&] {
      poller = idle_ms.poller.load();
      return poller != nullptr && poller->polls.load() &&
             os::thread_state(poller->tid.load()).doing == os::ThreadState::asleep;
    };
    for (int i = 0; i < 20; ++i) {
      require(wait_until(sleeps), "a thread polls");
      poller->note.signal();
      // Without a call of the runtime: a yield might wake the poller.
      const auto end = std::chrono::steady_clock::now() + 30s;
      while (poller->note.is_said() && std::chrono::steady_clock::now() < end) asm volatile("");
      require(!poller->note.is_said(), "the poller looks again");
    }
    pair.near.write_all({"x", 1});
    wg.wait();
  });
  say("completed");
  return 0;
}

// The kernel has no room for what comes with a signal.
void fill_signal_queue() {
  const rlimit none{0, 0};
  require(setrlimit(RLIMIT_SIGPENDING, &none) == 0, "setrlimit");
}

std::atomic<int> foreign_signals{0};

int full_signal_queue() {
  struct sigaction action {};
  action.sa_handler = [](int) { ++foreign_signals; };
  require(sigaction(SIGURG, &action, nullptr) == 0, "sigaction");
  gofer::run([] {
    fill_signal_queue();
    for (int i = 0; i < 5; ++i) compute();
    // Of two that follow each other closely the second may pass for a foreign one.
    const int passed_on = foreign_signals;
    const auto paused = gofer::internal::preemption.paused.load();
    require(static_cast<uint64_t>(passed_on) < paused, "the runtime's signals are its own");
    raise(SIGURG);
    require(foreign_signals > passed_on, "a signal of the program's reaches its handler");
  });
  say("completed");
  return 0;
}

// A connection waits to be accepted.
int accept_connections() {
  gofer::run([] {
    const gofer::net::listener l = gofer::net::listen("127.0.0.1:0");
    const gofer::net::conn c = gofer::net::dial(l.local_address().to_string());
    deny_argument();
    std::error_code ec;
    (void)l.accept(ec);
    std::printf("accept: %s\n", ec.message().c_str());
    try {
      gofer::net::serve(l, [](const gofer::net::conn&) {});
    } catch (const std::system_error& e) {
      std::printf("%s\n", e.what());
    }
  });
  say("completed");
  return 0;
}

// A goroutine computes until the runtime knows that it cannot pause it.
int unpreempted() {
  gofer::run([] {
    deny_argument();
    gofer::gomaxprocs(1);
    gofer::wait_group wg;
    wg.go([&] {
      wg.go([] {});
      while (gofer::internal::preemption.has_signal.load()) asm volatile("");
    });
    wg.wait();
  });
  say("completed");
  return 0;
}

// The runtime starts without the calls, and nothing computes for long.
int unpreempted_at_start() {
  deny_argument();
  gofer::run([] {
    talk();
    sleep_a_little();
  });
  say("completed");
  return 0;
}

// It computes until the number of processors has been changed.
int resize_beside_hog() {
  std::atomic<bool> stop{false};
  gofer::run([&] {
    gofer::gomaxprocs(2);
    gofer::wait_group hog;
    hog.go([&] {
      while (!stop) asm volatile("");
    });
    gofer::sleep_for(5ms);
    gofer::gomaxprocs(3);
    gofer::gomaxprocs(1);
    gofer::gomaxprocs(2);
    stop = true;
    hog.wait();
    do_all("after");
  });
  say("completed");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_scenario(argc, argv,
                      {{"later", later},
                       {"at_start", at_start},
                       {"at_first_use", at_first_use},
                       {"watched", watched},
                       {"while_it_waits", while_it_waits},
                       {"without_threads", without_threads},
                       {"first_wait", first_wait},
                       {"closed_descriptors", closed_descriptors},
                       {"own_instance", own_instance},
                       {"no_room_for_descriptors", no_room_for_descriptors},
                       {"lost_break", lost_break},
                       {"accept_connections", accept_connections},
                       {"full_signal_queue", full_signal_queue},
                       {"unpreempted", unpreempted},
                       {"unpreempted_at_start", unpreempted_at_start},
                       {"resize_beside_hog", resize_beside_hog}});
}
