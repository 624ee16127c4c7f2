#include "runtime/stacks/stack_space.h"

#include <atomic>
#include <new>

#include "debug/valgrind.h"
#include "os/memory.h"
#include "runtime/stacks/overflow.h"

namespace gofer::internal {

struct StackRange {
  StackRange* next = nullptr;
  char* begin = nullptr;   // of what is not carved
  char* usable = nullptr;  // dense: up to here it is accessible
  char* end = nullptr;
};

constinit std::atomic<long> stack_guards_left{0};
constinit std::atomic<bool> no_spaced_stacks{false};

namespace {

constexpr size_t smallest_space = 16 * 1024 * 1024;  // for a spaced stack and what is below it
constexpr size_t group = 128;                        // dense stacks that are made usable together

constinit std::atomic<GuardKind> guard_kind{GuardKind::marker};
constinit std::atomic<bool> charged_early{false};

size_t space_of(StackClass c) {
  const size_t twice = 2 * stack_size(c);
  return twice < smallest_space ? smallest_space : twice;
}

size_t take_guards(size_t n) {
  long left = stack_guards_left.load(std::memory_order_relaxed);
  for (;;) {
    const long taken = left < static_cast<long>(n) ? left : static_cast<long>(n);
    if (taken <= 0) return 0;
    if (stack_guards_left.compare_exchange_weak(left, left - taken, std::memory_order_relaxed)) {
      return static_cast<size_t>(taken);
    }
  }
}

// The next dense stacks. Without markers the lowest one's guard, which all of them share, stays as
// it is; if the kernel refuses the map entry for that, there is none.
bool make_group_usable(StackRange& range, size_t size) {
  const auto left = static_cast<size_t>(range.end - range.usable);
  const size_t bytes = left < group * size ? left : group * size;
  const bool markers = guard_kind.load(std::memory_order_relaxed) == GuardKind::marker;
  const bool good =
      (!markers && os::make_usable(range.usable + stack_guard_size, bytes - stack_guard_size)) ||
      os::make_usable(range.usable, bytes);
  if (!good) return false;
  hide_from_valgrind(range.usable, bytes);
  range.usable += bytes;
  return true;
}

}  // namespace

void set_guard_kind(GuardKind kind) { guard_kind.store(kind, std::memory_order_relaxed); }
void set_guard_budget(long guards) { stack_guards_left.store(guards, std::memory_order_relaxed); }
void forbid_spaced_stacks() { no_spaced_stacks.store(true, std::memory_order_relaxed); }
void set_charged_early(bool charged) { charged_early.store(charged, std::memory_order_relaxed); }
bool stacks_are_charged_early() { return charged_early.load(std::memory_order_relaxed); }

StackRange* StackSpace::take_note() {
  if (unused_notes_ == nullptr) {
    char* page = static_cast<char*>(os::reserve(os::page_size));
    if (page == nullptr) return nullptr;
    for (size_t at = 0; at + sizeof(StackRange) <= os::page_size; at += sizeof(StackRange)) {
      unused_notes_ = ::new (page + at) StackRange{.next = unused_notes_};
    }
  }
  StackRange* note = unused_notes_;
  unused_notes_ = note->next;
  return note;
}

void StackSpace::drop_first(StackRange*& list) {
  StackRange* note = list;
  list = note->next;
  note->next = unused_notes_;
  unused_notes_ = note;
}

bool StackSpace::add_range(StackRange*& list, size_t n, size_t step) {
  StackRange* note = take_note();
  if (note == nullptr) return false;
  note->next = list;
  list = note;
  char* from = static_cast<char*>(os::reserve_address_space(n * step, step));
  if (from == nullptr) {
    drop_first(list);
    return false;
  }
  note->begin = note->usable = from;
  note->end = from + n * step;
  return true;
}

bool StackSpace::reserve(StackClass c, size_t n) {
  const size_t size = stack_size(c);
  if (!add_range(dense_, n, size)) return false;
  if (!stacks_are_charged_early()) return true;
  char* from = dense_->begin;
  while (dense_->usable != dense_->end) {
    if (make_group_usable(*dense_, size)) continue;
    os::release(from, n * size);
    drop_first(dense_);
    return false;
  }
  return true;
}

size_t StackSpace::add_spaced(StackClass c) {
  const size_t space = space_of(c);
  const size_t n = take_guards(space == smallest_space ? spaced_batch : 1);
  if (n == 0) return 0;
  if (!stacks_are_charged_early() && !os::address_space_is_limited() &&
      add_range(spaced_, n, space)) {
    return n;
  }
  forbid_spaced_stacks();
  stack_guards_left.fetch_add(static_cast<long>(n), std::memory_order_relaxed);
  return 0;
}

StackPlace StackSpace::carve(StackClass c) {
  StackRange*& list = spaced_ != nullptr ? spaced_ : dense_;
  StackRange* range = list;
  if (range == nullptr) return {};
  const bool spaced = range == spaced_;
  const size_t size = stack_size(c);
  if (!spaced && range->begin == range->usable && !make_group_usable(*range, size)) return {};
  range->begin += spaced ? space_of(c) : size;
  const StackPlace place{range->begin - size, spaced};
  if (range->begin == range->end) drop_first(list);
  return place;
}

void StackSpace::give_up_spaced() {
  forbid_spaced_stacks();
  spaced_ = nullptr;
}

bool prepare_place(StackPlace place, StackClass c) {
  if (place.spaced) {
    return os::make_usable(place.stack + stack_guard_size, stack_size(c) - stack_guard_size);
  }
  const GuardKind kind = guard_kind.load(std::memory_order_relaxed);
  if (kind == GuardKind::marker && os::guard_by_marker(place.stack, stack_guard_size)) return true;
  const bool guarded = kind != GuardKind::none && take_guards(1) != 0 &&
                       os::guard_by_mprotect(place.stack, stack_guard_size);
  if (!guarded) begin_stack_checks();
  return true;
}

}  // namespace gofer::internal
