// A program in which a sanitizer seems to be: functions with the names of its own start are there.
#include <gofer/gofer.h>

#include <cstdio>

#include "runtime/base/sanitizer.h"

#if !defined(GOFER_ASAN) && !defined(GOFER_TSAN)
extern "C" {
[[gnu::visibility("default")]] void __asan_init() {}
[[gnu::visibility("default")]] void __tsan_init() {}
}
#endif

int main() {
  for (int i = 0; i < 3; ++i) {
    gofer::run([] { gofer::yield(); });
  }
  std::puts("completed");
  return 0;
}
