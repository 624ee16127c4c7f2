#include "runtime/goroutines/g.h"

#include <new>

#include "os/memory.h"
#include "runtime/base/assert.h"
#include "runtime/base/debug_table.h"
#include "runtime/base/lock.h"

extern "C" [[gnu::visibility("hidden")]] const char gofer_gdb_script;  // src/debug/gdb_script.S

namespace gofer::internal {
namespace {

// Slabs double from 64 KiB to 2 MiB: a small program stays small, a large one gets huge pages. The
// address space of as many stacks is reserved with the records, so that a goroutine that `go`
// accepted finds one when it first runs.
constexpr size_t smallest_slab = 64 * 1024;
constexpr size_t largest_slab = 2 * 1024 * 1024;
// Where the kernel charges stacks as soon as they are reserved: 31 and 127 records.
constexpr size_t smallest_charged_slab = os::page_size;
constexpr size_t largest_charged_slab = 16 * 1024;

struct alignas(64) Slab {
  Slab* next;
  size_t capacity;
  atomic<size_t> used{0};  // records that were ever handed out

  G* record(size_t i) { return reinterpret_cast<G*>(this + 1) + i; }
};

struct Records {
  Lock lock{LockRank::records};
  GFreeList free GOFER_GUARDED_BY(lock);
  atomic<int> free_count{0};
  atomic<Slab*> slabs{nullptr};                 // the newest first; only ever grows
  size_t next_size GOFER_GUARDED_BY(lock) = 0;  // 0: the smallest
  atomic<size_t> bytes{0};                      // of all slabs
};

constinit Records records;

Slab* new_slab_of(size_t size) {
  const bool huge = size == largest_slab;
  void* memory = huge ? os::reserve_dense(size, size) : os::reserve(size);
  if (memory == nullptr) return nullptr;
  const size_t capacity = (size - sizeof(Slab)) / sizeof(G);
  if (!reserve_stacks(capacity)) {
    os::release(memory, size);
    return nullptr;
  }
  sanitizer_add_root(memory, size);
  records.bytes.store(records.bytes.load(relaxed) + size, relaxed);
  return ::new (memory) Slab{records.slabs.load(relaxed), capacity, {}};
}

// Where there is no room for a large slab and its stacks, there may be for a small one.
Slab* new_slab() GOFER_REQUIRES(records.lock) {
  const bool charged = stacks_are_charged_early();
  const size_t largest = charged ? largest_charged_slab : largest_slab;
  if (records.next_size == 0) records.next_size = charged ? smallest_charged_slab : smallest_slab;
  for (size_t size = records.next_size; size >= os::page_size; size /= 2) {
    if (Slab* slab = new_slab_of(size); slab != nullptr) {
      records.next_size = size < largest ? size * 2 : size;
      return slab;
    }
  }
  return nullptr;
}

// A record that no goroutine has had yet.
G* fresh_record() GOFER_REQUIRES(records.lock) {
  Slab* slab = records.slabs.load(relaxed);
  if (slab == nullptr || slab->used.load(relaxed) == slab->capacity) {
    slab = new_slab();
    if (slab == nullptr) return nullptr;
    records.slabs.store(slab, release);
  }
  const size_t i = slab->used.load(relaxed);
  G* g = ::new (slab->record(i)) G;
  slab->used.store(i + 1, release);
  return g;
}

G* take_locked() GOFER_REQUIRES(records.lock) {
  G* g = records.free.pop();
  return g != nullptr ? g : fresh_record();
}

void publish_count() GOFER_REQUIRES(records.lock) {
  records.free_count.store(records.free.count(), relaxed);
}

}  // namespace

bool refill_free_gs(GFreeList& list) {
  LockGuard guard(records.lock);
  for (int i = 0; i < g_free_batch; ++i) {
    G* g = take_locked();
    if (g == nullptr) break;
    list.push(g);
  }
  publish_count();
  return list.count() != 0;
}

void drain_free_gs(GFreeList& list, int keep) {
  LockGuard guard(records.lock);
  while (list.count() > keep) records.free.push(list.pop());
  publish_count();
}

G* take_free_g() {
  LockGuard guard(records.lock);
  G* g = take_locked();
  publish_count();
  return g;
}

void put_free_g(G* g) {
  LockGuard guard(records.lock);
  records.free.push(g);
  publish_count();
}

int count_free_gs() { return records.free_count.load(relaxed); }

size_t g_record_bytes() { return records.bytes.load(relaxed); }

G* GCursor::next() {
  auto* slab = static_cast<Slab*>(slab_);
  if (slab == nullptr) slab = records.slabs.load(acquire);
  while (slab != nullptr && at_ == slab->used.load(acquire)) {
    slab = slab->next;
    at_ = 0;
  }
  slab_ = slab;
  return slab == nullptr ? nullptr : slab->record(at_++);
}

void for_each_g(void (*f)(G* g, void* arg), void* arg) {
  for (Slab* slab = records.slabs.load(acquire); slab != nullptr; slab = slab->next) {
    const size_t used = slab->used.load(acquire);
    for (size_t i = 0; i < used; ++i) f(slab->record(i), arg);
  }
}

// tools/gdb reads the records. The class of a stack is a bit-field, which has no offsetof: it is in
// the byte behind the reason of the wait.
GOFER_DEBUG_TABLE(gofer_debug_goroutines) = {{"script", 0, &gofer_gdb_script},
                                             {"records.slabs", 0, &records.slabs},
                                             {"smallest_stack", smallest_stack},
                                             {"stack_guard_size", stack_guard_size},
                                             GOFER_DEBUG_SIZE(Slab),
                                             GOFER_DEBUG_FIELD(Slab, next),
                                             GOFER_DEBUG_FIELD(Slab, used),
                                             GOFER_DEBUG_SIZE(G),
                                             GOFER_DEBUG_FIELD(G, head),
                                             GOFER_DEBUG_FIELD(G, status),
                                             GOFER_DEBUG_FIELD(G, wait_reason),
                                             {"G.stack_class", offsetof(G, wait_reason) + 1},
                                             {"G.stack_class.mask", 0x7f},
                                             GOFER_DEBUG_FIELD(G, entry),
                                             GOFER_DEBUG_FIELD(G, id),
                                             GOFER_DEBUG_FIELD(G, parent_id),
                                             GOFER_DEBUG_FIELD(G, create_pc),
                                             GOFER_DEBUG_FIELD(G, name),
                                             GOFER_DEBUG_SIZE(StackHead),
                                             GOFER_DEBUG_FIELD(StackHead, sp),
                                             GOFER_DEBUG_FIELD(StackHead, m),
                                             GOFER_DEBUG_FIELD(StackHead, own_m),
                                             GOFER_DEBUG_FIELD(StackHead, tied),
                                             GOFER_DEBUG_FIELD(StackHead, locks),
                                             {}};

}  // namespace gofer::internal
