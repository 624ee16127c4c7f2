#include "arch/context.h"

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

}  // namespace gofer::internal::arch
