// A program of a user: goroutines, a wait group and exceptions, through the installed headers and
// library alone.
#include <dlfcn.h>
#include <gofer/gofer.h>

#include <atomic>
#include <cstdio>
#include <stdexcept>
#include <string_view>

// No library that comes along with ours may take the program's exceptions over from libgcc, as
// libunwind would.
static bool exceptions_are_libgccs() {
  Dl_info info{};
  void* raise = dlsym(RTLD_DEFAULT, "_Unwind_RaiseException");
  if (raise == nullptr || dladdr(raise, &info) == 0) return true;  // linked into the program itself
  std::printf("exceptions: %s\n", info.dli_fname);
  return std::string_view(info.dli_fname).find("libunwind") == std::string_view::npos;
}

static int count_to_hundred() {
  gofer::wait_group wg;
  std::atomic<int> n{0};
  for (int i = 0; i < 100; i++) {
    wg.go([&n] {
      try {
        throw std::runtime_error("caught in the same goroutine");
      } catch (const std::exception&) {
        ++n;
      }
    });
  }
  wg.wait();
  return n == 100 ? 0 : 1;
}

int main() { return exceptions_are_libgccs() ? gofer::run(count_to_hundred) : 2; }
