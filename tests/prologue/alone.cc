// A program that is built for pauses and has no runtime: when its guard is raised, it goes on.
#include <cstdint>
#include <cstdio>

[[gnu::noinline]] static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

int main(int argc, char**) {
  asm volatile("movq $-1, %%fs:0x70" ::: "memory");
  const int got = fib(9 + argc);
  uintptr_t guard;
  asm volatile("movq %%fs:0x70, %0" : "=r"(guard));
  std::printf("fib %d, guard %lx\n", got, static_cast<unsigned long>(guard));
  return got == 55 && guard == 0 ? 0 : 1;
}
