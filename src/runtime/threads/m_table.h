// The table of all Ms. Records of Ms are never freed, so the table only grows.
#pragma once

#include "runtime/base/atomic.h"
#include "runtime/base/walk.h"
#include "runtime/procs/p_word.h"
#include "runtime/threads/m.h"

namespace gofer::internal {

/// By M::id. nullptr before the runtime starts.
[[gnu::visibility("hidden")]] extern atomic<M*>* m_table;

/// Every M that ever was: `for (M* m : all_ms())`. The walk may miss new ones.
inline Walk<M> all_ms() { return {m_table + 1, m_table + PWord::max_owner + 1}; }

/// The M after the one with that M::id; after the last one comes the first.
inline M* m_after(uint32_t id) {
  M* m = id < PWord::max_owner ? m_table[id + 1].load(acquire) : nullptr;
  return m != nullptr ? m : m_table[1].load(acquire);
}

/// The M that the word of a P names.
inline M* owner_of(PWord word) { return m_table[word.owner()].load(acquire); }

}  // namespace gofer::internal
