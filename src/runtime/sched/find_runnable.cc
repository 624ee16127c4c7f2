// Where an M looks for work, in Go's order: what was handed to it; every 61st time the global
// queue; its P's runnext and ring; the global queue; the network; the other Ps; and again
// everything, before it sleeps.
//
// An M that looks for work at others is "spinning". spinning.h has the rules, and why no work is
// overlooked between "found nothing" and "asleep": the spinning M gives up its P (become_idle),
// stops spinning, and looks at every queue again (look_again).
#include "runtime/sched/find_runnable.h"

#include "os/thread.h"
#include "runtime/poll/netpoll.h"
#include "runtime/process/process_state.h"
#include "runtime/process/settings.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/procs.h"
#include "runtime/procs/spinning.h"
#include "runtime/procs/stop_world.h"
#include "runtime/procs/thread_gate.h"
#include "runtime/report/panic.h"
#include "runtime/sched/global_queue.h"
#include "runtime/sched/queues.h"
#include "runtime/sched/schedule.h"
#include "runtime/sched/steal_order.h"
#include "runtime/threads/bound.h"
#include "runtime/threads/idle.h"

namespace gofer::internal {
namespace {

G* take_global_locking(P* p, uint32_t max) {
  if (global_queue.size.load(relaxed) == 0) return nullptr;
  LockGuard guard(sched_lock);
  return take_global(p, max);
}

// A paused goroutine is CPU-bound, and would keep the P from those whose work is short. For so long
// after its pause it is not given a P that has other work, in its queue or in the netpoller.
constexpr int64_t longest_patience_ns = 10'000'000;

bool next_can_wait() {
  if (thread_gate.tied.load(relaxed) == 0) return false;
  LockGuard guard(sched_lock);
  const G* next = next_global_locked();
  if (next == nullptr || next != global_queue.tied.front()) return false;
  const M* m = next->own_m();
  return m->paused.load(relaxed) && os::now_ns() - m->paused_ns < longest_patience_ns;
}

// Four rounds over all Ps in a random order. What the others are about to run themselves (runnext)
// is taken only in the last round and after a pause: it is often ready for some microseconds only,
// and the pair that wakes each other is best left on one P.
constexpr int64_t steal_pause_ns = 3'000;  // the kernel's slack of 50 us comes on top, as in Go

G* steal_work(M* m) {
  P* p = m->p;
  constexpr int rounds = 4;
  const auto procs = static_cast<uint32_t>(p_table.in_use.load(acquire));
  for (int round = 0; round < rounds; ++round) {
    const bool last = round == rounds - 1;
    for (StealOrder order(procs, next_random(p)); !order.done(); order.next()) {
      if (world.stopping.load(relaxed)) return nullptr;
      P* victim = p_table.all[order.position()].load(acquire);
      if (victim == p) continue;
      bool take_next = false;
      if (last && victim->queue.size() == 0 && victim->queue.has_next()) {
        if (victim->status.load(relaxed) == PStatus::running) os::sleep_ns(steal_pause_ns);
        take_next = true;
      }
      if (last && run_timers(m, victim)) {
        bool inherits;
        if (G* g = take_local(p, inherits); g != nullptr) return g;
      }
      uint32_t moved = 0;
      if (G* g = p->queue.steal_from(victim->queue, take_next, moved); g != nullptr) {
        bump(p->steals);
        bump(p->stolen, uint64_t{moved});
        if (tracer::is_on()) tracer::stole(m, p, victim, moved);
        return g;
      }
    }
  }
  return nullptr;
}

// Goroutines whose descriptors are ready go to m's queue; true if there were some. Not if an idle M
// sleeps there: it will find them. While tied goroutines crowd, m's queue may be full of others
// that compute: so those that are ready now go before all.
bool poll_now(M* m) {
  if (poll_state.waiters.load(relaxed) == 0 || idle_ms.poller.load(relaxed) != nullptr)
    return false;
  GQueue ready;
  netpoll(0, ready);
  if (ready.front() == nullptr) return false;
  if (crowded()) {
    LockGuard guard(sched_lock);
    put_global_locked(m, ready, true);
  } else {
    put_local(m, ready);
  }
  return true;
}

// The same for timers, as soon as there is one that computes.
void run_own_timers(M* m) {
  if (thread_gate.tied.load(relaxed) == 0) {
    m->timer_wakes_next = true;
    run_timers(m, m->p);
    m->timer_wakes_next = false;
    return;
  }
  const UrgentThread urgent;
  run_timers(nullptr, m->p);
}

// A goroutine of m that was paused before is done.
bool take_resumed(M* m) {
  const int pauses = m->resumed.load(relaxed);
  if (pauses == 0) return false;
  m->resumed.store(0, relaxed);
  if (!crowded()) m->p->budget = m->budget;
  note_unpaused(pauses == 1);
  return true;
}

// Every 61st goroutine is a tied one while those crowd, and so is the next after each that was
// paused itself; but first the one that it has woken, if any.
G* take_from_crowd(P* p, bool resumed) {
  if (resumed && p->queue.has_next()) {
    p->budget = 1;
    return p->queue.take_next();
  }
  LockGuard guard(sched_lock);
  return take_tied_locked();
}

// Without a P: is there work in any queue? Then with an idle P at hand, go on looking.
P* look_again() {
  bool found = global_queue.size.load(seq_cst) != 0;
  for (P* p : all_ps()) found = found || !p->queue.empty();
  if (!found) return nullptr;
  LockGuard guard(sched_lock);
  P* p = take_idle_p();
  if (p == nullptr) want_spinner();
  return p;
}

// Gives up the P of m, which has found nothing to do. False: there is work after all, perhaps g.
bool become_idle(M* m, G*& g) {
  LockGuard guard(sched_lock);
  if (world.stopping.load(relaxed) || process.exiting.load(relaxed)) return false;
  g = take_global(m->p, 0);
  if (g != nullptr) return false;
  if (stack_waiters.count.load(relaxed) != 0 && m->p->stacks.count != 0) return false;
  P* p = release_p(m);
  put_idle_p(p);
  if (!m->spinning && spinner_wanted()) {
    // A submitter of work has found no idle P: m looks for that work with this one.
    p = take_idle_p();
    acquire_p(m, p);
    start_spinning(m);
    return false;
  }
  return true;
}

}  // namespace

void wait_at_exit(M* m) {
  if (process.exit_m.load(relaxed) == m) {
    fatal_error("wait in a report: no goroutine is scheduled any more");
  }
  os::sleep_for_ever();
}

namespace {

G* look_for_work(M* m, bool& inherits) {
  for (;;) {
    P* p = m->p;
    if (process.exiting.load(relaxed)) wait_at_exit(m);
    if (world.stopping.load(seq_cst)) {
      if (m->handed != nullptr) {
        put_global_front(m->handed);
        m->handed = nullptr;
      }
      if (!stop_for_world(m)) return nullptr;
      continue;
    }
    if (G* g = m->handed; g != nullptr) {
      m->handed = nullptr;
      inherits = m->handed_inherits;
      return g;
    }
    p->preempt.store(false, relaxed);
    inherits = false;
    const bool resumed = take_resumed(m);
    run_own_timers(m);
    if (urgent_waits()) {
      if (G* g = take_global_locking(p, 1); g != nullptr) return g;
    }
    if (p->budget <= 0) {
      p->budget = switches_per_look;
      if (crowded()) {
        if (G* g = take_from_crowd(p, resumed); g != nullptr) return g;
      }
      if (!next_can_wait()) {
        if (G* g = take_global_locking(p, 1); g != nullptr) return g;
      }
      // And the ring before runnext: two goroutines that wake each other would starve it.
      if (G* g = p->queue.get(); g != nullptr) return g;
    }
    if (G* g = take_local(p, inherits); g != nullptr) return g;
    if (next_can_wait() && poll_now(m)) continue;
    if (G* g = take_global_locking(p, 0); g != nullptr) return g;

    if (poll_now(m)) continue;

    const int32_t busy = p_table.in_use.load(relaxed) - wake_state.idle_p_count.load(relaxed);
    if (!settings.gm && (m->spinning || 2 * wake_state.spinning_ms.load(relaxed) < busy)) {
      if (!m->spinning) start_spinning(m);
      if (G* g = steal_work(m); g != nullptr) return g;
    }

    // The P's free stacks would be out of reach while it is idle.
    if (stack_waiters.count.load(relaxed) != 0 && p->stacks.count != 0) {
      serve_stack_waiter(p);
      continue;
    }
    G* g = nullptr;
    if (!become_idle(m, g)) {
      if (g != nullptr) return g;
      continue;
    }
    if (m->spinning) {
      stop_spinning(m);
      if (P* again = look_again(); again != nullptr) {
        acquire_p(m, again);
        start_spinning(m);
        continue;
      }
    }
    if (!stop_m(m)) return nullptr;
  }
}

}  // namespace

G* find_runnable(M* m, bool& inherits) {
  G* g = look_for_work(m, inherits);
  if (g != nullptr) announce_timer(m);
  return g;
}

}  // namespace gofer::internal
