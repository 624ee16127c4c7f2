// A shared library and a plugin that pause at their prologues, whatever program uses them; the same
// once more as a library that does not.
#include <cstdarg>

#define GOFER_JOIN(one, other) one##_##other
#define GOFER_JOIN_EXPANDED(one, other) GOFER_JOIN(one, other)
#define GOFER_TEST_NAME(name) GOFER_JOIN_EXPANDED(GOFER_TEST_LIBRARY, name)
#define GOFER_EXPORT extern "C" __attribute__((visibility("default"), noinline))

GOFER_EXPORT int GOFER_TEST_NAME(fib)(int n) {
  return n < 2 ? n : GOFER_TEST_NAME(fib)(n - 1) + GOFER_TEST_NAME(fib)(n - 2);
}

GOFER_EXPORT double GOFER_TEST_NAME(sum)(int n, ...) {
  va_list list;
  va_start(list, n);
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += va_arg(list, int) + va_arg(list, double);
  va_end(list);
  return sum;
}

GOFER_EXPORT int GOFER_TEST_NAME(apply)(int (*function)(int), int n) { return function(n) + 1; }
