// pool: one shelf of objects per P. A shelf has a short lock, because a goroutine on another P may
// take from it when its own shelf is empty.
#include <gofer/pool.h>

#include <new>

#include "runtime/base/lock.h"
#include "runtime/procs/current.h"

namespace gofer::detail {

using namespace internal;

namespace {

constexpr uint32_t shelf_size = 14;
constexpr uint32_t shelves = 64;  // a P uses the shelf with its own number, modulo this

struct alignas(128) Shelf {
  ShortLock lock{LockRank::primitive};
  atomic<uint32_t> count{0};
  void* objects[shelf_size];

  void* take() {
    if (count.load(relaxed) == 0) return nullptr;
    LockGuard guard(lock);
    const uint32_t n = count.load(relaxed);
    if (n == 0) return nullptr;
    count.store(n - 1, relaxed);
    return objects[n - 1];
  }
  bool give(void* object) {
    LockGuard guard(lock);
    const uint32_t n = count.load(relaxed);
    if (n == shelf_size) return false;
    objects[n] = object;
    count.store(n + 1, relaxed);
    return true;
  }
};

}  // namespace

struct pool_core {
  Shelf shelf[shelves];
};

pool_core* pool_new() { return new pool_core; }

void pool_delete(pool_core* core, void (*destroy)(void*)) noexcept {
  for (Shelf& shelf : core->shelf) {
    for (uint32_t n = shelf.count.load(relaxed); n > 0; --n) destroy(shelf.objects[n - 1]);
  }
  delete core;
}

void* pool_take(pool_core* core) noexcept {
  Inside inside;
  const uint32_t mine = inside.m() != nullptr ? inside.m()->p->id % shelves : 0;
  for (uint32_t i = 0; i < shelves; ++i) {
    if (void* p = core->shelf[(mine + i) % shelves].take(); p != nullptr) return p;
  }
  return nullptr;
}

bool pool_give(pool_core* core, void* object) noexcept {
  Inside inside;
  const uint32_t mine = inside.m() != nullptr ? inside.m()->p->id % shelves : 0;
  return core->shelf[mine].give(object);
}

}  // namespace gofer::detail
