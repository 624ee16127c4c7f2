// Errors across goroutines: an exception comes out where the goroutines are waited for.
#include <gofer/gofer.h>

#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <string>

int size_of(const std::string& name) {
  if (name.empty()) throw std::invalid_argument("a file without a name");
  return static_cast<int>(name.size());
}

int main() {
  gofer::run([] {
    // One result: what the function throws is thrown by get().
    gofer::future<int> good = gofer::async(size_of, "readme");
    gofer::future<int> bad = gofer::async(size_of, "");
    std::printf("good: %d\n", good.get());
    try {
      bad.get();
    } catch (const std::invalid_argument& e) {
      std::printf("bad: %s\n", e.what());
    }

    // Many that belong together: the first failure cancels the others, and wait() throws it.
    std::atomic<int> gave_up{0};
    try {
      gofer::task_group tasks;
      for (int i = 0; i < 5; ++i) {
        tasks.go([&tasks, &gave_up, i] {
          if (i == 2) throw std::runtime_error("disk 2 is full");
          tasks.ctx().done().recv();  // any call that takes the context ends here
          ++gave_up;
        });
      }
      tasks.wait();
    } catch (const std::runtime_error& e) {
      std::printf("%s, %d others gave up\n", e.what(), gave_up.load());
    }
  });
}
