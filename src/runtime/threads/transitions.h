// The transitions of an M: its thread starts and ends, looks for work, sleeps. See
// goroutines/transitions.h, which also tells what a tracer does here.
#pragma once

#include "arch/probe.h"
#include "runtime/threads/m.h"

namespace gofer::internal::transition {

/// The thread of m runs. On it.
inline void started(M* m, int tid) {
  GOFER_PROBE1(m_started, m->id);
  m->tid.store(tid, seq_cst);
}

/// m ends, or its thread leaves the scheduler: a foreign thread from now on, which runs its
/// destructors or the exit handlers.
inline void ended(M* m) GOFER_REQUIRES(sched_lock) {
  GOFER_PROBE1(m_ended, m->id);
  m->guard = nullptr;
}

/// m looks for work without having any. spinning.h counts such Ms.
inline void spins(M* m) {
  GOFER_PROBE1(m_spins, m->id);
  m->spinning = true;
}

/// It has found some, or gives up.
inline void stopped_spinning(M* m) {
  GOFER_PROBE1(m_stopped_spinning, m->id);
  m->spinning = false;
}

/// m has no P and nothing to do, and sleeps.
inline void went_idle(M* m) {
  GOFER_PROBE1(m_went_idle, m->id);
  m->on_idle_list = true;
}

/// It has a P, or soon gets one; or its thread ends.
inline void left_idle(M* m) {
  GOFER_PROBE1(m_left_idle, m->id);
  m->on_idle_list = false;
}

/// m sleeps until it gets a P for its own goroutine, which is bound or tied to it.
inline void waits_for_p(M* m) {
  GOFER_PROBE1(m_waits_for_p, m->id);
  m->waits_for_p.store(true, seq_cst);
}

/// It has one, or goes on without.
inline void stopped_waiting(M* m) {
  GOFER_PROBE1(m_stopped_waiting, m->id);
  m->waits_for_p.store(false, relaxed);
}

}  // namespace gofer::internal::transition
