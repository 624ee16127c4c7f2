// Memory for a dump: from the kernel, without malloc, whose locks a stopped thread may hold. All of
// it goes back at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "os/memory.h"

namespace gofer::internal {

class Arena {
 public:
  Arena() = default;
  ~Arena() {
    while (chunk_ != nullptr) {
      Chunk* next = chunk_->next;
      os::release(chunk_, chunk_->size);
      chunk_ = next;
    }
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// nullptr: the kernel has none. Aligned to 16 bytes, and all zeros.
  void* take(size_t size) {
    size = (size + 15) & ~size_t{15};
    if (chunk_ == nullptr || used_ + size > chunk_->size) {
      if (!add_chunk(size)) return nullptr;
    }
    void* p = reinterpret_cast<char*>(chunk_) + used_;
    used_ += size;
    return p;
  }

  /// Its memory stays for ever: a thread may still write to it.
  void leave_behind() { chunk_ = nullptr; }

 private:
  struct alignas(16) Chunk {
    Chunk* next;
    size_t size;
  };

  bool add_chunk(size_t wanted) {
    constexpr size_t usual = size_t{1} << 20;
    const size_t size =
        (std::max(usual, wanted + sizeof(Chunk)) + os::page_size - 1) & ~(os::page_size - 1);
    auto* chunk = static_cast<Chunk*>(os::reserve(size));
    if (chunk == nullptr) return false;
    *chunk = {chunk_, size};
    chunk_ = chunk;
    used_ = sizeof(Chunk);
    return true;
  }

  Chunk* chunk_ = nullptr;
  size_t used_ = 0;
};

/// A vector in an arena, for what may be copied by memcpy. What it outgrows stays in the arena.
template <class T>
class ArenaVector {
 public:
  /// False: no memory.
  bool push(Arena& arena, const T& value) { return append(arena, &value, 1); }
  bool append(Arena& arena, const T* values, size_t n) {
    if (size_ + n > capacity_) {
      const size_t capacity = std::max({size_ + n, 2 * capacity_, size_t{64}});
      T* data = static_cast<T*>(arena.take(capacity * sizeof(T)));
      if (data == nullptr) return false;
      if (size_ != 0) std::memcpy(static_cast<void*>(data), data_, size_ * sizeof(T));
      data_ = data;
      capacity_ = capacity;
    }
    if (n != 0) std::memcpy(static_cast<void*>(data_ + size_), values, n * sizeof(T));
    size_ += n;
    return true;
  }
  void clear() { size_ = 0; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace gofer::internal
