// The first use of the runtime in a process, by one call or another, then the first goroutine:
//   use_first run | go | yield | stats | gomaxprocs | num_cpu | counts | locks | wait_group
#include <gofer/gofer.h>

#include <atomic>
#include <cstdio>
#include <string_view>
#include <thread>

namespace {

gofer::wait_group global;  // usable without any initialisation at run time

bool wait_in_threads() {
  global.add(1);
  std::atomic<bool> released{false};
  std::thread waiter([&] {
    global.wait();
    released = true;
  });
  const bool early = released;
  global.done();
  waiter.join();
  return !early && released;
}

bool use(std::string_view what) {
  if (what == "yield") gofer::yield();
  if (what == "stats") return gofer::stats().goroutines == 0 && gofer::stats().gomaxprocs > 0;
  if (what == "gomaxprocs") return gofer::gomaxprocs(3) > 0 && gofer::gomaxprocs(0) == 3;
  if (what == "num_cpu") return gofer::num_cpu() > 0;
  if (what == "counts") {
    return gofer::num_goroutine() == 0 && gofer::this_goroutine::id() == 0 &&
           gofer::this_goroutine::name().empty() && gofer::set_max_threads(0) == 10000;
  }
  if (what == "locks") {
    gofer::lock_os_thread();
    gofer::unlock_os_thread();
  }
  if (what == "wait_group") return wait_in_threads();
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (!use(what)) return 1;
  std::atomic<unsigned long> id{0};
  if (what == "go") {
    gofer::go([&] { id = gofer::this_goroutine::id(); });
    while (id == 0) std::this_thread::yield();
  } else {
    id = gofer::run([] { return gofer::this_goroutine::id(); });
  }
  std::printf("id %lu\n", id.load());
}
