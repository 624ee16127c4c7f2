// Many goroutines parked at the same time, then all finish: use_parked <goroutines>.
// Prints how many were parked and the kilobytes that the process had then, page tables included.
#include <gofer/gofer.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

long status_kb(const char* key) {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  if (file == nullptr) return -1;
  char line[256];
  long value = -1;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, key, std::strlen(key)) == 0) {
      value = std::strtol(line + std::strlen(key), nullptr, 10);
    }
  }
  std::fclose(file);
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  const long count = std::atol(argv[1]);
  std::atomic<long> parked{0};
  std::atomic<long> finished{0};
  gofer::wait_group gate, group;
  gate.add(1);
  for (long i = 0; i < count; ++i) {
    group.go([&, i] {
      const long mine = i;
      ++parked;
      gate.wait();
      finished += mine == i;
    });
  }
  while (parked < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::printf("parked %zu kb %ld\n", gofer::num_goroutine(),
              status_kb("VmRSS:") + status_kb("VmPTE:"));
  std::fflush(stdout);
  gate.done();
  group.wait();
  while (gofer::num_goroutine() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::printf("finished %ld\n", finished.load());
  return finished == count ? 0 : 1;
}
