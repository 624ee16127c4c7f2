// Taking a P from an M that is outside of the runtime, and that M's way back to one. p_word.h has
// the protocol and why it is right.
#include "os/membarrier.h"
#include "runtime/switch.h"

namespace gofer::internal {
namespace {

// The goroutine on m has lost its P and none is idle. It waits for one in the global queue, tied to
// its thread: the call that brought it here (`go`, say) must not move it to another.
void wait_tied(M* m) {
  G* g = m->curg;
  const bool locked = g->head->locked_m != nullptr;
  if (!locked) {
    g->head->locked_m = m;
    g->head->tied = true;
    m->locked_g = g;
  }
  m->p = nullptr;
  g->head->m.store(nullptr, relaxed);
  set_status(g, GStatus::running, GStatus::runnable);
  put_global_locked(g);
  sched.lock.unlock();
  wait_for_p(m);
  if (!locked) {
    g->head->locked_m = nullptr;
    g->head->tied = false;
    m->locked_g = nullptr;
  }
  begin_running(m, m->p, g, false);
}

// By the word alone, whatever takers do meanwhile: `running` and `retaking` of our generation mean
// that the P is ours.
bool keep_p(M* m) {
  const PWord mine(m->p_word);
  uint64_t word = mine.with(PWordState::retaking).bits();
  while (!m->p->word.compare_exchange_strong(word, mine.bits(), acq_rel)) {
    if (word == mine.bits()) return true;
    if (word != mine.with(PWordState::retaking).bits()) return false;
  }
  return true;
}

}  // namespace

void enter_slow(M* m) {
  if (sched.forked.load(relaxed)) used_after_fork();
  if (keep_p(m)) return;
  sched.lock.lock();
  if (keep_p(m)) {  // given back by who had stopped the world
    sched.lock.unlock();
    return;
  }
  P* p = take_idle_p();
  if (p == nullptr) {
    wait_tied(m);
    return;
  }
  acquire_p(m, p);
  sched.lock.unlock();
}

PWord begin_take(P* p) {
  uint64_t word = p->word.load(acquire);
  const PWord w(word);
  if (w.state() != PWordState::running) return PWord();
  if (sched.m_table[w.owner()].load(acquire)->in_runtime.load(relaxed) != 0) return PWord();
  if (!p->word.compare_exchange_strong(word, w.with(PWordState::retaking).bits(), acq_rel)) {
    return PWord();
  }
  return w;
}

bool finish_take(P* p, PWord w) {
  M* owner = sched.m_table[w.owner()].load(acquire);
  uint64_t retaking = w.with(PWordState::retaking).bits();
  if (owner->in_runtime.load(acquire) == 0) {
    return p->word.compare_exchange_strong(retaking, w.with(PWordState::lost).bits(), acq_rel);
  }
  p->word.compare_exchange_strong(retaking, w.bits(), acq_rel);
  return false;
}

bool take_p(P* p) {
  if (!sched.has_membarrier) return false;
  LockGuard guard(sched.taking);
  const PWord w = begin_take(p);
  if (w == PWord()) return false;
  if (!os::membarrier()) {
    uint64_t retaking = w.with(PWordState::retaking).bits();
    p->word.compare_exchange_strong(retaking, w.bits(), acq_rel);
    return false;
  }
  return finish_take(p, w);
}

bool retake(P* p) {
  if (!take_p(p)) return false;
  hand_off(p);
  return true;
}

}  // namespace gofer::internal
