// Programs that run out of address space, or of mappings.
#include <gofer/gofer.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "../support/wait_until.h"
#include "runtime/sched/schedule.h"
#include "scenarios.h"

namespace {

using namespace gofer::test;

constexpr std::size_t mib = 1 << 20;

gofer::wait_group gate;
std::atomic<long> finished{0};

// From now on the process may have this much more.
void limit_address_space(std::size_t more) {
  gofer::run([] {});
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  std::size_t pages = 0;
  require(file != nullptr && std::fscanf(file, "%zu", &pages) == 1, "size of the process");
  std::fclose(file);
  const rlim_t bytes = pages * 4096 + more;
  const rlimit limit{bytes, bytes};
  require(setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
}

// Starts goroutines until there is no memory for more; how many.
template <class Start>
long start_all(Start start) {
  long started = 0;
  try {
    for (;;) {
      start();
      ++started;
      require(started < 10'000'000, "the limit is noticed");
    }
  } catch (const std::bad_alloc&) {
    say("bad_alloc");
  }
  return started;
}

// All that were started finish, and then there is room again.
int finish(long started) {
  std::printf("started: %ld\n", started);
  gate.done();
  require(wait_until([=] { return finished >= started; }), "all goroutines finish");
  require(wait_until([] { return gofer::num_goroutine() == 0; }), "no goroutine is left");
  require(finished == started, "none ran that was not started");
  gofer::wait_group wg;
  std::atomic<int> ran{0};
  for (int i = 0; i < 100; ++i) wg.go([&] { ++ran; });
  wg.wait();
  require(ran == 100, "the runtime works afterwards");
  say("completed");
  return 0;
}

void wait_at_gate() {
  gate.wait();
  ++finished;
}

int parked() {
  limit_address_space(2048 * mib);
  return finish(start_all([] { gofer::go(wait_at_gate); }));
}

// Goroutines that start goroutines meet the end too.
int parked_from_goroutine() {
  limit_address_space(2048 * mib);
  long started = 0;
  gofer::wait_group wg;
  wg.add(1);
  gofer::go([&] {
    started = start_all([] { gofer::go(wait_at_gate); });
    wg.done();
  });
  wg.wait();
  return finish(started);
}

int sized() {
  limit_address_space(2048 * mib);
  return finish(start_all([] { gofer::go({.stack_size = 60 * mib}, wait_at_gate); }));
}

// The closure lies on the heap, which ends first: there are records and stacks from before.
int large_closures() {
  // An arena for each thread would take 64 MiB of the limit, and a busy machine has more threads.
  require(mallopt(M_ARENA_MAX, 1) == 1, "mallopt");
  gofer::wait_group open;
  gofer::wait_group before;
  open.add(1);
  for (int i = 0; i < 2000; ++i) before.go([&] { open.wait(); });
  open.done();
  before.wait();
  limit_address_space(256 * mib);
  return finish(start_all([] {
    std::array<char, mib / 2> block;
    block[0] = 1;
    gofer::go([block] {
      gate.wait();
      finished += block[0];
    });
  }));
}

int absurd_sizes() {
  for (std::size_t size : {SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX / 2, std::size_t{1} << 46,
                           std::size_t{1} << 40, std::size_t{64} << 30}) {
    try {
      gofer::go({.name = "absurd", .stack_size = size}, [] { say("ran"); });
      std::printf("%zu: no exception\n", size);
    } catch (const std::bad_alloc&) {
      say("bad_alloc");
    }
  }
  std::printf("goroutines: %zu\n", gofer::num_goroutine());
  gate.done();
  gofer::wait_group wg;
  wg.go([] { say("completed"); });
  wg.wait();
  return 0;
}

long count_mappings() {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  require(maps != nullptr, "/proc/self/maps");
  long lines = 0;
  for (int c; (c = std::fgetc(maps)) != EOF;) lines += c == '\n';
  std::fclose(maps);
  return lines;
}

// Without markers (the test sets that) a guard costs two mappings, of which there are 65,530.
int mappings() {
  constexpr long count = 100'000;
  std::atomic<long> started{0};
  for (long i = 0; i < count; ++i) {
    gofer::go([&] {
      ++started;
      wait_at_gate();
    });
  }
  require(wait_until([&] { return started == count; }), "all are there at once");
  std::printf("mappings=%ld\n", count_mappings());
  return finish(count);
}

// The program itself has used up all mappings: those goroutines that get no stack begin when others
// end. (Dense stacks that follow on usable ones need no mapping.) A new slab of records would need
// one, and `go` would throw: the first slab has enough, even if the Ps keep all that were used.
int no_mappings() {
  constexpr long count = 400;
  constexpr long warm_up = 100;
  constexpr long first_slab = (64 * 1024 - 64) / sizeof(gofer::internal::G);
  static_assert(count + warm_up < first_slab);
  gofer::run([] {});
  gofer::wait_group before;
  for (long i = 0; i < warm_up; ++i) before.go([] {});
  before.wait();
  for (char* pages = nullptr;;) {
    void* two = mmap(nullptr, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (two == MAP_FAILED) break;
    pages = static_cast<char*>(two);
    if (mprotect(pages, 4096, PROT_READ) != 0) break;
  }
  std::atomic<long> started{0};
  for (long i = 0; i < count; ++i) {
    gofer::go([&] {
      ++started;
      wait_at_gate();
    });
  }
  const auto some_wait = [] { return gofer::internal::stack_waiters.count.load() != 0; };
  require(wait_until([&] { return started == count || some_wait(); }), "no more can start");
  std::printf("at once: %s\n", started < count && some_wait() ? "some" : "all");
  return finish(count);
}

// In KiB, but for Threads.
long status(const char* key) {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  require(file != nullptr, "/proc/self/status");
  char line[256];
  long value = -1;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, key, std::strlen(key)) == 0) value = std::atol(line + std::strlen(key));
  }
  std::fclose(file);
  return value;
}

int locked() {
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) {
    say("not allowed");
    return 0;
  }
  const long before = status("VmRSS:");
  gofer::run([] { gofer::yield(); });
  std::printf("resident=%ld threads=%ld\n", status("VmRSS:") - before, status("Threads:") - 1);
  return 0;
}

// Threads and the heap promise more; what is asked is the part of the stacks.
int promised() {
  const long before = status("VmData:");
  gofer::run([] { gofer::yield(); });
  const long threads = (status("Threads:") - 1) * 8 * 1024;
  std::printf("stacks=%ld\n", status("VmData:") - before - threads);
  return 0;
}

int data_limit() {
  gofer::run([] {});
  const rlim_t bytes = static_cast<rlim_t>(status("VmData:")) * 1024 + 2048 * mib;
  const rlimit limit{bytes, bytes};
  require(setrlimit(RLIMIT_DATA, &limit) == 0, "setrlimit");
  return finish(start_all([] { gofer::go(wait_at_gate); }));
}

}  // namespace

int main(int argc, char** argv) {
  gate.add(1);
  return run_scenario(argc, argv,
                      {{"parked", parked},
                       {"parked_from_goroutine", parked_from_goroutine},
                       {"sized", sized},
                       {"large_closures", large_closures},
                       {"absurd_sizes", absurd_sizes},
                       {"mappings", mappings},
                       {"no_mappings", no_mappings},
                       {"locked", locked},
                       {"promised", promised},
                       {"data_limit", data_limit}});
}
