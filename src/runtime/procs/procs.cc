// Ps: who has one, which are idle, and how one goes from M to M.
//
// A P is held by an M (its word says by which, p_word.h), idle, stopped, or on its way: given to an
// M that has yet to take it (M::next_p). Functions with GOFER_REQUIRES(sched_lock) need the
// scheduler's lock, and none of them releases it. A function that decides under the lock which M to
// wake returns a Wakeup, and the caller wakes that M when it has released the lock.
#include "runtime/procs/procs.h"

#include "os/thread.h"
#include "runtime/procs/lost.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/retake.h"
#include "runtime/procs/spinning.h"
#include "runtime/procs/stop_world.h"
#include "runtime/procs/thread_gate.h"
#include "runtime/procs/transitions.h"
#include "runtime/sched/global_queue.h"
#include "runtime/threads/bound.h"
#include "runtime/threads/idle.h"
#include "runtime/threads/m_table.h"
#include "runtime/threads/threads.h"
#include "runtime/threads/transitions.h"
#include "runtime/watch/sysmon.h"

namespace gofer::internal {

constinit PTable p_table;
constinit WakeState wake_state;
constinit P* idle_ps = nullptr;

namespace {

// While tied ones crowd, an M gets p to serve fresh goroutines; or a single one that was woken, and
// then the tied ones again, because among those in p's ring may be many that compute.
void set_budget(P* p, Pass to) {
  if (crowded()) p->budget = to == Pass::to_urgent ? 1 : switches_per_look;
}

}  // namespace

void acquire_p(M* m, P* p) {
  forget_lost(m);
  transition::acquired(m, p);
}

P* release_p(M* m) {
  P* p = m->p;
  transition::given_up(m, p);
  return p;
}

void put_idle_p(P* p) {
  transition::went_idle(p);
  p->link = idle_ps;
  idle_ps = p;
  wake_state.idle_p_count.fetch_add(1, seq_cst);
}

namespace {

// Takes the P out of the list to which `at` points.
P* unlink_idle_p(P** at) GOFER_REQUIRES(sched_lock) {
  P* p = *at;
  *at = p->link;
  p->link = nullptr;
  transition::left_idle(p);
  wake_state.idle_p_count.fetch_sub(1, seq_cst);
  if (wake_state.sysmon_sleeps.load(seq_cst) == static_cast<uint32_t>(SysmonSleep::deep))
    wake_sysmon();
  return p;
}

}  // namespace

P* take_idle_p() { return idle_ps != nullptr ? unlink_idle_p(&idle_ps) : nullptr; }

P* take_idle_p_with_work() {
  for (P** at = &idle_ps; *at != nullptr; at = &(*at)->link) {
    if (global_count_locked() != 0 || !(*at)->queue.empty()) return unlink_idle_p(at);
  }
  return nullptr;
}

int drain_idle_stacks() {
  int drained = 0;
  for (P* p = idle_ps; p != nullptr; p = p->link) {
    drained += p->stacks.count;
    drain_stacks(p->stacks, 0);
  }
  return drained;
}

P* take_unused_p() {
  if (P* p = take_idle_p(); p != nullptr) return p;
  if (threads.unborn_ps == 0) return nullptr;
  for (M* m : all_ms()) {
    P* p = m->next_p.load(relaxed);
    if (m->birth != Birth::with_p || p == nullptr) continue;
    transition::fetched_back(m, p);
    m->birth = Birth::as_reserve;
    ++threads.reserve_coming;
    --threads.unborn_ps;
    if (m->spinning) {
      transition::stopped_spinning(m);
      drop_relied_on_spinning();
    }
    return p;
  }
  return nullptr;
}

void stop_p_locked(P* p) {
  transition::stopped(p);
  if (--world.stop_wait == 0) world.stopped.signal();
}

void put_unused_p(P* p) {
  if (world.stopping.load(relaxed)) {
    stop_p_locked(p);
  } else {
    put_idle_p(p);
  }
}

void take_given_p(M* m) {
  P* p = m->next_p.load(acquire);
  acquire_p(m, p);
  transition::arrived(m, p);
}

void wake_p_slow() {
  if (!add_only_spinning()) return;
  Wakeup wakeup;
  {
    LockGuard guard(sched_lock);
    P* p = take_idle_p();
    if (p == nullptr) {
      // Under the lock: a submitter that relied on our count until now has queued its work, and the
      // M that holds the missing P looks for work before it gives the P up.
      drop_relied_on_spinning();
      return;
    }
    note_spinner_chosen();
    wakeup = start_m_locked(p, true);
  }
  wakeup.now();
}

namespace {

// Where tied goroutines are to come first: p goes to one of them. Returns its M, or nullptr.
M* start_tied_if_first_locked(P* p, Pass to) GOFER_REQUIRES(sched_lock) {
  return to == Pass::to_tied ? start_tied_locked(p) : nullptr;
}

// p has no work of its own and the world does not stop: it goes to an M that looks for work, if
// none does and no other P is idle.
Wakeup hand_off_without_work_locked(P* p) GOFER_REQUIRES(sched_lock) {
  if (wake_state.idle_p_count.load(relaxed) == 0 && add_only_spinning()) {
    note_spinner_chosen();
    return start_m_locked(p, true);
  }
  transition::freed(p);
  put_idle_p(p);
  // Timers that are due have waited for an idle P.
  if (idle_ms.sleeper != nullptr && earliest_timer_ns() <= os::now_ns()) wake_m(idle_ms.sleeper);
  // The spinning M that we saw may have found work and no idle P for the next one: this is it.
  if (!spinner_wanted()) return {};
  add_spinning();
  return start_m_locked(take_idle_p(), true);
}

Wakeup hand_off_locked(P* p, Pass to) GOFER_REQUIRES(sched_lock) {
  if (world.stopping.load(relaxed)) {
    transition::freed(p);
    stop_p_locked(p);
    return {};
  }
  if (M* m = start_tied_if_first_locked(p, to); m != nullptr) return {m};
  if (!p->queue.empty() || global_count_locked() != 0) return start_m_locked(p, false);
  return hand_off_without_work_locked(p);
}

}  // namespace

void hand_off(P* p, Pass to) {
  taking.handed_off.fetch_add(1, relaxed);
  Wakeup wakeup;
  {
    LockGuard guard(sched_lock);
    wakeup = hand_off_locked(p, to);
  }
  wakeup.now();
}

void give_up_p(M* m) {
  P* p = m->p;
  transition::left_behind(m, p);
  hand_off(p);
}

bool can_pass_on_locked(P* p, Pass to) {
  if (world.stopping.load(relaxed)) return false;
  if (to == Pass::to_tied) return global_queue.tied.front() != nullptr;
  G* next = next_global_locked();
  if (next == nullptr && p->queue.empty()) return false;
  return idle_ms.list != nullptr || global_queue.tied.front() != nullptr;
}

Wakeup pass_on_locked(P* p, Pass to) {
  if (M* m = start_tied_if_first_locked(p, to); m != nullptr) return {m};
  set_budget(p, to);
  G* next = next_global_locked();
  const bool globally = next != nullptr && (p->queue.empty() || urgent_waits());
  // Straight to its own thread, without another that would only find that out.
  if (globally && next == global_queue.tied.front()) {
    if (M* m = start_tied_locked(p); m != nullptr) return {m};
  }
  return start_m_locked(p, false);
}

M* start_tied_locked(P* p) {
  G* g = take_tied_locked();
  if (g == nullptr) return nullptr;
  transition::freed(p);
  return give_p_to_owner_locked(p, g);
}

M* give_p_to_owner_locked(P* p, G* g) {
  M* owner = untie_locked(g);
  transition::sent(owner, p, false);
  return owner;
}

M* untie_locked(G* g) {
  --idle_bound_ms;
  if (g->tied()) bump(thread_gate.tied, -1);
  return g->own_m();
}

}  // namespace gofer::internal
