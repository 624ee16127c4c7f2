// A library that blocks its thread: announce the calls, and say how many may run at once.
#include <gofer/gofer.h>

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

// Stands for a library that knows nothing of goroutines: a driver, a codec, a database client.
std::atomic<int> running{0};
std::atomic<int> most{0};

int legacy_call(int n) {
  const int now = ++running;
  for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
  }
  ::usleep(1000);
  --running;
  return n;
}

int main() {
  gofer::run([] {
    gofer::set_max_blocking(8);  // of all calls in blocking(); each that runs has a thread

    std::atomic<int> sum{0};
    gofer::wait_group wg;
    for (int i = 1; i <= 100; ++i) {
      wg.go([i, &sum] { sum += gofer::blocking([i] { return legacy_call(i); }); });
    }
    wg.wait();
    std::printf("sum %d, %s 8 at once\n", sum.load(), most <= 8 ? "never more than" : "more than");

    // For a call that surely takes long: the processor goes to others before it begins.
    gofer::blocking(gofer::handoff, [] { ::usleep(20'000); });

    // The errno of the call survives; last_error() reads it in the thread of this moment.
    if (gofer::blocking([] { return ::close(-1); }) != 0 && gofer::last_error() == EBADF) {
      std::puts("EBADF, as it should be");
    }
  });
}
