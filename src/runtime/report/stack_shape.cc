// The unwinder takes about 0.2 us for a frame, and a dump of a hundred thousand goroutines stops
// the world for as long as all their stacks take. Most of these are equal. So the places at which
// the return addresses of a walked stack lie are noted, and another stack that stops at the same
// pc, has the same size, and has the same return addresses at the same places has the same frames.
//
// That is certain for frames of constant size: each return address says how far the next one is. A
// frame of variable size (alloca) may in theory have an old return address where the noted one was,
// and its own elsewhere, but it would also have to come to the same size in all.
#include "runtime/report/stack_shape.h"

namespace gofer::internal {
namespace {

constexpr int most_looks = 8;  // at stacks of one bucket
constexpr uintptr_t word = sizeof(uintptr_t);

__attribute__((no_sanitize("address", "thread"))) uintptr_t word_at(uintptr_t address) {
  return *reinterpret_cast<const volatile uintptr_t*>(address);  // NOLINT
}

// Where the return address lies that leads to the frame above `cfa`: close below that, or, on some
// architectures, anywhere in the frame. 0: in no word of it.
uintptr_t place_of(uintptr_t pc, uintptr_t low, uintptr_t cfa) {
  for (uintptr_t at = cfa - word; at >= low; at -= word) {
    if (word_at(at) == pc) return at;
  }
  return 0;
}

}  // namespace

size_t StackShapes::bucket_of(const StillStack& stack) {
  const uintptr_t mixed = (stack.pc ^ (stack.top - stack.sp) << 20) * 0x9e3779b97f4a7c15;
  return (mixed >> 32) % buckets;
}

uint32_t StackShapes::find(const StillStack& stack) const {
  int looks = 0;
  for (const Shape* s = shapes_[bucket_of(stack)]; s != nullptr; s = s->next) {
    if (++looks > most_looks) return none;
    if (s->pc != stack.pc || s->size != stack.top - stack.sp) continue;
    size_t equal = 0;
    while (equal < s->count &&
           word_at(stack.sp + s->returns[equal].offset) == s->returns[equal].pc) {
      ++equal;
    }
    if (equal == s->count) return s->number;
  }
  return none;
}

void StackShapes::add(Arena& arena, const StillStack& stack, std::span<const uintptr_t> pcs,
                      std::span<const uintptr_t> cfas, uint32_t number) {
  auto* shape = static_cast<Shape*>(arena.take(sizeof(Shape)));
  auto* returns = static_cast<Return*>(arena.take(pcs.size() * sizeof(Return)));
  if (shape == nullptr || returns == nullptr) return;
  uintptr_t low = stack.sp;
  for (size_t i = 1; i < pcs.size(); ++i) {
    if (cfas[i] < low || cfas[i] > stack.top) return;
    const uintptr_t at = place_of(pcs[i], low, cfas[i]);
    if (at == 0) return;
    returns[i - 1] = {at - stack.sp, pcs[i]};
    low = at + word;
  }
  Shape*& first = shapes_[bucket_of(stack)];
  *shape = {first, stack.pc, stack.top - stack.sp, returns, pcs.size() - 1, number};
  first = shape;
}

}  // namespace gofer::internal
