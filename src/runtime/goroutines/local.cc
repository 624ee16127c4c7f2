// Goroutine-local values: a short array that is searched from its newest entry.
#include "runtime/goroutines/local.h"

#include <gofer/local.h>

#include <atomic>
#include <vector>

#include "runtime/procs/current.h"

namespace gofer {

namespace internal {

struct LocalTable {
  struct Entry {
    std::uint64_t id;
    void* object;
    void (*destroy)(void*);
  };
  std::vector<Entry> entries;
};

namespace {

struct ThreadLocals {
  LocalTable* table = nullptr;
  ~ThreadLocals() { destroy_locals(table); }
};
thread_local ThreadLocals thread_locals;

// A goroutine's lies on its own stack, so the address stays right if the goroutine moves.
[[gnu::noinline]] LocalTable*& my_table() {
  M* m = current_m();
  return m != nullptr && m->curg != nullptr ? m->curg->head->locals : thread_locals.table;
}

}  // namespace

void destroy_locals(LocalTable*& table) {
  while (table != nullptr) {
    LocalTable* old = std::exchange(table, nullptr);
    while (!old->entries.empty()) {
      const LocalTable::Entry last = old->entries.back();
      old->entries.pop_back();
      last.destroy(last.object);
    }
    delete old;
  }
}

}  // namespace internal

namespace detail {

using internal::LocalTable;

std::uint64_t local_new_id() noexcept {
  static constinit std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void* local_find(std::uint64_t id) noexcept {
  const LocalTable* table = internal::my_table();
  if (table == nullptr) return nullptr;
  for (auto e = table->entries.rbegin(); e != table->entries.rend(); ++e) {
    if (e->id == id) return e->object;
  }
  return nullptr;
}

void local_add(std::uint64_t id, void* object, void (*destroy)(void*)) {
  LocalTable*& table = internal::my_table();
  if (table == nullptr) table = new LocalTable;
  table->entries.push_back({id, object, destroy});
}

}  // namespace detail

}  // namespace gofer
