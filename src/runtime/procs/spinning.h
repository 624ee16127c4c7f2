// Spinning Ms: Ms that look for work at other Ps without having any, and how many there are.
//
// A submitter of work wakes an M only if none spins, because a spinning M will find the work. At
// most half of the busy Ps may have a spinning M, else looking costs more than it finds.
//
// No work may be overlooked between "found nothing" and "asleep". The submitter queues the
// goroutine, then reads the count. The spinning M puts its P on the idle list, lowers the count,
// then looks at every queue again. Both sides are seq_cst (a store-load pair on each), so either
// the submitter sees that no M spins and wakes one, or the spinning M sees the goroutine.
//
// need_spinning covers an M that may not spin. It gives up its P after its own look at the queues,
// while the submitter has seen no idle P. The M puts the P on the idle list and then reads
// need_spinning; the submitter sets need_spinning and then reads the number of idle Ps. One of them
// sees the other. A thread that has announced a spinning M and then finds no idle P for it sets
// need_spinning, too: the next M that gives up its P looks for work then. If it finds a P and no
// thread, need_spinning would not help: the P stays idle, and an M looks at the global queue and at
// the idle Ps once more before it sleeps (stop_m).
//
// Waking a sleeping thread costs the waker microseconds, and it takes tens of them until the thread
// runs. So wake_p wakes an M only if a P is idle and no M is looking for work already.
//
// tests/model/idle.pml checks this. The count and need_spinning change in the functions below and
// nowhere else.
#pragma once

#include "runtime/base/assert.h"
#include "runtime/base/atomic.h"
#include "runtime/threads/transitions.h"
#include "runtime/watch/sysmon.h"

namespace gofer::internal {

/// What wake_p reads, on one cache line.
struct alignas(64) WakeState {
  atomic<int32_t> spinning_ms{0};
  atomic<uint32_t> need_spinning{0};
  atomic<int32_t> idle_p_count{0};    // procs.h has the list
  atomic<uint32_t> sysmon_sleeps{0};  // SysmonSleep
};

[[gnu::visibility("hidden")]] extern WakeState wake_state;

void wake_p_slow();
/// The caller has queued work. If a P is idle and no M looks for work, an M is woken to do so.
///
/// The order of the loads is that of the protocol above.
inline void wake_p() {
  if (wake_state.spinning_ms.load(seq_cst) != 0) return;
  if (wake_state.need_spinning.load(seq_cst) == 0) wake_state.need_spinning.store(1, seq_cst);
  if (wake_state.idle_p_count.load(seq_cst) != 0) {
    wake_p_slow();
  } else if (wake_state.sysmon_sleeps.load(relaxed) != 0) [[unlikely]] {
    wake_sysmon();  // work waits and every P is busy, or blocked
  }
}

/// Asks the next M that gives up its P to spin instead.
inline void want_spinner() { wake_state.need_spinning.store(1, seq_cst); }
/// Whether that was asked. An M that makes a P idle looks after it has done so.
inline bool spinner_wanted() { return wake_state.need_spinning.load(seq_cst) != 0; }
/// An M that spins, or will, was chosen.
inline void note_spinner_chosen() { wake_state.need_spinning.store(0, seq_cst); }

/// One more M spins, or a P is on its way to an M that will.
inline void add_spinning() {
  wake_state.spinning_ms.fetch_add(1, seq_cst);
  note_spinner_chosen();
}

/// Counts an M that will spin if no M spins yet. Returns false if one does. The caller then finds a
/// P for it and calls note_spinner_chosen(), or drop_relied_on_spinning().
inline bool add_only_spinning() {
  int32_t none = 0;
  return wake_state.spinning_ms.compare_exchange_strong(none, 1, seq_cst);
}

/// One M less spins, or there is no M for a P that was on its way to one.
inline void drop_spinning() {
  const int32_t before = wake_state.spinning_ms.fetch_sub(1, seq_cst);
  GOFER_ASSERT(before > 0);
  static_cast<void>(before);
}

/// The same, and a submitter may have relied on it: the next M that gives up its P spins instead.
/// The order matters, because an M that begins to spin withdraws the request.
inline void drop_relied_on_spinning() {
  drop_spinning();
  want_spinner();
}

inline void start_spinning(M* m) {
  transition::spins(m);
  add_spinning();
}

/// m has found nothing, or stops for the world.
inline void stop_spinning(M* m) {
  if (!m->spinning) return;
  transition::stopped_spinning(m);
  drop_spinning();
}

/// m has found work, so there may be more. Wakes another M to look for it.
inline void stop_spinning_with_work(M* m) {
  if (!m->spinning) return;
  stop_spinning(m);
  wake_p();
}

}  // namespace gofer::internal
