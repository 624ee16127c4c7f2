#include "runtime/wait/waiter.h"

#include <new>
#include <utility>

#include "os/memory.h"
#include "os/thread.h"
#include "runtime/base/sanitizer.h"
#include "runtime/report/panic.h"
#include "runtime/sched/queues.h"
#include "runtime/wait/timer.h"

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
  // thread, woken already, has ended: then it wakes nobody, or somebody else for nothing.
  if (owner.own.left_behind) fatal_error("out of memory: a thread cannot wait");
  owner.parker = &owner.own;
  return owner.parker;
}

void leave_wait_behind() {
  sched.parked_threads.fetch_sub(1, relaxed);
  parker_owner.parker->left_behind = true;
  parker_owner.parker = nullptr;
}

namespace {

// In the thread that runs the exit handlers. Nobody else would see that its wait can never end.
void park_exiting_thread(Parker* parker) {
  int64_t look_ns = first_deadlock_look_ns;
  while (!parker->note.wait(look_ns)) {
    check_deadlock();
    look_ns = next_deadlock_look(look_ns);
  }
}

}  // namespace

void park_waiter(M* m, Waiter& w, WaitReason reason, UnlockFn unlock, void* arg) {
  if (m != nullptr) {
    park(m, reason, unlock, arg);
    return;
  }
  if (sched.forked.load(relaxed)) used_after_fork();
  // Counted before it can be woken, discounted by who wakes it: the count never says "parked" of a
  // thread that is on its way.
  if (!w.counted) w.counted = true;  // one that can be woken already must not be written to
  sched.parked_threads.fetch_add(1, relaxed);
  Parker* parker = w.thread;
  unlock(nullptr, arg);
  if (is_exiting_thread()) {
    park_exiting_thread(parker);
    return;
  }
#ifdef GOFER_TSAN
  constexpr int64_t signals_wait_ns = 10'000'000;
  while (!parker->note.wait(signals_wait_ns)) sanitizer_let_signals_in();
#else
  parker->note.wait(-1);
#endif
}

namespace {

struct EarlyPark {
  UnlockFn unlock;
  void* arg;
  Contest* contest;
};

bool unlock_early(G* g, void* p) {
  auto* early = static_cast<EarlyPark*>(p);
  early->unlock(g, early->arg);
  return early->contest->state.exchange(Contest::parked, acq_rel) != Contest::woken;
}

struct TimeLimit {
  Timer timer;
  Waiter waiter;  // claims the contest for the time
};

bool claim_for_time(Timer* t) { return claim(static_cast<Waiter*>(t->arg)); }

// The first runs next, however many wait; of those that are due at the same time the others go
// behind, in the order of their times. But a short one does not wait behind goroutines of which
// some may compute.
void wake_by_time(M* m, Timer* t) {
  G* g = wake_thread_or_get(static_cast<Waiter*>(t->arg));
  if (g == nullptr) return;
  if (m != nullptr && m->p->queue.size() != 0 && g->is_short()) {
    const UrgentThread urgent;
    ready(nullptr, g);
  } else {
    ready(m, g, m != nullptr && std::exchange(m->timer_wakes_next, false));
  }
}

bool park_thread_until(Waiter& w, UnlockFn unlock, void* arg, int64_t deadline_ns) {
  if (sched.forked.load(relaxed)) used_after_fork();
  Parker* parker = w.thread;
  unlock(nullptr, arg);
  for (;;) {
    const int64_t now = os::now_ns();
    if (now >= deadline_ns) break;
    if (parker->note.wait(deadline_ns - now)) return true;
  }
  Waiter time;
  time.contest = w.contest;
  if (claim(&time)) return false;
  parker->note.wait(-1);  // who was first is about to wake us
  return true;
}

}  // namespace

bool park_until(M* m, Waiter& w, WaitReason reason, UnlockFn unlock, void* arg,
                int64_t deadline_ns) {
  Contest* contest = w.contest;
  if (m == nullptr && deadline_ns != no_deadline) {
    return park_thread_until(w, unlock, arg, deadline_ns);
  }
  if (m == nullptr || (deadline_ns == no_deadline && !contest->early)) {
    park_waiter(m, w, reason, unlock, arg);
    return true;
  }
  if (!contest->early) contest->early = true;
  EarlyPark early{unlock, arg, contest};
  if (deadline_ns == no_deadline) {
    park(m, reason, unlock_early, &early);
    return true;
  }
  TimeLimit limit;
  limit.waiter.g = w.g;
  limit.waiter.contest = contest;
  limit.timer.claim = claim_for_time;
  limit.timer.run = wake_by_time;
  limit.timer.arg = &limit.waiter;
  if (!start_timer(m, &limit.timer, deadline_ns, true)) {
    fatal_error("out of memory: a goroutine cannot wait for a time");
  }
  park(m, reason, unlock_early, &early);
  if (contest->winner.load(relaxed) == &limit.waiter) return false;
  stop_timer(&limit.timer);
  return true;
}

G* wake_thread_or_get(Waiter* w) {
  if (w->thread != nullptr) {
    if (w->counted && !w->thread->left_behind) sched.parked_threads.fetch_sub(1, relaxed);
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
  if (m == nullptr && sched.forked.load(relaxed)) used_after_fork();
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
