#include "runtime/waiter.h"

#include <new>

#include "os/memory.h"
#include "runtime/panic.h"
#include "runtime/queues.h"

namespace gofer::internal {
namespace {

struct FreeParkers {
  Lock lock{LockRank::records};
  Parker* first = nullptr;
};
constinit FreeParkers free_parkers;

// Gives the thread's parker to the next thread when the thread ends.
struct ParkerOwner {
  Parker* parker = nullptr;
  ~ParkerOwner() {
    if (parker == nullptr) return;
    LockGuard guard(free_parkers.lock);
    parker->link = free_parkers.first;
    free_parkers.first = parker;
    parker = nullptr;
  }
};
thread_local ParkerOwner parker_owner;

// A page of them at a time, without malloc: the caller holds the lock of a primitive.
Parker* take_parker() {
  LockGuard guard(free_parkers.lock);
  if (free_parkers.first == nullptr) {
    auto* page = static_cast<Parker*>(os::reserve(os::page_size));
    if (page == nullptr) fatal_error("out of memory: a thread cannot wait");
    for (size_t i = 0; i < os::page_size / sizeof(Parker); ++i) {
      Parker* fresh = ::new (page + i) Parker;
      fresh->link = free_parkers.first;
      free_parkers.first = fresh;
    }
  }
  Parker* parker = free_parkers.first;
  free_parkers.first = parker->link;
  return parker;
}

}  // namespace

Parker* this_threads_parker() {
  if (parker_owner.parker == nullptr) parker_owner.parker = take_parker();
  return parker_owner.parker;
}

void park_waiter(M* m, Waiter& w, WaitReason reason, bool (*unlock)(G* g, void* arg), void* arg) {
  if (m != nullptr) {
    park(m, reason, unlock, arg);
    return;
  }
  if (sched.forked.load(relaxed)) used_after_fork();
  // Counted before it can be woken, discounted by who wakes it: the count never says "parked" of a
  // thread that is on its way.
  sched.parked_threads.fetch_add(1, relaxed);
  Parker* parker = w.thread;
  unlock(nullptr, arg);
  parker->note.wait(-1);
}

void wake_list(M* m, Waiter* first) {
  if (m == nullptr && sched.forked.load(relaxed)) used_after_fork();
  while (first != nullptr) {
    Waiter* next = first->next;
    if (first->g != nullptr) {
      ready(m, first->g);
    } else {
      sched.parked_threads.fetch_sub(1, relaxed);
      first->thread->note.signal();
    }
    first = next;
  }
}

}  // namespace gofer::internal
