#include "runtime/stacks/stack.h"

#include "debug/valgrind.h"
#include "os/memory.h"
#include "runtime/base/lock.h"
#include "runtime/base/sanitizer.h"
#include "runtime/stacks/stack_space.h"

namespace gofer::internal {

constinit StackClass the_default_stack_class{3};

namespace {

constexpr size_t warm_bytes = 16 * 1024;  // kept at the top of a stack in the pool
constexpr size_t leak_root = 64 * 1024;   // at the top of a stack
constexpr size_t untrimmed_stacks = 256;  // that keep all their pages
constexpr size_t warm_stacks = 4096;      // that keep their tops

// A free stack in the pool, with what is known of it in the low bits of its address.
struct Entry {
  static constexpr uintptr_t fresh = 1;      // a place that is yet to be prepared
  static constexpr uintptr_t spaced = 2;     // the same: it is a spaced one
  static constexpr uintptr_t untrimmed = 4;  // may have pages anywhere
  uintptr_t bits = 0;

  char* stack() const { return reinterpret_cast<char*>(bits & ~uintptr_t{7}); }
  bool is(uintptr_t flag) const { return (bits & flag) != 0; }
};

Entry make_entry(char* stack, uintptr_t flags) {
  return {reinterpret_cast<uintptr_t>(stack) | flags};
}

// The free stacks of a class: a LIFO, of which the lowest `cold` entries have no pages. The entries
// lie outside of the stacks, in chunks made together with the address space, so that freeing a
// stack needs no memory. No system call is made under the lock, but for new address space.
struct Pool {
  static constexpr size_t chunk = 4096;
  static constexpr size_t max_chunks = 4096;

  Lock lock{LockRank::stacks};
  size_t count GOFER_GUARDED_BY(lock) = 0;
  size_t cold GOFER_GUARDED_BY(lock) = 0;
  size_t carved GOFER_GUARDED_BY(lock) = 0;
  size_t places GOFER_GUARDED_BY(lock) = 0;  // reserved, for as many stacks
  size_t chunks GOFER_GUARDED_BY(lock) = 0;
  StackSpace space GOFER_GUARDED_BY(lock);
  Entry* entries[max_chunks] GOFER_GUARDED_BY(lock) = {};

  Entry& entry(size_t i) GOFER_REQUIRES(lock) { return entries[i / chunk][i % chunk]; }
  size_t warm() const GOFER_REQUIRES(lock) { return count - cold; }
  void push(Entry e) GOFER_REQUIRES(lock) { entry(count++) = e; }
  void push_cold(Entry e) GOFER_REQUIRES(lock) {
    entry(count++) = entry(cold);
    entry(cold++) = e;
  }
};

constinit Pool pools[stack_classes];
constinit std::atomic<uint64_t> trimmed{0};

Pool& pool_of(StackClass c) { return pools[static_cast<int>(c)]; }

// Gives back the pages of at most 64 stacks but for `keep` bytes at their tops.
void discard_below_top(char* const* stacks, int n, size_t size, size_t keep) {
  void* ranges[64];
  for (int i = 0; i < n; ++i) ranges[i] = stacks[i] + stack_guard_size;
  os::discard_many(ranges, static_cast<size_t>(n), size - stack_guard_size - keep);
  trimmed.fetch_add(static_cast<uint64_t>(n), std::memory_order_relaxed);
}

bool make_room_locked(Pool& pool, size_t n) GOFER_REQUIRES(pool.lock) {
  while (pool.chunks * Pool::chunk < pool.places + n) {
    if (pool.chunks == Pool::max_chunks) return false;
    auto* more = static_cast<Entry*>(os::reserve(Pool::chunk * sizeof(Entry)));
    if (more == nullptr) return false;
    pool.entries[pool.chunks++] = more;
  }
  return true;
}

bool reserve_locked(Pool& pool, StackClass c, size_t n) GOFER_REQUIRES(pool.lock) {
  if (!make_room_locked(pool, n) || !pool.space.reserve(c, n)) return false;
  pool.places += n;
  return true;
}

// A stack that was never used, yet to be prepared.
Entry carve_locked(Pool& pool, StackClass c) GOFER_REQUIRES(pool.lock) {
  if (pool.space.wants_spaced() && make_room_locked(pool, StackSpace::spaced_batch)) {
    pool.places += pool.space.add_spaced(c);
  }
  StackPlace place = pool.space.carve(c);
  if (place.stack == nullptr && (reserve_locked(pool, c, 4) || reserve_locked(pool, c, 1))) {
    place = pool.space.carve(c);
  }
  if (place.stack == nullptr) return {};
  ++pool.carved;
  return make_entry(place.stack, Entry::fresh | (place.spaced ? Entry::spaced : 0));
}

Entry take_locked(Pool& pool, StackClass c) GOFER_REQUIRES(pool.lock) {
  if (pool.count == 0) return carve_locked(pool, c);
  const Entry e = pool.entry(--pool.count);
  if (pool.cold > pool.count) pool.cold = pool.count;
  return e;
}

// What was taken becomes usable. The kernel may refuse a map entry for a spaced stack: that one is
// lost, and a dense one takes its place. nullptr: there is none.
char* prepare(Pool& pool, StackClass c, Entry e) {
  if (e.bits == 0) return nullptr;
  if (!e.is(Entry::fresh)) return e.stack();
  if (!prepare_place({e.stack(), e.is(Entry::spaced)}, c)) {
    LockGuard guard(pool.lock);
    pool.space.give_up_spaced();
    --pool.carved;
    e = carve_locked(pool, c);
    if (e.bits == 0) return nullptr;
    prepare_place({e.stack(), false}, c);
  }
  char* stack = e.stack();
  // What a leak checker looks at: reading all of every stack at exit would take minutes.
  const size_t size = stack_size(c);
  const size_t root = size - stack_guard_size < leak_root ? size - stack_guard_size : leak_root;
  sanitizer_add_root(stack + size - root, root);
  tell_valgrind_of_stack(stack + stack_guard_size, stack + size);
  return stack;
}

// Free stacks come back: the first ones as they are, for they will soon be used again; when many
// are there, without deep pages; when very many, without any.
void put(Pool& pool, StackClass c, char* const* stacks, int n, size_t untrimmed) {
  const size_t size = stack_size(c);
  size_t warm;
  {
    LockGuard guard(pool.lock);
    warm = pool.warm();
    if (warm < untrimmed) {
      for (int i = 0; i < n; ++i) pool.push(make_entry(stacks[i], Entry::untrimmed));
      return;
    }
  }
  const bool keep = warm < warm_stacks;
  discard_below_top(stacks, n, size, keep ? warm_bytes : 0);
  LockGuard guard(pool.lock);
  for (int i = 0; i < n; ++i) {
    const Entry e = make_entry(stacks[i], 0);
    if (keep) {
      pool.push(e);
    } else {
      pool.push_cold(e);
    }
  }
}

// Takes the untrimmed stacks among the warm ones out of the pool, some at a time, and puts them
// back without their deep pages.
void trim(Pool& pool, StackClass c) {
  constexpr int batch = 16;
  for (size_t seen = 0;;) {
    Entry deep[batch];
    int n = 0;
    {
      LockGuard guard(pool.lock);
      size_t i = pool.cold + seen;
      for (; i < pool.count && n < batch; ++i) {
        if (!pool.entry(i).is(Entry::untrimmed)) continue;
        deep[n++] = pool.entry(i);
        pool.entry(i) = pool.entry(--pool.count);
        --i;
      }
      seen = i - pool.cold;
    }
    if (n == 0) return;
    char* stacks[batch];
    for (int i = 0; i < n; ++i) stacks[i] = deep[i].stack();
    discard_below_top(stacks, n, stack_size(c), warm_bytes);
    LockGuard guard(pool.lock);
    for (int i = 0; i < n; ++i) pool.push(make_entry(deep[i].stack(), 0));
  }
}

}  // namespace

bool stack_class_for(size_t usable, StackClass& out) {
  if (usable == 0) {
    out = default_stack_class();
    return true;
  }
  for (int i = 0; i < stack_classes; ++i) {
    if (stack_size(StackClass(i)) - stack_guard_size >= usable) {
      out = StackClass(i);
      return true;
    }
  }
  return false;
}

void set_default_stack_size(size_t usable) {
  StackClass c;
  if (stack_class_for(usable, c)) the_default_stack_class = c;
}

bool refill_stacks(StackCache& cache) {
  const StackClass c = default_stack_class();
  Pool& pool = pool_of(c);
  Entry taken[StackCache::batch];
  int n = 0;
  {
    LockGuard guard(pool.lock);
    while (n < StackCache::batch) {
      taken[n] = take_locked(pool, c);
      if (taken[n].bits == 0) break;
      ++n;
    }
  }
  // The warmest, taken first, is to be used first.
  while (n > 0) {
    char* stack = prepare(pool, c, taken[--n]);
    if (stack != nullptr) cache.slot[cache.count++] = stack;
  }
  return cache.count != 0;
}

void drain_stacks(StackCache& cache, int keep) {
  const int surplus = cache.count - keep;
  if (surplus <= 0) return;
  const StackClass c = default_stack_class();
  put(pool_of(c), c, cache.slot, surplus, untrimmed_stacks);
  for (int i = 0; i < keep; ++i) cache.slot[i] = cache.slot[surplus + i];
  cache.count = keep;
}

void trim_stacks() {
  const StackClass c = default_stack_class();
  trim(pool_of(c), c);
}

char* take_stack(StackClass c) {
  Pool& pool = pool_of(c);
  pool.lock.lock();
  const Entry e = take_locked(pool, c);
  pool.lock.unlock();
  return prepare(pool, c, e);
}

void put_stack(char* stack, StackClass c) { put(pool_of(c), c, &stack, 1, 0); }

bool reserve_stacks(size_t n) {
  const StackClass c = default_stack_class();
  Pool& pool = pool_of(c);
  LockGuard guard(pool.lock);
  return reserve_locked(pool, c, n);
}

StackCounts count_stacks() {
  StackCounts counts;
  counts.trimmed = trimmed.load(std::memory_order_relaxed);
  for (int i = 0; i < stack_classes; ++i) {
    Pool& pool = pools[i];
    const size_t size = stack_size(StackClass(i));
    LockGuard guard(pool.lock);
    counts.reserved_bytes += pool.places * size;
    counts.pooled += pool.count;
    counts.pooled_bytes += pool.count * size;
    counts.in_use += pool.carved - pool.count;
    counts.in_use_bytes += (pool.carved - pool.count) * size;
  }
  return counts;
}

void note_trimmed() { trimmed.fetch_add(1, std::memory_order_relaxed); }

bool any_stack_outside_caches(int in_caches) {
  Pool& pool = pool_of(default_stack_class());
  LockGuard guard(pool.lock);
  return pool.carved > static_cast<size_t>(in_caches);
}

}  // namespace gofer::internal
