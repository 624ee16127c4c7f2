// The transitions of a P: who holds it, and whether it is idle or stopped. See
// goroutines/transitions.h, which also tells what a tracer does here.
//
// A P is held by an M, taken from one that has not noticed (lost), on its way to an M, idle,
// stopped, or put aside by a smaller GOMAXPROCS. p_word.h has the protocol by which a P is taken.
#pragma once

#include "arch/probe.h"
#include "runtime/base/atomic.h"
#include "runtime/threads/m.h"
#include "runtime/trace/hooks.h"

namespace gofer::internal::transition {

/// No M holds p. The new generation makes a late taker fail.
inline void unhold(P* p) {
  const PWord old(p->word.load(relaxed));
  p->word.store(PWord::make(0, old.generation() + 1, PWordState::none).bits(), release);
}

// --- Held.

/// m holds p from now on; no other M does.
inline void acquired(M* m, P* p) {
  GOFER_PROBE2(p_acquired, p->id, m->id);
  const PWord old(p->word.load(relaxed));
  const PWord word = PWord::make(m->id, old.generation() + 1, PWordState::running);
  m->p = p;
  m->p_word = word.bits();
  p->status.store(PStatus::running, relaxed);
  p->word.store(word.bits(), release);
  if (tracer::is_on()) tracer::acquired(m, p);
}

/// m gives up p, which it holds.
inline void given_up(M* m, P* p) {
  GOFER_PROBE2(p_given_up, p->id, m->id);
  m->p = nullptr;
  if (tracer::is_on()) tracer::given_up(m);
  unhold(p);
}

/// m gives up p and goes on outside of the runtime. It finds out at its next entry.
inline void left_behind(M* m, P* p) {
  GOFER_PROBE2(p_given_up, p->id, m->id);
  m->in_doubt.store(1, relaxed);
  if (tracer::is_on()) tracer::given_up(m);
  unhold(p);
}

// --- Taken from an M.

/// A taker asks for p, which the owner holds by the word `judged`. False: the owner does not hold
/// it so any more.
inline bool take_begins(P* p, PWord judged) {
  uint64_t word = judged.bits();
  return p->word.compare_exchange_strong(word, judged.with(PWordState::retaking).bits(), acq_rel);
}

/// p is the taker's; the owner has yet to notice. False: the owner has kept it.
inline bool retaken(P* p, const M* owner, PWord judged) {
  uint64_t word = judged.with(PWordState::retaking).bits();
  if (!p->word.compare_exchange_strong(word, judged.with(PWordState::lost).bits(), acq_rel)) {
    return false;
  }
  GOFER_PROBE2(p_retaken, p->id, owner->id);
  if (tracer::is_on()) tracer::retaken(p, owner);
  return true;
}

/// The taker leaves p to the owner.
inline void take_fails(P* p, PWord judged) {
  uint64_t word = judged.with(PWordState::retaking).bits();
  p->word.compare_exchange_strong(word, judged.bits(), acq_rel);
}

/// m makes sure that it keeps its P, whatever takers do meanwhile. It looks at the word alone:
/// `running` and `retaking` of its own generation mean that the P is its own. Returns false if the
/// P was taken.
inline bool kept(M* m) {
  const PWord mine(m->p_word);
  uint64_t word = mine.with(PWordState::retaking).bits();
  while (!m->p->word.compare_exchange_strong(word, mine.bits(), acq_rel)) {
    if (word == mine.bits()) return true;
    if (word != mine.with(PWordState::retaking).bits()) return false;
  }
  return true;
}

/// m has noticed that its P was taken, so it cannot have that P back by given_back(). Under the
/// scheduler's lock.
inline void accepted_loss(M* m) {
  m->p = nullptr;
  m->p_word = 0;
}

/// m goes on without a P. `before` is the P that it had: enter() looks there, and finds that it is
/// not m's.
inline void goes_on_in_doubt(M* m, P* before) {
  m->p = before;
  m->in_doubt.store(1, relaxed);
}

/// m was copied by fork(): the child's entry never finds a word that says that m holds its P.
inline void forked(M* m) {
  m->p_word = ~uint64_t{0};
  m->in_doubt.store(1, relaxed);
}

/// No M holds p, which was taken or given up. If it was taken, the M that held it cannot have it
/// back by given_back().
inline void freed(P* p) { unhold(p); }

/// p was taken while the world stood still, and m has not noticed: m has it again. False: it has
/// noticed.
inline bool given_back(M* m, P* p) {
  uint64_t lost = PWord(m->p_word).with(PWordState::lost).bits();
  const bool traced = tracer::is_on();
  G* g = traced ? tracer::giving_back(m) : nullptr;
  const bool given = p->word.compare_exchange_strong(lost, m->p_word, acq_rel);
  if (traced) tracer::gave_back(m, p, g, given);
  if (given) p->status.store(PStatus::running, relaxed);
  return given;
}

// --- On its way.

/// m, which is about to be woken or started, is to run p, or look for work with it. The note says
/// nothing about that: it may also be signalled for other reasons, and a signal may be left over
/// from the time before.
inline void sent(M* m, P* p, bool spinning) {
  GOFER_PROBE2(p_sent, p->id, m->id);
  if (tracer::is_on()) tracer::sent(m, p);
  m->spinning = spinning;
  m->next_p.store(p, release);
}

/// The thread of m does not run yet: p goes elsewhere.
inline void fetched_back(M* m, P* /*p*/) { m->next_p.store(nullptr, relaxed); }

/// m has p, which was sent to it.
inline void arrived(M* m, P* /*p*/) { m->next_p.store(nullptr, relaxed); }

// --- Held by no M. Under the scheduler's lock.

inline void went_idle(P* p) {
  GOFER_PROBE1(p_went_idle, p->id);
  p->status.store(PStatus::idle, relaxed);
}

/// p leaves the idle list, for an M or for the M that stops the world.
inline void left_idle(P* /*p*/) {}

/// p has stopped for the M that stops the world.
inline void stopped(P* p) {
  GOFER_PROBE1(p_stopped, p->id);
  p->status.store(PStatus::gcstop, relaxed);
}

/// The world goes on, and p is still held by the M that has stopped it.
inline void restarted(P* p) { p->status.store(PStatus::running, relaxed); }

/// p is in use, by a larger GOMAXPROCS; still stopped.
inline void added(P* p) { p->status.store(PStatus::gcstop, relaxed); }

/// p is out of use, by a smaller GOMAXPROCS.
inline void removed(P* p) {
  p->status.store(PStatus::dead, relaxed);
  unhold(p);
}

}  // namespace gofer::internal::transition
