// A goroutine leaves a pattern on its stack; how much of it do later goroutines find on theirs? A
// byte of it may be there by chance, in an address that the goroutine itself has left, but not
// eight in a row.
#include <gofer/gofer.h>

#include <cstdio>

namespace {

constexpr int deep = 128 * 1024;
constexpr char pattern = 0x5a;
constexpr int in_a_row = 8;

[[gnu::noinline]] void leave_pattern() {
  char bytes[deep];
  for (char& b : bytes) b = pattern;
  asm volatile("" : : "r"(bytes) : "memory");
}

[[gnu::noinline]] long count_pattern() {
  char bytes[deep];
  asm volatile("" : "=m"(bytes));  // for the compiler they have values
  long rows = 0;
  int row = 0;
  for (const char& b : bytes) {
    row = *static_cast<const volatile char*>(&b) == pattern ? row + 1 : 0;
    rows += row >= in_a_row ? 1 : 0;
  }
  return rows;
}

}  // namespace

int main() {
  return gofer::run([] {
    long found = 0;
    for (int i = 0; i < 50; ++i) {
      gofer::wait_group one;
      one.go([] { leave_pattern(); });
      one.wait();
      one.go([&] { found += count_pattern(); });
      one.wait();
    }
    std::printf("found=%s\n", found == 0 ? "none" : "some");
    return 0;
  });
}
