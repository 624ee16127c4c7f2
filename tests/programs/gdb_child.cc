// For a debugger: goroutines in every state, and objects of every kind that has a printer. Prints
// "ready" once all of them are as they should be; arguments:
//   states    until it is killed
//   crowd N   N goroutines at one channel, and one at a mutex; until it is killed
//   abort     as states, then dumps core
#include <gofer/gofer.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>

#include "runtime/base/debug_table.h"

using namespace std::chrono_literals;
using gofer::internal::DebugEntry;

extern "C" const DebugEntry gofer_debug_goroutines[];
extern "C" const DebugEntry gofer_debug_states[];

namespace {

std::atomic<bool> stop{false};
std::atomic<int> begun{0};

[[gnu::noinline]] int wait_for_value(gofer::chan<int> values, int tag) {
  const int value = values.recv().value_or(-1);
  return value + tag;
}

[[gnu::noinline]] void reader(gofer::chan<int> values, int tag) {
  std::printf("%d\n", wait_for_value(values, tag));
}

[[gnu::noinline]] void locker(gofer::mutex& m) {
  const std::lock_guard guard(m);
  std::puts("locked");
}

[[gnu::noinline]] void computes() {
  volatile unsigned long n = 0;
  ++begun;
  while (!stop) n = n + 1;
}

[[gnu::noinline]] void blocks(int fd) {
  char byte;
  ++begun;
  if (read(fd, &byte, 1) < 0) std::perror("read");
}

[[gnu::noinline]] void sleeper() { gofer::sleep_for(1000s); }

uint64_t entry(const DebugEntry* table, std::string_view name) {
  while (table->name != name) ++table;
  return table->object != nullptr ? reinterpret_cast<uint64_t>(table->object) : table->value;
}

template <class T>
T at(uint64_t address) {
  return __atomic_load_n(reinterpret_cast<const T*>(address), __ATOMIC_ACQUIRE);
}

// As the debugger finds them: no public call says how many goroutines wait.
std::size_t count_waiting() {
  const DebugEntry* table = gofer_debug_goroutines;
  const uint64_t waiting = entry(gofer_debug_states, "status:waiting");
  const uint64_t trimmed = entry(gofer_debug_states, "status:copystack");
  std::size_t count = 0;
  for (auto slab = at<uint64_t>(entry(table, "records.slabs")); slab != 0;
       slab = at<uint64_t>(slab + entry(table, "Slab.next"))) {
    const uint64_t size = entry(table, "sizeof(G)");
    uint64_t g = slab + entry(table, "sizeof(Slab)");
    for (auto n = at<uint64_t>(slab + entry(table, "Slab.used")); n != 0; --n, g += size) {
      const auto status = at<uint8_t>(g + entry(table, "G.status"));
      count += status == waiting || status == trimmed ? 1 : 0;
    }
  }
  return count;
}

void until_waiting(std::size_t goroutines) {
  while (count_waiting() != goroutines) gofer::sleep_for(1ms);
}

[[gnu::noinline]] void say_ready() {
  std::puts("ready");
  std::fflush(stdout);
}

}  // namespace

struct Objects {
  gofer::chan<int> unbuffered{0};
  gofer::chan<int> buffered{8};
  gofer::chan<int> nil;
  gofer::mutex held;
  gofer::rw_mutex read_by_two;
  gofer::semaphore permits{3};
  gofer::cond changed;
  gofer::wait_group group;
  gofer::promise<int> promise;
  gofer::future<int> pending = promise.get_future();
  gofer::future<int> ready;
  gofer::cancellable cancelled = gofer::with_cancel(gofer::background());
  gofer::cancellable limited = gofer::with_timeout(gofer::background(), 1000s);
  gofer::context root;
  gofer::timer timer{1000s};
  gofer::ticker ticker{500s};
};

Objects* objects;  // for the debugger

namespace {

void set_up(Objects& o) {
  for (int i = 1; i <= 3; ++i) o.buffered.send(10 * i);
  o.held.lock();
  o.read_by_two.lock_shared();
  o.read_by_two.lock_shared();
  o.permits.acquire(2);
  o.group.add(2);
  gofer::promise<int> kept;
  o.ready = kept.get_future();
  kept.set_value(42);
  o.cancelled.cancel();
  objects = &o;
}

int states(bool ends) {
  Objects o;
  set_up(o);
  int ends_of_pipe[2];
  if (pipe(ends_of_pipe) != 0) return 1;
  for (int i = 0; i < 3; ++i) gofer::go({.name = "reader"}, [&o, i] { reader(o.unbuffered, i); });
  gofer::go({.name = "locker"}, [&o] { locker(o.held); });
  gofer::go([&o] { o.group.wait(); });
  gofer::go([] { sleeper(); });
  gofer::go([] {
    gofer::lock_os_thread();
    sleeper();
  });
  auto listener = gofer::net::listen("127.0.0.1:0");
  gofer::go({.name = "acceptor"}, [&] { static_cast<void>(listener.accept()); });
  until_waiting(8);
  gofer::go({.name = "blocked"}, [&] { blocks(ends_of_pipe[0]); });
  for (int i = 0; i < 3; ++i) gofer::go({.name = "computes"}, [] { computes(); });
  while (begun != 4) gofer::sleep_for(1ms);
  say_ready();
  if (ends) std::abort();
  gofer::sleep_for(1000s);
  return 0;
}

int crowd(int n) {
  gofer::chan<int> values(0);
  gofer::mutex held;
  held.lock();
  for (int i = 0; i < n; ++i) gofer::go([=] { reader(values, i); });
  gofer::go({.name = "locker"}, [&] { locker(held); });
  until_waiting(static_cast<std::size_t>(n) + 1);
  say_ready();
  gofer::sleep_for(1000s);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_crowd = argc == 3 && std::strcmp(argv[1], "crowd") == 0;
  const bool ends = argc == 2 && std::strcmp(argv[1], "abort") == 0;
  return gofer::run([&] { return is_crowd ? crowd(std::atoi(argv[2])) : states(ends); });
}
