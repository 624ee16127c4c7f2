// A tour of Gofer in the terminal, about ten seconds: `make run`.
//
//   1. a million goroutines, started and joined
//   2. a parallel computation, and what each processor did for it
//   3. channels: a sieve of goroutines, a ping-pong, a select over four, ten thousand sleepers
//   4. a goroutine that never stops, and a hundred that block their threads, on one processor
//   5. two thousand connections through an echo server in this very process
//   6. one workload under four thread models: N:1, GM, GMP, 1:1
//
// The models of chapter 6 are chosen by the environment, so each runs in a child of its own: the
// program starts itself with the name of a workload as its argument.
//
// `demo trace FILE` records a short trace; `make run` makes a page of it.
#include <gofer/gofer.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

using clock = std::chrono::steady_clock;

double ms_since(clock::time_point start) {
  return std::chrono::duration<double, std::milli>(clock::now() - start).count();
}

void chapter(const char* title) { std::printf("\n\033[1m%s\033[0m\n", title); }

// --- 1

void a_million_goroutines() {
  chapter("1. A million goroutines");
  constexpr int n = 1'000'000;
  for (const char* pass : {"first", "second"}) {
    std::atomic<long> sum{0};
    gofer::wait_group wg;
    const auto start = clock::now();
    for (int i = 0; i < n; ++i) {
      wg.go([&sum, i] { sum.fetch_add(i, std::memory_order_relaxed); });
    }
    wg.wait();
    const double ms = ms_since(start);
    std::printf("   %-6s pass: started and joined in %5.0f ms, %4.0f ns each; sum %ld, %s\n", pass,
                ms, ms * 1e6 / n, sum.load(), sum == long{n} * (n - 1) / 2 ? "right" : "WRONG");
  }
}

// --- 2

bool is_prime(int n) {
  if (n < 2) return false;
  for (int d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return true;
}

// The right half is a new goroutine's, the left half this one's. The scheduler decides where they
// run.
int count_primes(int from, int to) {
  if (to - from <= 2000) {
    int found = 0;
    for (int n = from; n < to; ++n) found += is_prime(n) ? 1 : 0;
    return found;
  }
  const int middle = std::midpoint(from, to);
  int right = 0;
  gofer::wait_group wg;
  wg.go([&right, middle, to] { right = count_primes(middle, to); });
  const int left = count_primes(from, middle);
  wg.wait();
  return left + right;
}

void a_parallel_computation() {
  chapter("2. Primes below 4,000,000, by halves: one goroutine feeds all processors");
  const auto before = gofer::stats();
  const auto start = clock::now();
  const int found = count_primes(0, 4'000'000);
  const double ms = ms_since(start);
  const auto after = gofer::stats();
  std::printf("   %d primes in %.0f ms on %d processors\n", found, ms, after.gomaxprocs);
  std::printf("   %4s %10s %10s %8s %8s\n", "", "started", "switches", "steals", "stolen");
  for (std::size_t i = 0; i < after.procs.size(); ++i) {
    const auto& a = after.procs[i];
    const auto& b = before.procs[i];
    const std::uint64_t started = a.started - b.started;
    std::printf("   P%-3zu %10lu %10lu %8lu %8lu  ", i, static_cast<unsigned long>(started),
                static_cast<unsigned long>(a.switches - b.switches),
                static_cast<unsigned long>(a.steals - b.steals),
                static_cast<unsigned long>(a.stolen - b.stolen));
    for (std::uint64_t bar = 0; bar < started / 64; ++bar) std::putchar('#');
    std::putchar('\n');
  }
}

// --- 3

// A goroutine for every prime hands on what it does not divide.
int nth_prime(int count) {
  gofer::chan<int> numbers(0);
  auto [ctx, cancel] = gofer::with_cancel(gofer::background());
  gofer::go([numbers, ctx = ctx] {
    for (int n = 2; numbers.send(ctx, n); ++n) {
    }
  });
  int prime = 0;
  for (int i = 0; i < count; ++i) {
    prime = *numbers.recv();
    gofer::chan<int> filtered(0);
    gofer::go([in = numbers, out = filtered, prime, ctx = ctx] {
      while (auto n = in.recv(ctx)) {
        if (*n % prime != 0 && !out.send(ctx, *n)) return;
      }
    });
    numbers = filtered;
  }
  cancel();
  return prime;
}

void channels() {
  using namespace std::chrono_literals;
  chapter("3. Channels, select, timers");
  auto start = clock::now();
  const int prime = nth_prime(1000);
  std::printf("   the 1000th prime is %d, by a chain of 1000 goroutines, in %.0f ms\n", prime,
              ms_since(start));

  constexpr int rounds = 200'000;
  gofer::chan<int> ping(0), pong(0);
  gofer::go([=] {
    for (int v : ping) pong.send(v + 1);
  });
  start = clock::now();
  int value = 0;
  for (int i = 0; i < rounds; ++i) {
    ping.send(value);
    value = *pong.recv();
  }
  ping.close();
  std::printf("   ping-pong over two unbuffered channels: %.0f ns a round trip\n",
              ms_since(start) * 1e6 / value);

  gofer::chan<int> c[4] = {gofer::chan<int>(0), gofer::chan<int>(0), gofer::chan<int>(0),
                           gofer::chan<int>(0)};
  int from[4] = {};
  for (auto& each : c) {
    gofer::go([each] {
      for (int i = 0; i < rounds / 4; ++i) each.send(i);
    });
  }
  start = clock::now();
  for (int i = 0; i < rounds; ++i) {
    ++from[gofer::select(gofer::on_recv(c[0]), gofer::on_recv(c[1]), gofer::on_recv(c[2]),
                         gofer::on_recv(c[3]))];
  }
  std::printf("   select over four: %.0f ns each, %d + %d + %d + %d received\n",
              ms_since(start) * 1e6 / rounds, from[0], from[1], from[2], from[3]);

  start = clock::now();
  gofer::wait_group sleepers;
  for (int i = 0; i < 10'000; ++i) sleepers.go([] { gofer::sleep_for(100ms); });
  sleepers.wait();
  std::printf("   10,000 goroutines that slept for 100 ms were done after %.0f ms\n",
              ms_since(start));
}

// --- 4

// On one processor: what schedtrace shows of it goes to stderr, a line every 20 ms.
void one_processor() {
  using namespace std::chrono_literals;
  std::atomic<bool> stop{false};
  gofer::wait_group hogs;
  for (int i = 0; i < 2; ++i) {
    hogs.go([&stop] {
      while (!stop.load(std::memory_order_relaxed)) asm volatile("");
    });
  }
  double latest = 0;
  for (int i = 0; i < 50; ++i) {
    const auto due = clock::now() + 1ms;
    gofer::sleep_for(1ms);
    latest = std::max(latest, ms_since(due));
  }
  stop = true;
  hogs.wait();
  std::printf(
      "   two goroutines computed without a break, %lu pauses; a third one woke 50 times,\n"
      "   never more than %.1f ms late\n",
      static_cast<unsigned long>(gofer::stats().preemptions), latest);
  gofer::wait_group sleepers;
  const auto start = clock::now();
  for (int i = 0; i < 100; ++i) sleepers.go([] { usleep(50'000); });
  sleepers.wait();
  std::printf("   100 goroutines blocked in usleep(50 ms), all at once: %.0f ms, %lu hand-offs\n",
              ms_since(start), static_cast<unsigned long>(gofer::stats().handoffs));
}

void nobody_stops_the_others() {
  chapter(
      "4. Nobody stops the others: one processor (GOMAXPROCS=1), and schedtrace=20 to watch it");
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    setenv("GOMAXPROCS", "1", 1);
    setenv("GOFER_DEBUG", "schedtrace=20", 1);
    execl("/proc/self/exe", "demo", "one_processor", nullptr);
    _exit(127);
  }
  if (child > 0) waitpid(child, nullptr, 0);
}

// --- 5

// Both ends of each connection need a descriptor.
int connections_possible(int wanted) {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  const auto most = static_cast<int>(std::min<rlim_t>(files.rlim_max, 1 << 20));
  return std::min(wanted, (most - 100) / 2);
}

int threads_of_this_process() {
  std::FILE* status = std::fopen("/proc/self/status", "r");
  char line[256];
  int threads = 0;
  while (status != nullptr && std::fgets(line, sizeof line, status) != nullptr) {
    if (std::sscanf(line, "Threads: %d", &threads) == 1) break;
  }
  if (status != nullptr) std::fclose(status);
  return threads;
}

void connections() {
  const int n = connections_possible(2000);
  constexpr int messages = 20;
  chapter("5. The network: every connection has a goroutine, none has a thread");
  const gofer::net::listener server = gofer::net::listen("127.0.0.1:0");
  const std::string address = server.local_address().to_string();
  gofer::go([server] {
    std::error_code ec;
    for (gofer::net::conn c = server.accept(ec); !ec; c = server.accept(ec)) {
      gofer::go([c] {
        char bytes[64];
        while (const std::size_t size = c.read(bytes)) c.write_all({bytes, size});
      });
    }
  });

  auto start = clock::now();
  std::vector<gofer::net::conn> clients(static_cast<std::size_t>(n));
  gofer::wait_group all;
  // A kernel may keep as few as 128 connections that are not accepted yet, and let the others wait
  // for seconds. So no more than that are opened at a time; the first echo shows an accept.
  gofer::semaphore opening(100);
  for (auto& c : clients) {
    opening.acquire();
    all.go([&] {
      c = gofer::net::dial(address);
      char byte = 0;
      c.write_all({&byte, 1});
      c.read_full({&byte, 1});
      opening.release();
    });
  }
  all.wait();
  std::printf("   %d connections to %s opened in %.0f ms\n", n, address.c_str(), ms_since(start));

  start = clock::now();
  std::atomic<int> answered{0};
  for (const auto& c : clients) {
    all.go([&] {
      char there[64] = "hello";
      char back[64];
      for (int i = 0; i < messages; ++i) {
        c.write_all(there);
        c.read_full(back);
        if (std::memcmp(there, back, sizeof there) == 0) ++answered;
      }
    });
  }
  all.wait();
  const double ms = ms_since(start);
  std::printf("   %d echoes in %.0f ms: %.0f a second, client and server in this one process\n",
              answered.load(), ms, answered / ms * 1000);
  std::printf("   threads of the process meanwhile: %d\n", threads_of_this_process());
  server.close();
}

int fib(int n) {
  if (n < 2) return n;
  int left = 0;
  gofer::wait_group wg;
  wg.go([&left, n] { left = fib(n - 1); });
  const int right = fib(n - 2);
  wg.wait();
  return left + right;
}

// A workload's cost in ns for each goroutine, or thread.
double spawn_join(int n) {
  return gofer::run([n] {
    gofer::wait_group wg;
    const auto start = clock::now();
    for (int i = 0; i < n; ++i) wg.go([] {});
    wg.wait();
    return ms_since(start) * 1e6 / n;
  });
}

double fork_join() {
  return gofer::run([] {
    constexpr int n = 24;
    constexpr int goroutines = 75'024;  // left branches of fib(24)
    const auto start = clock::now();
    if (fib(n) != 46'368) std::abort();
    return ms_since(start) * 1e6 / goroutines;
  });
}

double threads_join(int n) {
  const auto start = clock::now();
  for (int done = 0; done < n; done += 100) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 100; ++i) threads.emplace_back([] {});
    for (auto& t : threads) t.join();
  }
  return ms_since(start) * 1e6 / n;
}

double run_workload(const std::string& name) {
  if (name == "spawn_join") return spawn_join(200'000);
  if (name == "fork_join") return fork_join();
  return threads_join(5'000);
}

// This program again, with one workload and another environment; what it printed, or negative.
double in_child(const char* workload, const char* debug, const char* procs) {
  int fds[2];
  if (pipe(fds) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    dup2(fds[1], STDOUT_FILENO);
    setenv("GOFER_DEBUG", debug, 1);
    if (procs != nullptr) setenv("GOMAXPROCS", procs, 1);
    execl("/proc/self/exe", "demo", workload, nullptr);
    _exit(127);
  }
  close(fds[1]);
  char text[64] = {};
  const ssize_t n = child > 0 ? read(fds[0], text, sizeof text - 1) : -1;
  close(fds[0]);
  int status = 1;
  if (child > 0) waitpid(child, &status, 0);
  return n > 0 && status == 0 ? std::atof(text) : -1;
}

void print_cell(double ns) {
  if (ns < 0) {
    std::printf(" %14s", "-");
  } else {
    std::printf(" %11.0f ns", ns);
  }
}

void thread_models() {
  chapter("6. Thread models: what one goroutine (or thread) costs");
  std::printf("   %-40s %14s %14s\n", "", "spawn and join", "fork-join tree");
  struct Row {
    const char* name;
    const char* debug;
    const char* procs;
  };
  constexpr Row rows[] = {
      {"N:1  one thread for all (GOMAXPROCS=1)", "model=gmp", "1"},
      {"GM   one global queue (model=gm)", "model=gm", nullptr},
      {"GMP  a queue per processor", "model=gmp", nullptr},
  };
  for (const Row& row : rows) {
    std::printf("   %-40s", row.name);
    print_cell(in_child("spawn_join", row.debug, row.procs));
    print_cell(in_child("fork_join", row.debug, row.procs));
    std::putchar('\n');
  }
  std::printf("   %-40s", "1:1  std::thread");
  print_cell(in_child("threads", "model=gmp", nullptr));
  print_cell(-1);
  std::putchar('\n');
}

// --- A trace

void compute_for(std::chrono::milliseconds time) {
  const auto end = clock::now() + time;
  while (clock::now() < end) {
  }
}

// A little of everything that a scheduler does: work to steal, goroutines that wait for each other,
// some that compute until they are paused, some that sleep, and a call that blocks its thread.
void record(const char* path) {
  using namespace std::chrono_literals;
  std::remove(path);  // a trace never overwrites a file
  gofer::trace::start(path);
  gofer::run([] {
    gofer::wait_group all;
    all.go([] {
      const gofer::trace::region region("primes by halves");
      count_primes(0, 500'000);
    });
    all.go([] {
      const gofer::trace::region region("a sieve of goroutines");
      nth_prime(60);
    });
    for (int i = 0; i < 3; ++i) all.go([] { compute_for(60ms); });
    for (int i = 0; i < 10; ++i) {
      all.go([] {
        for (int n = 0; n < 20; ++n) {
          gofer::sleep_for(5ms);
          compute_for(1ms);
        }
      });
    }
    all.go([] { std::this_thread::sleep_for(50ms); });
    all.wait();
  });
  gofer::trace::stop();
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (argc > 1 && argv[1] == std::string("one_processor")) {
    gofer::run(one_processor);
    return 0;
  }
  if (argc > 2 && argv[1] == std::string("trace")) {
    record(argv[2]);
    return 0;
  }
  if (argc > 1) {
    std::printf("%f\n", run_workload(argv[1]));
    return 0;
  }
  std::printf("Gofer: %d processors for goroutines, %d CPUs\n", gofer::gomaxprocs(0),
              gofer::num_cpu());
  gofer::run([] {
    a_million_goroutines();
    a_parallel_computation();
    channels();
  });
  nobody_stops_the_others();
  gofer::run(connections);
  thread_models();
  std::printf("\nDone. Now read README.md, and write your own.\n");
  return 0;
}
