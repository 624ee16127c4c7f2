// Taking a P from an M that is outside of the runtime, and that M's way back to one. p_word.h has
// the protocol and why it is right.
#include "runtime/procs/retake.h"

#include "os/membarrier.h"
#include "os/thread.h"
#include "runtime/process/process_state.h"
#include "runtime/process/start.h"
#include "runtime/procs/current.h"
#include "runtime/procs/lost.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/procs.h"
#include "runtime/procs/thread_gate.h"
#include "runtime/procs/transitions.h"
#include "runtime/sched/global_queue.h"
#include "runtime/sched/switch.h"
#include "runtime/threads/bound.h"
#include "runtime/threads/m_table.h"

namespace gofer::internal {

constinit Taking taking;

void tie_locked(M* m, bool front) {
  G* g = m->curg;
  if (g->own_m() == nullptr) {
    g->tie_to(m);
    m->own_g = g;
    bump(thread_gate.tied);
  }
  m->paused_ns = os::now_ns();
  m->last_cpu = os::current_cpu();
  transition::accepted_loss(m);
  if (m->paused.load(relaxed)) {
    transition::paused(m, g);
  } else {
    transition::comes_back_without_p(m, g);
  }
  put_tied_locked(g, front);
}

bool wait_tied(M* m, P* before) {
  G* g = m->curg;
  const bool given = wait_for_p(m);
  const bool released = !given && m->released.exchange(false, acq_rel);
  if (g->tied() && (given || released)) {
    g->let_go();
    m->own_g = nullptr;
  }
  if (!given) {
    if (released) {
      transition::released(m, g);
      note_lost(m, -1, call_crowd);
    }
    transition::goes_on_in_doubt(m, before);
    return false;
  }
  P* p = m->p;
  transition::resumed(m, g);
  count_switch(p, false);
  const int64_t now = os::now_ns();
  p->resumed_ns.store(now, relaxed);
  p->slice_start_ns.store(now - int64_t{1000} * g->head->slice_used_us, relaxed);
  g->head->slice_used_us = 0;
  p->slice_tick.store(p->schedtick.load(relaxed), release);
  return true;
}

bool release_paused() {
  LockGuard guard(sched_lock);
  G* g = take_tied_if([](G* g, void*) { return g->own_m()->paused.load(relaxed); }, nullptr);
  if (g == nullptr) return false;
  M* m = untie_locked(g);
  taking.released.fetch_add(1, relaxed);
  m->released.store(true, seq_cst);
  m->note.signal();
  return true;
}

bool keep_p(M* m) { return transition::kept(m); }

bool take_any_p_locked(M* m) {
  P* p = take_unused_p();
  if (p == nullptr) return false;
  acquire_p(m, p);
  return true;
}

namespace {

// The process ends, and no M gives up a P any more. Goroutines stop here; the one that runs the
// exit handlers takes any P that it can get.
void enter_at_exit(M* m) {
  if (process.exit_m.load(relaxed) != m) os::sleep_for_ever();
  for (;;) {
    {
      LockGuard guard(sched_lock);
      if (keep_p(m) || take_any_p_locked(m)) return;
    }
    for (P* p : all_ps()) {
      if (!take_p(p, PWord(p->word.load(acquire)))) continue;
      acquire_p(m, p);
      return;
    }
    os::yield_thread();
  }
}

}  // namespace

bool settle_doubt(M* m) {
  m->in_doubt.exchange(0, acq_rel);  // before the look at the word: p_word.h
  if (keep_p(m)) return true;
  if (process.exiting.load(seq_cst)) {
    m->in_doubt.store(1, relaxed);
    return false;
  }
  P* before = m->p;
  {
    LockGuard guard(sched_lock);
    if (keep_p(m)) return true;  // given back when the world started
    transition::noticed_loss(m);
    if (take_any_p_locked(m)) return true;
    forget_lost(m);
    tie_locked(m, false);
  }
  return wait_tied(m, before);
}

void enter_slow(M* m) {
  if (process.forked.load(relaxed)) used_after_fork();
  if (!settle_doubt(m)) enter_at_exit(m);
}

PWord begin_take(P* p, PWord judged) {
  if (judged.state() != PWordState::running) return PWord();
  M* owner = owner_of(judged);
  if (owner->in_runtime.load(relaxed) != 0) return PWord();
  if (!transition::take_begins(p, judged)) return PWord();
  owner->in_doubt.store(1, release);
  return judged;
}

bool finish_take(P* p, PWord w, bool fenced) {
  M* owner = owner_of(w);
  if (fenced && owner->in_runtime.load(acquire) == 0) return transition::retaken(p, owner, w);
  transition::take_fails(p, w);
  return false;
}

bool fence_others() {
  if (!taking.has_membarrier.load(relaxed)) return false;
  const bool fenced = os::membarrier();
  if (!fenced) taking.has_membarrier.store(false, relaxed);
  return fenced;
}

bool take_p(P* p, PWord judged) {
  if (!taking.has_membarrier.load(relaxed)) return false;
  LockGuard guard(taking.lock);
  const PWord w = begin_take(p, judged);
  if (w == PWord()) return false;
  return finish_take(p, w, fence_others());
}

}  // namespace gofer::internal
