// Functions inside of functions, an extension of GNU C: they find the variables around them by the static
// chain in %r10, which GCC carries over a pause in %rax.
#include <stdarg.h>

extern int gofer_test_armed;

#define RAISE() \
  if (gofer_test_armed) __asm__ volatile("movq $-1, %%fs:0x70" ::: "memory")

int gofer_test_nested(int outer) {
  int calls = 0;
  __attribute__((noinline)) int inner(int n) {
    ++calls;
    return n == 0 ? outer : inner(n - 1) + outer;
  }
  RAISE();
  const int sum = inner(4);
  return sum + calls;
}

int gofer_test_nested_large(int outer) {
  __attribute__((noinline)) int inner(int n) {
    volatile char frame[20000];
    frame[0] = 1;
    frame[sizeof frame - 1] = 2;
    return frame[0] + frame[sizeof frame - 1] + n + outer;
  }
  RAISE();
  return inner(7);
}

int gofer_test_nested_variadic(int outer) {
  __attribute__((noinline)) int inner(int n, ...) {
    va_list list;
    va_start(list, n);
    int sum = outer;
    for (int i = 0; i < n; ++i) sum += va_arg(list, int);
    va_end(list);
    return sum;
  }
  RAISE();
  return inner(9, 1, 2, 3, 4, 5, 6, 7, 8, 9);
}
