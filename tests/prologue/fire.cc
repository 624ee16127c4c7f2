#include "prologue/fire.h"

#include "runtime/base/atomic.h"
#include "runtime/watch/prologue.h"

int gofer_test_armed = 1;

namespace gofer::test {
namespace {

std::atomic<uint64_t> pause_count{0};

[[gnu::noinline]] void spoil_general() {
  asm volatile(
      "movq $-0x123456789, %%rax\n\t"
      "movq %%rax, %%rcx\n\t"
      "movq %%rax, %%rdx\n\t"
      "movq %%rax, %%rsi\n\t"
      "movq %%rax, %%rdi\n\t"
      "movq %%rax, %%r8\n\t"
      "movq %%rax, %%r9\n\t"
      "movq %%rax, %%r10\n\t"
      "movq %%rax, %%r11\n\t"
      "addq %%rax, %%rax\n\t"
      // Exception flags, both of SSE and of the x87, by dividing zero by zero.
      "pxor %%xmm0, %%xmm0\n\t"
      "divss %%xmm0, %%xmm0\n\t"
      "fldz\n\t"
      "fdiv %%st(0)\n\t"
      "fstp %%st(0)\n\t"
      :
      :
      : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc", "xmm0");
}

// Every register is declared as changed by its name for SSE; no code here uses
// those beyond the sixteen of SSE.
#define GOFER_VECTORS                                                                      \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
      "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

void spoil_sse() {
  asm volatile(
      ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n\t"
      "pcmpeqd %%xmm\\n, %%xmm\\n\n\t"
      ".endr" ::
          : GOFER_VECTORS);
}

void spoil_avx() {
  asm volatile(
      ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15\n\t"
      "vpcmpeqd %%ymm\\n, %%ymm\\n, %%ymm\\n\n\t"
      ".endr" ::
          : GOFER_VECTORS);
}

void spoil_avx512() {
  asm volatile(
      ".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, "
      "23, 24, 25, 26, 27, 28, 29, 30, 31\n\t"
      "vpternlogd $255, %%zmm\\n, %%zmm\\n, %%zmm\\n\n\t"
      ".endr\n\t"
      ".irp n, 1, 2, 3, 4, 5, 6, 7\n\t"
      "kxnorw %%k\\n, %%k\\n, %%k\\n\n\t"
      ".endr\n\t"
      "vzeroupper" ::
          : GOFER_VECTORS);
}

void probe() {
  pause_count.fetch_add(1, std::memory_order_relaxed);
  static const bool avx = __builtin_cpu_supports("avx2");
  static const bool avx512 = __builtin_cpu_supports("avx512f");
  if (avx) spoil_avx();
  if (avx512) spoil_avx512();
  spoil_sse();
  spoil_general();
}

}  // namespace

uint64_t pauses() { return pause_count.load(std::memory_order_relaxed); }

Spoiler::Spoiler() {
  probe();  // decides what there is to spoil, outside of a pause
  pause_count = 0;
  internal::prologue_probe = probe;
}

Spoiler::~Spoiler() { internal::prologue_probe = nullptr; }

Fire::Fire()
    : thread_([this, guard = internal::prologue_guard()] {
        // With varying gaps, so that every function has its turn; and on a processor that both
        // threads share, so that the other has it.
        for (unsigned n = 0; !stop_.load(std::memory_order_relaxed); ++n) {
          internal::raise_prologue_guard(guard);
          for (unsigned i = n % 32; i > 0; --i) internal::cpu_relax();
          if (n % 32 == 0) std::this_thread::yield();
        }
      }) {}

Fire::~Fire() {
  stop_ = true;
  thread_.join();
}

}  // namespace gofer::test
