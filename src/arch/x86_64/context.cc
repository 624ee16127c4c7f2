#include <ucontext.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "arch/arch.h"
#include "arch/restartable.h"

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

static_assert(saved_register_places[0].offset == offsetof(Frame, r15));
static_assert(saved_register_places[4].offset == offsetof(Frame, bx));
static_assert(saved_register_places[5].offset == offsetof(Frame, bp));
static_assert(saved_register_places[6].offset == offsetof(Frame, pc));
static_assert(saved_sp.offset == sizeof(Frame));

constexpr uint32_t default_mxcsr = 0x1f80;  // all exceptions masked, round to nearest
constexpr uint16_t default_x87_control = 0x037f;

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

Registers saved_registers(void* sp) {
  Frame f;
  std::memcpy(&f, sp, sizeof f);
  const uintptr_t sp_after = reinterpret_cast<uintptr_t>(sp) + sizeof(Frame);
  return {{0, 0, 0, f.bx, 0, 0, f.bp, sp_after, 0, 0, 0, 0, f.r12, f.r13, f.r14, f.r15, f.pc}};
}

Registers interrupted_registers(const void* signal_context) {
  constexpr int order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                           REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                           REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  const auto* context = static_cast<const ucontext_t*>(signal_context);
  Registers registers{};
  for (size_t i = 0; i < std::size(order); ++i) {
    registers.dwarf[i] = static_cast<uintptr_t>(context->uc_mcontext.gregs[order[i]]);
  }
  return registers;
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
  constexpr uintptr_t around = 32;
  const auto* registers = static_cast<const ucontext_t*>(signal_context)->uc_mcontext.gregs;
  const auto pc = static_cast<uintptr_t>(registers[REG_RIP]);
  // The next page need not be there.
  const uintptr_t first = pc & ~(page_size - 1);
  const uintptr_t from = pc - first < around ? first : pc - around;
  const uintptr_t end = pc + around < first + page_size ? pc + around : first + page_size;
  const auto* code = reinterpret_cast<const uint8_t*>(from);  // NOLINT(performance-no-int-to-ptr)
  const uintptr_t size = end - from;
  for (uintptr_t i = 0; i + 1 < size; ++i) {
    if (code[i] == 0xf3 && code[i + 1] == 0x90) return true;
  }
  return false;
}

}  // namespace gofer::internal::arch
