// Where readers of a biased rw_mutex are seen, instead of in its word.
//
// A word that all readers count themselves in travels between the cores with each lock and unlock,
// and readers are no faster together than one after the other. Here each thread has a line of its
// own, in which it writes the address of the lock. The lock's word is then only read, and the price
// is paid by writers: they look through the whole table.
//
// A reader is nobody in particular: an entry may be taken out by any reader of the same lock, and
// by a writer, which counts it in the word instead. So it does not matter that a goroutine may go
// on in another thread, or that another one unlocks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gofer::internal {

class ReaderTable {
 public:
  constexpr ReaderTable() = default;

  /// False: the place is taken. seq_cst, for what the caller reads next.
  bool enter(const void* lock) {
    const void* nobody = nullptr;
    return place(lock).compare_exchange_strong(nobody, lock, std::memory_order_seq_cst,
                                               std::memory_order_relaxed);
  }
  /// False: nobody is where this thread would have entered.
  bool leave(const void* lock) {
    return place(lock).compare_exchange_strong(lock, nullptr, std::memory_order_release,
                                               std::memory_order_relaxed);
  }
  /// Takes all readers of the lock out; how many these were. Looks at entries with seq_cst.
  uint64_t take_all(const void* lock);

 private:
  static constexpr size_t lines = 64;
  static constexpr size_t places = 16;  // two cache lines, since they are fetched in pairs
  using Place = std::atomic<const void*>;
  struct alignas(128) Line {
    Place places[ReaderTable::places]{};
  };

  Place& place(const void* lock);

  Line lines_[lines]{};
};

extern constinit ReaderTable reader_table;

}  // namespace gofer::internal
