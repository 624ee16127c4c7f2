// A hash map from ids (of goroutines, Ps, Ms, strings, stacks) to small values.
//
// Open addressing with linear probing; erasing moves the entries behind the gap forward, so there
// are no tombstones, and goroutines that come and go for hours leave the map small. The key `none`
// marks an empty slot, so it cannot be inserted. Pointers to values are valid until the next
// insertion or erasure.
//
// std::unordered_map takes an allocation a goroutine and about three times as long for the lookups,
// which are a fifth of the time to read a trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/reader/error.h"

namespace gofer::tool {

template <class Value>
class IdMap {
 public:
  size_t size() const { return size_; }

  Value* find(uint64_t key) {
    const size_t i = index_of(key);
    return i == missing ? nullptr : &slots_[i].value;
  }
  const Value* find(uint64_t key) const { return const_cast<IdMap*>(this)->find(key); }

  /// The value of key, which is a new Value{} if there was none.
  Value& operator[](uint64_t key) {
    if (Value* found = find(key)) return *found;
    if ((size_ + 1) * 4 > slots_.size() * 3) grow();
    ++size_;
    return place(key, Value{});
  }

  void erase(uint64_t key) {
    size_t gap = index_of(key);
    if (gap == missing) return;
    --size_;
    for (size_t i = next(gap); slots_[i].key != none; i = next(i)) {
      const size_t wanted = home(slots_[i].key);
      if (((i - wanted) & mask()) < ((i - gap) & mask())) continue;  // reachable without the gap
      slots_[gap] = slots_[i];
      gap = i;
    }
    slots_[gap] = Slot{};
  }

  void clear() {
    slots_.clear();
    size_ = 0;
  }

  /// Calls f(key, value) for each entry, in no order.
  template <class F>
  void each(F f) {
    for (Slot& slot : slots_) {
      if (slot.key != none) f(slot.key, slot.value);
    }
  }

 private:
  struct Slot {
    uint64_t key = none;
    Value value{};
  };

  static constexpr size_t missing = ~size_t{0};

  size_t index_of(uint64_t key) const {
    if (slots_.empty() || key == none) return missing;
    for (size_t i = home(key);; i = next(i)) {
      if (slots_[i].key == key) return i;
      if (slots_[i].key == none) return missing;
    }
  }

  size_t mask() const { return slots_.size() - 1; }
  size_t next(size_t i) const { return (i + 1) & mask(); }
  size_t home(uint64_t key) const {
    key ^= key >> 32;
    key *= 0x9e3779b97f4a7c15u;
    return static_cast<size_t>(key ^ key >> 29) & mask();
  }

  Value& place(uint64_t key, const Value& value) {
    size_t i = home(key);
    while (slots_[i].key != none) i = next(i);
    slots_[i].key = key;
    slots_[i].value = value;
    return slots_[i].value;
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.key != none) place(slot.key, slot.value);
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace gofer::tool
