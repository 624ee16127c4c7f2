#include "sync/reader_table.h"

#include "runtime/procs/current.h"
#include "runtime/threads/m.h"

namespace gofer::internal {

constinit ReaderTable reader_table;

namespace {

constexpr uint64_t mix = 0x9e3779b97f4a7c15;

size_t hash(const void* p, int bits) {
  return static_cast<size_t>(reinterpret_cast<uintptr_t>(p) * mix >> (64 - bits));
}

}  // namespace

ReaderTable::Place& ReaderTable::place(const void* lock) {
  static_assert(lines == 64 && places == 16);
  const M* m = current_m();
  const size_t line = m != nullptr ? m->id % lines : hash(__builtin_thread_pointer(), 6);
  return lines_[line].places[hash(lock, 4)];
}

uint64_t ReaderTable::take_all(const void* lock) {
  const size_t column = hash(lock, 4);
  uint64_t taken = 0;
  for (Line& line : lines_) {
    Place& p = line.places[column];
    const void* reader = lock;
    if (p.load(std::memory_order_seq_cst) == lock &&
        p.compare_exchange_strong(reader, nullptr, std::memory_order_acquire,
                                  std::memory_order_acquire)) {
      ++taken;
    }
  }
  return taken;
}

}  // namespace gofer::internal
