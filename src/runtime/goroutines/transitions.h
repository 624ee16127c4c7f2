// The transitions of a goroutine: each change of its state is one function here.
//
// A transition does what the state consists of: the status, the goroutine's M, the announcement of
// a call. It knows the goroutine, the M on which it happens, and the reason. What follows from the
// new state (a queue, a wake-up) is the caller's. No other file changes a status, and the lint test
// checks that. docs/ARCHITECTURE.md has the diagram and the table of these transitions;
// procs/transitions.h has those of Ps and threads/transitions.h those of Ms.
//
// The tracer (runtime/trace) records events in these functions. While no trace is recorded that
// costs the test of a byte. A probe (arch/probe.h) costs a nop.
//
// A goroutine that parks, yields or ends has two transitions. The first one (parks, yields, ends)
// takes place on its own stack, where its frames can be walked. The second one (parked, yielded,
// ended) changes the status and is a part of the commit: it takes place on the next stack, when the
// registers are saved. Whatever makes the goroutine visible to others follows it.
//
// Unless something else is said, the caller is inside the runtime, and m has a P. A transition by
// "m, or nullptr" is by a thread that has no P, or makes no use of it.
#pragma once

#include "arch/probe.h"
#include "runtime/base/assert.h"
#include "runtime/metrics/sampler.h"
#include "runtime/stacks/scavenge.h"
#include "runtime/threads/m.h"
#include "runtime/trace/hooks.h"

namespace gofer::internal {

/// The stored status changes. Test builds check that `from` is what it was and that the transition
/// is legal. For the functions below alone.
inline void set_status(G* g, GStatus from, GStatus to) {
  if constexpr (checks_enabled) {
    check_transition(g, from, to);
  } else {
    g->status.store(to, release);
  }
}

/// The same if it is `from` now, for a thread that does not own the goroutine.
inline bool try_status(G* g, GStatus from, GStatus to) {
  GOFER_ASSERT(is_legal_transition(from, to));
  return g->status.compare_exchange_strong(from, to, acq_rel, relaxed);
}

namespace transition {

/// g becomes runnable: one of many is a sample of how long it waits then (metrics/sampler.h). By m,
/// which is returned.
inline M* count_runnable(M* m, G* g) { return --m->until_sample < 0 ? sample(m, g) : m; }

/// The same by m, or nullptr: by a thread without a P.
inline void count_runnable_by(M* m, G* g) {
  if (m != nullptr) {
    count_runnable(m, g);
  } else {
    count_for_thread(g);
  }
}

/// g is what m executes from now on. The compiler barrier is one half of a fence; the other half is
/// the scavenger's membarrier (scavenge.cc).
inline void run_on(M* m, G* g, GStatus from) {
  set_status(g, from, GStatus::running);
  compiler_barrier();
  if (g->marks.load(relaxed) != 0) [[unlikely]]
    run_marked(m, g);
  g->set_m(m);
  m->curg = g;
}

/// g is not on an M any more.
inline void leave_m(G* g, GStatus to) {
  g->set_m(nullptr);
  set_status(g, GStatus::running, to);
}

// --- It begins and ends.

/// A record is taken for a new goroutine. By any thread.
inline void taken(G* g) { set_status(g, GStatus::dead, GStatus::idle); }

/// The record is not used after all. By any thread.
inline void discarded(G* g) { set_status(g, GStatus::idle, GStatus::dead); }

/// m, or nullptr, has created g, which has its id, its closure and its parent.
inline void created(M* by, G* g) {
  GOFER_PROBE3(goroutine_created, g->id, g->parent_id, g->create_pc);
  if (tracer::is_on()) tracer::created(by, g);
  count_runnable_by(by, g);
  set_status(g, GStatus::idle, GStatus::runnable);
}

/// g begins or goes on to run on m.
inline void begins(M* m, G* g) {
  GOFER_PROBE2(goroutine_begins, g->id, m->id);
  if (tracer::is_on()) tracer::begins(m, g);
  run_on(m, g, GStatus::runnable);
}

/// g has returned or was unwound. On its own stack.
inline void ends(M* m, G* g) {
  GOFER_PROBE1(goroutine_ends, g->id);
  if (tracer::is_on()) tracer::ends(m);
}

/// Nobody is on the stack of g any more, and it has given its stack up.
inline void ended(M* /*m*/, G* g) { set_status(g, GStatus::running, GStatus::dead); }

// --- It waits.

/// g is about to park, for that reason. On its own stack.
inline void parks(M* m, G* g, WaitReason reason) {
  g->wait_reason = reason;
  GOFER_PROBE2(goroutine_parks, g->id, g->wait_reason);
  if (tracer::is_on()) tracer::parks(m, reason);
}

inline void parked(M* /*m*/, G* g) { leave_m(g, GStatus::waiting); }

/// m, or nullptr, has made g runnable, which waited.
inline void readied(M* by, G* g) {
  GOFER_PROBE1(goroutine_readied, g->id);
  if (tracer::is_on()) tracer::readied(by, g);
  count_runnable_by(by, g);
  set_status(g, GStatus::waiting, GStatus::runnable);
}

/// The scavenger wants to give back unused pages of the stack of g. False: g does not wait. By
/// sysmon.
inline bool trim_begins(G* g) { return try_status(g, GStatus::waiting, GStatus::copystack); }

/// It has done so; g still waits, unless it was readied meanwhile.
inline void trim_ends(G* g) { try_status(g, GStatus::copystack, GStatus::waiting); }

// --- It gives way.

/// g is about to yield: by itself, or because it was asked to (P::preempt). On its own stack.
inline void yields(M* m, G* /*g*/) {
  if (tracer::is_on()) tracer::yields(m);
}

// The probe is here because g need not be loaded for it.
[[nodiscard]] inline M* yielded(M* m, G* g) {
  GOFER_PROBE1(goroutine_yielded, g->id);
  m = count_runnable(m, g);
  leave_m(g, GStatus::runnable);
  return m;
}

/// A signal or a prologue pauses g, which then waits for a P, tied to m. M::preempt_kind has the
/// reason if m has its P; if m has lost its P, g has computed without one for too long.
inline void paused(M* m, G* g) {
  GOFER_PROBE2(goroutine_paused, g->id, m->id);
  if (tracer::is_on()) tracer::waits_tied(m);
  count_runnable(m, g);
  leave_m(g, GStatus::preempted);
}

/// g was paused, or has come back without a P, and m was given a P for it.
inline void resumed(M* m, G* g) {
  GOFER_PROBE2(goroutine_resumed, g->id, m->id);
  if (tracer::is_on()) tracer::begins(m, g);
  const bool was_paused = m->paused.load(relaxed);
  run_on(m, g, was_paused ? GStatus::preempted : GStatus::runnable);
}

/// g was paused and goes on without a P, so that a lock that it may hold is released.
inline void released(M* m, G* g) {
  GOFER_PROBE2(goroutine_released, g->id, m->id);
  run_on(m, g, GStatus::preempted);
}

// --- It is in a call. The stored status stays `running`; true_status() says `syscall`.

/// The goroutine of m announces a call. m may be outside of the runtime, and may have lost p, the P
/// that it had last.
inline void calls(M* m, P* p) {
  GOFER_PROBE1(m_calls, m->id);
  if (tracer::is_on()) tracer::calls(m);
  m->blocking_at.store(p->switches.load(relaxed) + 1, relaxed);
}

/// The announced call is over. before: what M::blocking_at was at its begin, because a call may be
/// made inside of another one. m is outside of the runtime, and may have lost its P.
inline void call_ended(M* m, uint64_t before) {
  GOFER_PROBE1(m_call_ended, m->id);
  m->blocking_at.store(before, relaxed);
  if (tracer::is_on()) tracer::call_ended(m);
}

/// m, outside of the runtime, goes on without a P after an announced call.
inline void goes_on_without_p(M* /*m*/) {}

/// m enters the runtime and finds that its P was taken, in a call or while it computed. It gets
/// another P at once, or its goroutine comes back without one.
inline void noticed_loss(M* m) {
  GOFER_PROBE1(m_noticed_loss, m->id);
  if (tracer::is_on()) tracer::noticed_loss(m);
}

/// No P is idle: g waits for one, tied to m.
inline void comes_back_without_p(M* m, G* g) {
  GOFER_PROBE2(goroutine_comes_back, g->id, m->id);
  if (tracer::is_on()) tracer::waits_tied(m);
  count_runnable(m, g);
  leave_m(g, GStatus::runnable);
}

}  // namespace transition
}  // namespace gofer::internal
