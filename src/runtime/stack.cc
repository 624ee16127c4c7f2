#include "runtime/stack.h"

#include <atomic>
#include <new>

#include "os/memory.h"
#include "runtime/lock.h"
#include "runtime/sanitizer.h"

namespace gofer::internal {

constinit StackClass the_default_stack_class{3};

namespace {

constexpr size_t warm_bytes = 16 * 1024;  // kept at the top of a stack in the pool
constexpr size_t leak_root = 64 * 1024;   // at the top of a stack
constexpr size_t warm_stacks = 4096;      // whose tops are kept

// Address space not yet carved into stacks. The note lies at the range's own end: in the top page
// of its last stack, which is carved last.
struct Range {
  Range* next;
  char* begin;
};

// The free stacks of a class, a LIFO of which the lowest `cold` entries have no pages. The entries
// lie outside of the stacks, in chunks made together with the address space, so that freeing a
// stack needs no memory.
struct Pool {
  static constexpr size_t chunk = 4096;
  static constexpr size_t max_chunks = 4096;

  Lock lock{LockRank::stacks};
  size_t count = 0;
  size_t cold = 0;
  size_t carved = 0;
  size_t reserved = 0;
  size_t chunks = 0;
  Range* ranges = nullptr;
  char** entries[max_chunks] = {};

  char*& entry(size_t i) { return entries[i / chunk][i % chunk]; }
};

constinit Pool pools[stack_classes];
constinit std::atomic<GuardKind> guard_kind{GuardKind::marker};

Pool& pool_of(StackClass c) { return pools[static_cast<int>(c)]; }

bool install_guard(char* stack) {
  const GuardKind kind = guard_kind.load(std::memory_order_relaxed);
  if (kind == GuardKind::none) return true;
  if (kind == GuardKind::marker && os::guard_by_marker(stack, stack_guard_size)) return true;
  return os::guard_by_mprotect(stack, stack_guard_size);
}

void discard_below_top(char* stack, size_t size, size_t keep) {
  os::discard(stack + stack_guard_size, size - stack_guard_size - keep);
}

// The functions below need the pool's lock.

bool reserve_locked(Pool& pool, StackClass c, size_t n) {
  const size_t size = stack_size(c);
  while (pool.chunks * Pool::chunk < pool.reserved + n) {
    if (pool.chunks == Pool::max_chunks) return false;
    auto* fresh = static_cast<char**>(os::reserve(Pool::chunk * sizeof(char*)));
    if (fresh == nullptr) return false;
    pool.entries[pool.chunks++] = fresh;
  }
  char* base = static_cast<char*>(os::reserve(n * size, size));
  if (base == nullptr) return false;
  pool.ranges = ::new (base + n * size - sizeof(Range)) Range{pool.ranges, base};
  pool.reserved += n;
  return true;
}

char* carve_locked(Pool& pool, size_t size) {
  Range* range = pool.ranges;
  if (range == nullptr) return nullptr;
  char* stack = range->begin;
  if (!install_guard(stack)) return nullptr;
  ++pool.carved;
  range->begin = stack + size;
  if (range->begin == reinterpret_cast<char*>(range + 1)) pool.ranges = range->next;
  // What a leak checker looks at: reading all of every stack at exit would take minutes.
  const size_t root = size - stack_guard_size < leak_root ? size - stack_guard_size : leak_root;
  sanitizer_add_root(stack + size - root, root);
  return stack;
}

char* take_locked(Pool& pool, StackClass c) {
  if (pool.count != 0) {
    char* stack = pool.entry(--pool.count);
    if (pool.cold > pool.count) pool.cold = pool.count;
    return stack;
  }
  if (pool.ranges == nullptr && !reserve_locked(pool, c, 4) && !reserve_locked(pool, c, 1)) {
    return nullptr;
  }
  return carve_locked(pool, stack_size(c));
}

void put_locked(Pool& pool, StackClass c, char* stack) {
  pool.entry(pool.count++) = stack;
  if (pool.count - pool.cold > warm_stacks) {
    discard_below_top(pool.entry(pool.cold++), stack_size(c), 0);
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

void set_guard_kind(GuardKind kind) { guard_kind.store(kind, std::memory_order_relaxed); }

bool refill_stacks(StackCache& cache) {
  const StackClass c = default_stack_class();
  Pool& pool = pool_of(c);
  LockGuard guard(pool.lock);
  while (cache.count < StackCache::batch) {
    char* stack = take_locked(pool, c);
    if (stack == nullptr) break;
    cache.slot[cache.count++] = stack;
  }
  return cache.count != 0;
}

void drain_stacks(StackCache& cache, int keep) {
  const int surplus = cache.count - keep;
  if (surplus <= 0) return;
  const StackClass c = default_stack_class();
  for (int i = 0; i < surplus; ++i) discard_below_top(cache.slot[i], stack_size(c), warm_bytes);
  Pool& pool = pool_of(c);
  {
    LockGuard guard(pool.lock);
    for (int i = 0; i < surplus; ++i) put_locked(pool, c, cache.slot[i]);
  }
  for (int i = 0; i < keep; ++i) cache.slot[i] = cache.slot[surplus + i];
  cache.count = keep;
}

char* take_stack(StackClass c) {
  Pool& pool = pool_of(c);
  LockGuard guard(pool.lock);
  return take_locked(pool, c);
}

void put_stack(char* stack, StackClass c) {
  discard_below_top(stack, stack_size(c), warm_bytes);
  Pool& pool = pool_of(c);
  LockGuard guard(pool.lock);
  put_locked(pool, c, stack);
}

bool reserve_stacks(size_t n) {
  const StackClass c = default_stack_class();
  Pool& pool = pool_of(c);
  LockGuard guard(pool.lock);
  return reserve_locked(pool, c, n);
}

bool any_stack_in_use(int in_caches) {
  Pool& pool = pool_of(default_stack_class());
  LockGuard guard(pool.lock);
  return pool.carved > pool.count + static_cast<size_t>(in_caches);
}

}  // namespace gofer::internal
