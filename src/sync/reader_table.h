// The table in which the readers of a biased rw_mutex enter themselves, instead of in its word.
//
// If all readers count themselves in one word, the word travels between the cores with each lock
// and unlock, and readers are no faster together than one after the other. In the table, each
// thread has a line of its own, in which it writes the address of the lock. Readers then only read
// the lock's word. Writers pay for that: they look through the whole table.
//
// An entry stands for one reader, but not for a particular one. Any reader of the same lock may
// take it out, and so may a writer, which counts it in the word instead. So a goroutine may unlock
// in another thread than it locked in, and another goroutine may unlock for it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/procs/current.h"

namespace gofer::internal {

class ReaderTable {
 public:
  constexpr ReaderTable() = default;

  /// Enters one reader. Returns false if the place is taken. seq_cst orders this before what the
  /// caller reads next.
  bool enter(const void* lock) {
    const void* nobody = nullptr;
    return place(lock).compare_exchange_strong(nobody, lock, std::memory_order_seq_cst,
                                               std::memory_order_relaxed);
  }
  /// Takes one reader out. Returns false if the place where this thread enters is empty.
  bool leave(const void* lock) {
    return place(lock).compare_exchange_strong(lock, nullptr, std::memory_order_release,
                                               std::memory_order_relaxed);
  }
  /// Takes all readers of the lock out and returns their number. Loads the entries with seq_cst.
  uint64_t take_all(const void* lock);

 private:
  static constexpr size_t lines = 64;
  static constexpr size_t places = 16;  // two cache lines, because they are fetched in pairs
  using Place = std::atomic<const void*>;
  struct alignas(128) Line {
    Place places[ReaderTable::places]{};
  };

  Place& place(const void* lock);

  Line lines_[lines]{};
};

extern constinit ReaderTable reader_table;

}  // namespace gofer::internal
