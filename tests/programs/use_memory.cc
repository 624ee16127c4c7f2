// Goroutines with deep stacks, and what memory is left in use when all is quiet:
//   use_memory <goroutines in turn> <at once, afterwards> <bytes of stack each>
// Prints the resident kilobytes before, with the deep stacks in use, and at the end. With
// GOFER_DEBUG=idlems=N the quiet begins soon.
#include <gofer/gofer.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

long resident_kb() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return -1;
  long all = 0;
  long resident = 0;
  const int fields = std::fscanf(file, "%ld %ld", &all, &resident);
  std::fclose(file);
  return fields == 2 ? resident * (sysconf(_SC_PAGESIZE) / 1024) : -1;
}

// Touches every page of the next `bytes` of stack.
// NOLINTNEXTLINE(misc-no-recursion)
[[gnu::noinline]] int descend(std::uintptr_t top, std::size_t bytes) {
  volatile char frame[2048];
  frame[0] = 1;
  const auto here = reinterpret_cast<std::uintptr_t>(&frame[0]);
  return frame[0] + (top - here >= bytes ? 0 : descend(top, bytes));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 1;
  const int in_turn = std::atoi(argv[1]);
  const int at_once = std::atoi(argv[2]);
  const std::size_t bytes = std::strtoull(argv[3], nullptr, 10);
  std::atomic<long> frames{0};
  const auto deep = [&] {
    frames += descend(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)), bytes);
  };

  gofer::run([] { gofer::go([] {}); });
  const long before = resident_kb();

  gofer::run([&] {
    for (int i = 0; i < in_turn; i += 8) {
      gofer::wait_group group;
      for (int k = 0; k < 8; ++k) group.go(deep);
      group.wait();
    }
  });
  long in_use = 0;
  gofer::run([&] {
    gofer::wait_group parked, gate, group;
    parked.add(at_once);
    gate.add(1);
    for (int i = 0; i < at_once; ++i) {
      group.go([&] {
        deep();
        parked.done();
        gate.wait();
      });
    }
    parked.wait();
    in_use = resident_kb();
    gate.done();
    group.wait();
  });

  // Until little is left (a free stack may keep 16 KiB), or for a time that is long enough.
  const long enough = before + 16L * at_once + 2048;
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  long after = resident_kb();
  while (after > enough && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    after = resident_kb();
  }
  std::printf("before %ld in_use %ld after %ld\n", before, in_use, after);
  return frames > 0 ? 0 : 1;
}
