// Programs with more goroutines that keep their threads than there should be threads: they compute,
// they wait for one lock, or they block.
#include <fcntl.h>
#include <gofer/gofer.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <semaphore>
#include <thread>
#include <vector>

#include "../support/scaled.h"
#include "measured.h"

namespace {

using namespace gofer::test;
using namespace std::chrono_literals;

// ---- those that compute

void compute_each(int goroutines, int ms) {
  const std::uint64_t one = compute_ms(ms);
  std::atomic<std::uint64_t> sum{0};
  gofer::wait_group wg;
  for (int i = 0; i < goroutines; ++i) wg.go([&sum, ms] { sum += compute_ms(ms); });
  wg.wait();
  require(sum == one * static_cast<std::uint64_t>(goroutines), "everybody computed to the end");
}

int compute() {
  return measured([] { compute_each(scaled(300), 8); });
}

int compute_beside_ticker() {
  return measured([] {
    Ticker ticker;
    compute_each(scaled(250), 8);
  });
}

// All are woken by their timers in the same moment.
int compute_after_timers() {
  return measured([] {
    const int goroutines = scaled(250);
    std::atomic<int> done{0};
    Ticker ticker;
    gofer::wait_group wg;
    for (int i = 0; i < goroutines; ++i) {
      wg.go([&done] {
        gofer::sleep_for(50ms);
        compute_ms(8);
        ++done;
      });
    }
    wg.wait();
    require(done == goroutines, "everybody computed to the end");
  });
}

// One wave after the other: the threads of the first serve the others, too.
int compute_in_waves() {
  return measured([] {
    for (int wave = 0; wave < 4; ++wave) compute_each(scaled(60), 6);
  });
}

// A step of a loop that waits: without and with the hint to the processor by which the runtime
// knows such a loop.
void compute_on() { asm volatile(""); }
void relax() { asm volatile("pause"); }

// The goroutine that is started last sets what all others wait for, computing. One more is started
// behind it, because the newest goroutine runs first.
template <void (*step)()>
void spin_until_set(int spinners) {
  std::atomic<bool> set{false};
  std::atomic<int> passed{0};
  gofer::wait_group wg;
  for (int i = 0; i < spinners; ++i) {
    wg.go([&] {
      while (!set.load(std::memory_order_relaxed)) step();
      ++passed;
    });
  }
  wg.go([&] { set = true; });
  wg.go([] {});
  wg.wait();
  require(passed == spinners, "everybody saw it");
}

int late_setter() {
  return measured([] { spin_until_set<compute_on>(scaled(200)); });
}

int late_setter_for_spinners() {
  return measured([] { spin_until_set<relax>(scaled(200)); });
}

int late_setter_beside_ticker() {
  return measured([] {
    Ticker ticker;
    spin_until_set<compute_on>(scaled(200));
  });
}

// The goroutines beside them compute for longer than a slice, sleep, and do so again: they are
// paused, and done with it, again and again.
int late_setter_beside_sleepers_that_compute() {
  return measured([] {
    std::atomic<bool> stop{false};
    gofer::wait_group others;
    for (int i = 0; i < 20; ++i) {
      others.go([&stop] {
        while (!stop) {
          compute_ms(12);
          gofer::sleep_for(1ms);
        }
      });
    }
    spin_until_set<compute_on>(scaled(200));
    stop = true;
    others.wait();
  });
}

// Short goroutines that a foreign thread starts beside many that compute.
template <void (*step)()>
int short_beside() {
  return measured([] {
    using clock = std::chrono::steady_clock;
    std::atomic<bool> stop{false};
    gofer::wait_group spinners, started;
    for (int i = 0; i < scaled(100); ++i) {
      spinners.go([&stop] {
        while (!stop.load(std::memory_order_relaxed)) step();
      });
    }
    gofer::sleep_for(200ms);
    std::vector<long> waited_us(20);
    const auto start_all = [&] {
      for (long& us : waited_us) {
        started.go(
            [&us, from = clock::now()] { us = static_cast<long>((clock::now() - from) / 1us); });
        std::this_thread::sleep_for(5ms);
      }
    };
    gofer::blocking(gofer::handoff, [&] { std::thread(start_all).join(); });
    started.wait();
    stop = true;
    spinners.wait();
    std::sort(waited_us.begin(), waited_us.end());
    say_figure("waited_p50_us", waited_us[waited_us.size() / 2]);
  });
}

// ---- those that wait for one lock

// All call pass(), which lets none through before hold() has returned elsewhere.
template <class Hold, class Pass>
void crowd(int goroutines, Hold hold, Pass pass) {
  std::atomic<bool> held{false};
  gofer::wait_group wg;
  wg.go([&] { hold(held); });
  while (!held) gofer::yield();
  for (int i = 0; i < goroutines; ++i) wg.go([&pass, i] { pass(i); });
  wg.wait();
}

void lock_each(int goroutines, int held_ms) {
  std::mutex mutex;
  int passed = 0;
  crowd(
      goroutines,
      [&](std::atomic<bool>& held) {
        const std::lock_guard lock(mutex);
        held = true;
        block_ms(held_ms);
      },
      [&](int) {
        const std::lock_guard lock(mutex);
        ++passed;
      });
  require(passed == goroutines, "everybody had the lock");
}

int mutex_crowd() {
  return measured([] { lock_each(scaled(14'000), 2000); });
}

int mutex_crowd_for_a_minute() {
  return measured([] { lock_each(scaled(14'000), 60'000); });
}

int once_crowd() {
  return measured([] {
    const int goroutines = scaled(14'000);
    std::once_flag once;
    std::atomic<bool> called{false};
    std::atomic<int> passed{0};
    const auto call = [&](std::atomic<bool>& begun) {
      std::call_once(once, [&] {
        begun = true;
        block_ms(2000);
        called = true;
      });
    };
    crowd(goroutines, call, [&](int) {
      std::atomic<bool> mine{false};
      call(mine);
      passed += called && !mine ? 1 : 0;
    });
    require(passed == goroutines, "everybody came after the only call");
  });
}

// Says of each number below n whether it was read, once, on a line of its own.
bool all_there(std::FILE* in, int n) {
  std::vector<bool> seen(static_cast<std::size_t>(n));
  char line[128];
  int lines = 0;
  for (; std::fgets(line, sizeof line, in) != nullptr; ++lines) {
    int i = -1;
    char rest = '\0';
    if (std::sscanf(line, "goroutine %d was here, and this line is long enough to fil%c", &i,
                    &rest) != 2 ||
        rest != 'l' || i < 0 || i >= n || seen[static_cast<std::size_t>(i)]) {
      return false;
    }
    seen[static_cast<std::size_t>(i)] = true;
  }
  return lines == n;
}

constexpr const char* line_format =
    "goroutine %d was here, and this line is long enough to fill a pipe\n";

// Many goroutines print into a pipe that is not read from for two seconds.
template <class Print>
void print_each(int goroutines, Print print) {
  int ends[2];
  require(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
  std::FILE* const out = fdopen(ends[1], "w");
  std::FILE* const in = fdopen(ends[0], "r");
  bool complete = false;
  std::thread reader([&] {
    block_ms(2000);
    complete = all_there(in, goroutines);
    std::fclose(in);
  });
  gofer::wait_group wg;
  for (int i = 0; i < goroutines; ++i) wg.go([out, i, print] { print(out, i); });
  wg.wait();
  std::fclose(out);
  gofer::blocking([&] { reader.join(); });
  require(complete, "every line came through");
}

int printf_crowd() {
  return measured([] {
    print_each(scaled(14'000), [](std::FILE* out, int i) {
      require(std::fprintf(out, line_format, i) > 0, "printed");
    });
  });
}

// Without the lock of a FILE: all block in the system call.
int write_crowd() {
  return measured([] {
    print_each(scaled(14'000), [](std::FILE* out, int i) {
      char line[128];
      const int size = std::snprintf(line, sizeof line, line_format, i);
      require(write(fileno(out), line, static_cast<std::size_t>(size)) == size, "written");
    });
  });
}

// None can go on before all have a thread.
int condition_variable_crowd() {
  return measured([] {
    const int goroutines = scaled(3000);
    std::mutex mutex;
    std::condition_variable all_here;
    int arrived = 0;
    gofer::wait_group wg;
    for (int i = 0; i < goroutines; ++i) {
      wg.go([&] {
        std::unique_lock lock(mutex);
        if (++arrived == goroutines) all_here.notify_all();
        all_here.wait(lock, [&] { return arrived == goroutines; });
      });
    }
    wg.wait();
  });
}

int semaphore_crowd() {
  return measured([] {
    const int goroutines = scaled(1000);
    std::counting_semaphore<> free(0);
    std::atomic<int> arrived{0};
    gofer::wait_group wg;
    for (int i = 0; i < goroutines; ++i) {
      wg.go([&] {
        if (++arrived == goroutines) free.release(goroutines);
        free.acquire();
      });
    }
    wg.wait();
  });
}

// All sleep in a call of the kernel until the last arrives. Beside them others go from one short
// call to the next, and come back from each: that says nothing of those that wait.
int reader_crowd_beside_calls() {
  return measured([] {
    const int goroutines = scaled(1200);
    int ends[2];
    require(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
    std::atomic<bool> stop{false};
    gofer::wait_group callers, readers;
    for (int i = 0; i < 4; ++i) {
      callers.go([&] {
        while (!stop) {
          usleep(500);
          gofer::blocking([] { usleep(500); });
        }
      });
    }
    gofer::sleep_for(20ms);
    std::atomic<int> arrived{0};
    for (int i = 0; i < goroutines; ++i) {
      readers.go([&] {
        if (++arrived == goroutines) {
          const std::vector<char> bytes(static_cast<std::size_t>(goroutines));
          require(write(ends[1], bytes.data(), bytes.size()) == goroutines, "written");
        }
        char c = 'x';
        require(read(ends[0], &c, 1) == 1, "read");
      });
    }
    readers.wait();
    stop = true;
    callers.wait();
  });
}

// The goroutine that the owner of a lock waits for is behind all that want the lock.
int holder_behind_lockers() {
  return measured([] {
    const int lockers = scaled(500);
    gofer::chan<int> go_on(0);
    std::mutex mutex;
    std::atomic<bool> held{false};
    int passed = 0;
    gofer::wait_group wg;
    wg.go([&] {
      mutex.lock();
      held = true;
      go_on.recv();
      mutex.unlock();
    });
    while (!held) gofer::yield();
    for (int i = 0; i < lockers; ++i) {
      wg.go([&] {
        const std::lock_guard lock(mutex);
        ++passed;
      });
    }
    wg.go([&] { go_on.send(1); });
    wg.go([] {});
    wg.wait();
    require(passed == lockers, "everybody had the lock");
  });
}

// ---- those that block

void sleep_each(int goroutines, int times) {
  std::atomic<int> slept{0};
  gofer::wait_group wg;
  for (int i = 0; i < goroutines; ++i) {
    wg.go([&slept, times] {
      for (int k = 0; k < times; ++k) {
        block_ms(10);
        ++slept;
      }
    });
  }
  wg.wait();
  require(slept == goroutines * times, "everybody slept");
}

int unannounced_sleeps() {
  return measured([] { sleep_each(scaled(500), 20); });
}

// ---- at the limit of threads

constexpr int limit = 50;

int limit_compute() {
  gofer::set_max_threads(limit);
  return measured([] { compute_each(150, 6); });
}

// No thread but those that have a processor.
int limit_of_procs() {
  gofer::set_max_threads(gofer::gomaxprocs(0));
  return measured([] { compute_each(20, 30); });
}

int limit_lock() {
  gofer::set_max_threads(limit);
  return measured([] { lock_each(500, 500); });
}

int limit_sleep() {
  gofer::set_max_threads(limit);
  return measured([] { sleep_each(500, 2); });
}

// Computing, locking and sleeping, all at once.
int limit_mixed() {
  gofer::set_max_threads(limit);
  return measured([] {
    gofer::wait_group wg;
    wg.go([] { compute_each(75, 6); });
    wg.go([] { lock_each(100, 100); });
    wg.go([] { sleep_each(100, 2); });
    wg.wait();
  });
}

// A goroutine that is bound to its thread is paused with a lock, and all other threads wait for it.
int limit_bound_owner() {
  const int threads = 8 + gofer::gomaxprocs(0);
  gofer::set_max_threads(threads);
  return measured([threads] {
    std::mutex lock;
    std::atomic<bool> held{false};
    gofer::wait_group wg;
    wg.go([&] {
      gofer::lock_os_thread();
      {
        const std::scoped_lock hold(lock);
        held = true;
        compute_ms(300);
      }
      gofer::unlock_os_thread();
    });
    wg.go([&] {
      while (!held) gofer::yield();
      for (int i = 0; i < 2 * threads; ++i) wg.go([&] { const std::scoped_lock hold(lock); });
    });
    wg.wait();
  });
}

// Every thread has a goroutine that computes, and then there are more processors.
int limit_more_procs() {
  constexpr int computing = 11;
  constexpr int procs = 6;
  gofer::set_max_threads(computing + 1);  // one is this goroutine's
  gofer::gomaxprocs(1);
  return measured([] {
    std::atomic<int> begun{0};
    std::atomic<bool> stop{false};
    gofer::wait_group wg;
    for (int i = 0; i < computing; ++i) {
      wg.go([&] {
        ++begun;
        while (!stop) {
        }
      });
    }
    while (begun < computing) std::this_thread::sleep_for(1ms);
    gofer::gomaxprocs(procs);
    compute_ms(300);
    const int idle = gofer::stats().idle_procs;
    stop = true;
    wg.wait();
    require(idle == 0, "every processor has a goroutine");
  });
}

// What the user asked a thread for.
template <class Hold>
int limit_exceeded_by(Hold hold) {
  gofer::set_max_threads(limit);
  return measured([hold] {
    gofer::wait_group wg;
    for (int i = 0; i < 2 * limit; ++i) wg.go(hold);
    wg.wait();
  });
}

int limit_blocking() {
  return limit_exceeded_by([] { gofer::blocking([] { block_ms(10'000); }); });
}

int limit_handoff() {
  return limit_exceeded_by([] { gofer::blocking(gofer::handoff, [] { block_ms(10'000); }); });
}

int limit_bound() {
  return limit_exceeded_by([] {
    gofer::lock_os_thread();
    gofer::sleep_for(10s);
  });
}

}  // namespace

int main(int argc, char** argv) {
  // The second argument: so many processes burn the cores meanwhile.
  const Burners burners(argc > 2 ? std::atoi(argv[2]) : 0);
  return run_scenario(
      argc, argv,
      {{"compute", compute},
       {"compute_beside_ticker", compute_beside_ticker},
       {"compute_after_timers", compute_after_timers},
       {"compute_in_waves", compute_in_waves},
       {"late_setter", late_setter},
       {"late_setter_beside_ticker", late_setter_beside_ticker},
       {"late_setter_beside_sleepers_that_compute", late_setter_beside_sleepers_that_compute},
       {"late_setter_for_spinners", late_setter_for_spinners},
       {"short_beside_computing", short_beside<compute_on>},
       {"short_beside_spinners", short_beside<relax>},
       {"mutex_crowd", mutex_crowd},
       {"mutex_crowd_for_a_minute", mutex_crowd_for_a_minute},
       {"once_crowd", once_crowd},
       {"printf_crowd", printf_crowd},
       {"write_crowd", write_crowd},
       {"condition_variable_crowd", condition_variable_crowd},
       {"semaphore_crowd", semaphore_crowd},
       {"reader_crowd_beside_calls", reader_crowd_beside_calls},
       {"holder_behind_lockers", holder_behind_lockers},
       {"unannounced_sleeps", unannounced_sleeps},
       {"limit_compute", limit_compute},
       {"limit_of_procs", limit_of_procs},
       {"limit_lock", limit_lock},
       {"limit_sleep", limit_sleep},
       {"limit_mixed", limit_mixed},
       {"limit_blocking", limit_blocking},
       {"limit_handoff", limit_handoff},
       {"limit_more_procs", limit_more_procs},
       {"limit_bound_owner", limit_bound_owner},
       {"limit_bound", limit_bound}});
}
