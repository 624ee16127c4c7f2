// A scenario that says how many threads it took, and work of a known length for it.
//
//   int many() { return measured([] { ...; require(sum == expected, "the sum"); }); }
//
// runs the function as the main goroutine, and prints a line a figure ("threads=57") and
// "completed".
#pragma once

#include <fcntl.h>
#include <gofer/gofer.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <thread>
#include <vector>

#include "scenarios.h"

namespace gofer::test {

inline void say_figure(const char* name, long value) {
  std::printf("%s=%ld\n", name, value);
  std::fflush(stdout);
}

/// Threads of this process, as the kernel counts them; without malloc and stdio, because a
/// goroutine that is paused may hold their locks.
inline int threads_now() {
  char text[4096] = "";
  const int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  const char* line = n <= 0 ? nullptr : std::strstr(text, "Threads:");
  require(line != nullptr, "/proc/self/status has the number of threads");
  return std::atoi(line + std::strlen("Threads:"));
}

/// A thread that samples the number of threads, its own not among them.
class Census {
 public:
  Census() : thread_([this] { count(); }) {}
  ~Census() {
    stop_ = true;
    thread_.join();
  }
  Census(const Census&) = delete;
  Census& operator=(const Census&) = delete;
  int most() const { return most_; }

 private:
  void count() {
    while (!stop_) {
      most_ = std::max(most_.load(), threads_now() - 1);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  std::atomic<bool> stop_{false};
  std::atomic<int> most_{0};
  std::thread thread_;
};

template <class F>
int measured(F f) {
  Census census;
  gofer::run(f);
  say_figure("threads", census.most());
  say("completed");
  return 0;
}

/// Processes that do nothing but burn the cores, until the end of the scope. To be made before the
/// process has threads.
class Burners {
 public:
  explicit Burners(int n) {
    for (int i = 0; i < n; ++i) {
      const pid_t pid = fork();
      require(pid >= 0, "fork");
      if (pid == 0) burn();
      pids_.push_back(pid);
    }
  }
  ~Burners() {
    for (const pid_t pid : pids_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  Burners(const Burners&) = delete;
  Burners& operator=(const Burners&) = delete;

 private:
  [[noreturn]] static void burn() {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == 1) std::_Exit(0);
    for (;;) asm volatile("");
  }
  std::vector<pid_t> pids_;
};

inline std::uint64_t compute_steps(long n) {
  std::uint64_t x = 1;
  for (long i = 0; i < n; ++i) {
    x = x * 6364136223846793005U + 1442695040888963407U;
    asm volatile("" : "+r"(x));
  }
  return x;
}

/// How many steps take a millisecond of processor time, at best.
inline long steps_per_ms() {
  constexpr long steps = 1'000'000;
  const auto cpu_ns = [] {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1'000'000'000L + t.tv_nsec;
  };
  long best_ns = 1'000'000'000;
  for (int i = 0; i < 10; ++i) {
    const long from = cpu_ns();
    compute_steps(steps);
    best_ns = std::min(best_ns, cpu_ns() - from);
  }
  return steps * 1'000'000 / std::max(best_ns, 1L);
}

/// The same for any thread, measured once, before the first goroutine.
inline const long steps_of_1ms = steps_per_ms();

inline std::uint64_t compute_ms(int ms) { return compute_steps(steps_of_1ms * ms); }

/// Blocks the thread, and says nothing of it.
inline void block_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

/// A goroutine that sleeps for 1 ms again and again; prints how late it was when it ends.
class Ticker {
 public:
  Ticker() {
    late_us_.reserve(100'000);
    group_.go([this] {
      while (!stop_) tick();
    });
  }
  ~Ticker() {
    stop_ = true;
    group_.wait();
    require(!late_us_.empty(), "the ticker ran");
    const auto middle = late_us_.begin() + std::ssize(late_us_) / 2;
    std::nth_element(late_us_.begin(), middle, late_us_.end());
    say_figure("late_p50_us", *middle);
    say_figure("late_max_us", *std::max_element(middle, late_us_.end()));  // for a quiet machine
  }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  void tick() {
    using namespace std::chrono;
    const auto due = steady_clock::now() + 1ms;
    gofer::sleep_for(1ms);
    const auto late = duration_cast<microseconds>(steady_clock::now() - due).count();
    if (late_us_.size() < late_us_.capacity()) late_us_.push_back(static_cast<long>(late));
  }
  std::vector<long> late_us_;
  std::atomic<bool> stop_{false};
  gofer::wait_group group_;
};

}  // namespace gofer::test
