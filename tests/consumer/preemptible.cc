// A program of a user that is preemptible at its prologues: asks itself for a pause and goes on.
#include <gofer/gofer.h>

#include <cstdint>
#include <cstdio>

extern "C" [[gnu::weak]] void gofer_prologue_pause();

[[gnu::noinline]] static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

static int ask_and_compute() {
  asm volatile("movq $-1, %%fs:0x70" ::: "memory");
  const int got = fib(20);
  uintptr_t guard;
  asm volatile("movq %%fs:0x70, %0" : "=r"(guard));
  return got == 6765 && guard == 0 ? 0 : 1;
}

int main() {
  const int status = gofer::run(ask_and_compute);
  std::printf("pauses: %s\n", gofer_prologue_pause == nullptr ? "nowhere" : "in the runtime");
  return status;
}
