#include "runtime/goroutines/g.h"

#include <new>

#include "os/memory.h"
#include "runtime/base/assert.h"
#include "runtime/base/lock.h"
#include "runtime/report/panic.h"

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
  GFreeList free;
  atomic<int> free_count{0};
  atomic<Slab*> slabs{nullptr};  // the newest first; only ever grows
  size_t next_size = 0;          // 0: the smallest
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
  return ::new (memory) Slab{records.slabs.load(relaxed), capacity, {}};
}

// Where there is no room for a large slab and its stacks, there may be for a small one.
Slab* new_slab() {
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

// Needs the lock. A record no goroutine has had yet.
G* fresh_record() {
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

G* take_locked() {
  G* g = records.free.pop();
  return g != nullptr ? g : fresh_record();
}

void publish_count() { records.free_count.store(records.free.count(), relaxed); }

bool legal(GStatus from, GStatus to) {
  using enum GStatus;
  switch (from) {
    case dead:
      return to == idle;
    case idle:
      return to == runnable || to == dead;
    case runnable:
      return to == running;
    case running:
      return to == runnable || to == waiting || to == dead || to == syscall || to == preempted;
    case syscall:
      return to == running || to == runnable;
    case waiting:
      return to == runnable || to == copystack;
    case copystack:
      return to == waiting || to == runnable;
    case preempted:
      return to == runnable;
  }
  return false;
}

}  // namespace

const char* status_name(GStatus status) {
  switch (status) {
    case GStatus::idle:
      return "idle";
    case GStatus::runnable:
      return "runnable";
    case GStatus::running:
      return "running";
    case GStatus::syscall:
      return "syscall";
    case GStatus::waiting:
      return "waiting";
    case GStatus::dead:
      return "dead";
    case GStatus::copystack:
      return "copystack";
    case GStatus::preempted:
      return "preempted";
  }
  return "?";
}

const char* wait_reason_text(WaitReason reason) {
  switch (reason) {
    case WaitReason::none:
      return "waiting";
    case WaitReason::io_wait:
      return "IO wait";
    case WaitReason::chan_receive:
      return "chan receive";
    case WaitReason::chan_receive_nil:
      return "chan receive (nil chan)";
    case WaitReason::chan_send:
      return "chan send";
    case WaitReason::chan_send_nil:
      return "chan send (nil chan)";
    case WaitReason::select:
      return "select";
    case WaitReason::select_no_cases:
      return "select (no cases)";
    case WaitReason::sleep:
      return "sleep";
    case WaitReason::mutex_lock:
      return "sync.Mutex.Lock";
    case WaitReason::rw_mutex_rlock:
      return "sync.RWMutex.RLock";
    case WaitReason::rw_mutex_lock:
      return "sync.RWMutex.Lock";
    case WaitReason::cond_wait:
      return "sync.Cond.Wait";
    case WaitReason::semacquire:
      return "semacquire";
    case WaitReason::wait_group_wait:
      return "sync.WaitGroup.Wait";
    case WaitReason::run_main:
      return "gofer.run";
  }
  return "?";
}

void check_transition(G* g, GStatus from, GStatus to) {
  GStatus was = g->status.exchange(to, acq_rel);
  // Who readies a goroutine need not know that it is being trimmed.
  if (was == GStatus::copystack && from == GStatus::waiting) was = from;
  if (was != from || !legal(from, to)) {
    fatal_error("goroutine %lu: illegal transition %s (expected %s) -> %s", g->id, status_name(was),
                status_name(from), status_name(to));
  }
}

bool try_status(G* g, GStatus from, GStatus to) {
  GOFER_ASSERT(legal(from, to));
  return g->status.compare_exchange_strong(from, to, acq_rel, relaxed);
}

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

}  // namespace gofer::internal
