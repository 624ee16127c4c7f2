#include "runtime/wait/waiter.h"

#include <new>

#include "os/memory.h"
#include "runtime/process/exit.h"
#include "runtime/process/process_state.h"
#include "runtime/process/start.h"
#include "runtime/report/panic.h"
#include "runtime/sched/queues.h"

namespace gofer::internal {

constinit atomic<int32_t> parked_threads{0};

namespace {

struct FreeParkers {
  Lock lock{LockRank::records};
  Parker* first = nullptr;
};
constinit FreeParkers free_parkers;

// Gives the thread's parker to the next thread when the thread ends.
struct ParkerOwner {
  Parker* parker = nullptr;
  Parker own;  // for a thread that gets none, see this_threads_parker
  ~ParkerOwner() {
    note_end_of_thread();
    if (parker == nullptr || parker == &own) return;
    LockGuard guard(free_parkers.lock);
    parker->link = free_parkers.first;
    free_parkers.first = parker;
    parker = nullptr;
  }
};
thread_local ParkerOwner parker_owner;

// A page of them at a time, without malloc: the caller holds the lock of a primitive. nullptr
// without memory.
Parker* take_parker() {
  LockGuard guard(free_parkers.lock);
  if (free_parkers.first == nullptr) {
    auto* page = static_cast<Parker*>(os::reserve(os::page_size));
    if (page == nullptr) return nullptr;
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
  ParkerOwner& owner = parker_owner;
  if (owner.parker != nullptr) return owner.parker;
  owner.parker = take_parker();
  if (owner.parker != nullptr) return owner.parker;
  // Without memory one in the thread's own will do. The waker may come to its system call when the
  // thread, woken already, has ended: then it wakes no thread, or another one in vain.
  if (owner.own.left_behind) fatal_error("out of memory: a thread cannot wait");
  owner.parker = &owner.own;
  return owner.parker;
}

void leave_wait_behind() {
  parked_threads.fetch_sub(1, relaxed);
  parker_owner.parker->left_behind = true;
  parker_owner.parker = nullptr;
}

G* wake_thread_or_get(Waiter* w) {
  if (w->thread != nullptr) {
    if (w->counted && !w->thread->left_behind) parked_threads.fetch_sub(1, relaxed);
    w->thread->note.signal();
    return nullptr;
  }
  G* g = w->g;
  if (w->contest != nullptr && w->contest->early &&
      w->contest->state.exchange(Contest::woken, acq_rel) != Contest::parked) {
    return nullptr;
  }
  return g;
}

void wake(M* m, Waiter* w, bool next) {
  if (m == nullptr && process.forked.load(relaxed)) used_after_fork();
  if (G* g = wake_thread_or_get(w); g != nullptr) ready(m, g, next);
}

void wake_list(M* m, Waiter* first) {
  while (first != nullptr) {
    Waiter* next = first->next;
    wake(m, first);
    first = next;
  }
}

}  // namespace gofer::internal
