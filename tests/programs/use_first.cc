// The number of the first goroutine of a process: use_first run | go.
#include <gofer/gofer.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>

int main(int, char** argv) {
  std::atomic<unsigned long> id{0};
  if (std::strcmp(argv[1], "run") == 0) {
    id = gofer::run([] { return gofer::this_goroutine::id(); });
  } else {
    gofer::go([&] { id = gofer::this_goroutine::id(); });
    while (id == 0) std::this_thread::yield();
  }
  std::printf("id %lu\n", id.load());
}
