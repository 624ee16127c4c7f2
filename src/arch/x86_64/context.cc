#include "arch/context.h"

#include <sys/syscall.h>
#include <ucontext.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

extern "C" void gofer_entry();

namespace gofer::internal::arch {
namespace {

// What gofer_switch leaves on a stack; see switch.S.
struct Frame {
  uint32_t mxcsr;
  uint16_t x87_control;
  uint16_t unused;
  uintptr_t r15, r14, r13, r12, bx, bp, pc;
};

constexpr uint32_t default_mxcsr = 0x1f80;  // all exceptions masked, round to nearest
constexpr uint16_t default_x87_control = 0x037f;

// Calls that may be made again as if nothing had happened: those that only wait, and those that
// transfer, because one that has transferred anything does not fail. SA_RESTART does not cover them
// when they have a time limit. Not among them: those of which the kernel has done a part (connect).
bool may_be_made_again(uint32_t call) {
  switch (call) {
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_futex:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_msgrcv:
    case SYS_msgsnd:
    case SYS_rt_sigtimedwait:
    case SYS_io_getevents:
    case SYS_read:
    case SYS_readv:
    case SYS_write:
    case SYS_writev:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_accept:
    case SYS_accept4:
      return true;
    default:
      return false;
  }
}

}  // namespace

// Field by field: the other registers may hold anything, and a copy of the whole frame would read
// back what was just written in smaller pieces, which stalls.
void* make_frame(void* top) {
  auto* frame = reinterpret_cast<Frame*>(static_cast<char*>(top) - sizeof(Frame));
  frame->mxcsr = default_mxcsr;
  frame->x87_control = default_x87_control;
  frame->pc = reinterpret_cast<uintptr_t>(&gofer_entry);
  return frame;
}

Context saved_context(void* sp) {
  Frame frame;
  std::memcpy(&frame, sp, sizeof frame);
  return {.pc = frame.pc,
          .sp = reinterpret_cast<uintptr_t>(sp) + sizeof(Frame),
          .bp = frame.bp,
          .bx = frame.bx,
          .r12 = frame.r12,
          .r13 = frame.r13,
          .r14 = frame.r14,
          .r15 = frame.r15};
}

uintptr_t interrupted_sp(const void* signal_context) {
  const auto* context = static_cast<const ucontext_t*>(signal_context);
  return static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RSP]);
}

void restart_interrupted_call(void* signal_context) {
  auto* registers = static_cast<ucontext_t*>(signal_context)->uc_mcontext.gregs;
  if (registers[REG_RAX] != -EINTR) return;
  // As libc makes its calls: mov $number, %eax, or xor %eax, %eax; then syscall.
  const auto* after = reinterpret_cast<const uint8_t*>(registers[REG_RIP]);
  if (after[-2] != 0x0f || after[-1] != 0x05) return;
  uint32_t call;
  if (after[-4] == 0x31 && after[-3] == 0xc0) {
    call = 0;
  } else if (after[-7] == 0xb8) {
    std::memcpy(&call, after - 6, sizeof call);
  } else {
    return;
  }
  if (!may_be_made_again(call)) return;
  registers[REG_RAX] = call;
  registers[REG_RIP] -= 2;
}

bool is_spinning(const void* signal_context) {
  constexpr uintptr_t page = 4096;
  constexpr uintptr_t around = 32;
  const auto* registers = static_cast<const ucontext_t*>(signal_context)->uc_mcontext.gregs;
  const auto pc = static_cast<uintptr_t>(registers[REG_RIP]);
  // The next page need not be there.
  const uintptr_t first = pc & ~(page - 1);
  const uintptr_t from = pc - first < around ? first : pc - around;
  const uintptr_t end = pc + around < first + page ? pc + around : first + page;
  const auto* code = reinterpret_cast<const uint8_t*>(from);  // NOLINT(performance-no-int-to-ptr)
  const uintptr_t size = end - from;
  for (uintptr_t i = 0; i + 1 < size; ++i) {
    if (code[i] == 0xf3 && code[i + 1] == 0x90) return true;
  }
  return false;
}

namespace {

// A request of valgrind's: a sequence of instructions that does nothing to a processor, with the
// address of the arguments in rax, as in its header.
void tell_valgrind(uint64_t code, const void* a, uint64_t b) {
  const volatile uint64_t request[6] = {code, reinterpret_cast<uint64_t>(a), b, 0, 0, 0};
  uint64_t result = 0;
  asm volatile(
      "rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi\n\t"
      "xchgq %%rbx, %%rbx"
      : "+d"(result)
      : "a"(request)
      : "cc", "memory");
}

constexpr uint64_t stack_register = 0x1501;
constexpr uint64_t memcheck = uint64_t{'M'} << 24 | uint64_t{'C'} << 16;
constexpr uint64_t make_no_access = memcheck + 0;
constexpr uint64_t make_defined = memcheck + 2;

}  // namespace

// The first frame of a goroutine is written from another stack; below it, valgrind follows the
// stack pointer.
void register_stack(void* low, void* high) {
  constexpr uint64_t top = 4096;
  tell_valgrind(stack_register, low, reinterpret_cast<uint64_t>(high));
  tell_valgrind(make_defined, static_cast<char*>(high) - top, top);
}

void hide_unused_stacks(void* low, size_t size) { tell_valgrind(make_no_access, low, size); }

}  // namespace gofer::internal::arch
