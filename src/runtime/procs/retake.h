// Taking a P from an M that is outside of the runtime, and how that M gets a P again. p_word.h has
// the protocol.
#pragma once

#include <cstdint>

#include "runtime/base/atomic.h"
#include "runtime/base/lock.h"
#include "runtime/procs/p_word.h"
#include "runtime/sched/sched_lock.h"
#include "runtime/threads/m.h"

namespace gofer::internal {

struct Taking {
  Lock lock{LockRank::taking};         // one taker of Ps at a time: p_word.h
  atomic<bool> has_membarrier{false};  // see fence_others
  atomic<uint64_t> retaken{0};         // times that a blocked thread lost its P
  atomic<uint64_t> announced{0};       // of those, in a call that it had announced
  atomic<uint64_t> asleep{0};          // and in any other call
  atomic<uint64_t> handed_off{0};      // times that a P went to another M because its own left it
  atomic<uint64_t> released{0};        // times that a paused thread went on without a P
};

[[gnu::visibility("hidden")]] extern Taking taking;

/// A thread has lost its P, or gives it up for that reason, in a call; it is announced in no crowd.
inline void count_retaken(uint32_t crowd) {
  taking.retaken.fetch_add(1, relaxed);
  (crowd == no_crowd ? taking.announced : taking.asleep).fetch_add(1, relaxed);
}

/// Every other thread has passed a full barrier when this returns true. It returns false if the
/// kernel refuses. The first refusal ends the use of membarrier; from then on signals ask Ms for
/// their Ps instead.
bool fence_others();

/// The first half of taking p from the M that holds it by exactly the word that the caller has
/// judged. A moment later another M may be the owner. Returns PWord() if there is nothing to take.
/// A membarrier has to follow before the second half; the second half returns true if p is the
/// caller's.
PWord begin_take(P* p, PWord judged);
bool finish_take(P* p, PWord word, bool fenced);
/// Both halves.
bool take_p(P* p, PWord judged);

/// Makes sure that m keeps its P, whatever takers do meanwhile. Returns false if the P was taken.
/// Inside.
bool keep_p(M* m);
/// m is inside and in doubt about its P. It keeps the P, or gets another one, and waits if need be.
/// Returns false if it has none, as wait_tied does.
bool settle_doubt(M* m);

/// The goroutine of m is to wait for a P in the global queue, tied to its thread. If `front` is
/// set, it comes before all that wait so. The caller releases the lock and then calls wait_tied.
void tie_locked(M* m, bool front) GOFER_REQUIRES(sched_lock);
/// Blocks until m has a P again for its goroutine. Returns false if m goes on without one, because
/// the process ends or paused threads are released. `before` is the P that m had.
bool wait_tied(M* m, P* before);
/// Lets one paused thread go on without a P, as one that has lost it. Returns false if none is
/// paused.
bool release_paused();

/// Gives m, which has lost its P, an idle one. Returns false if no P is idle.
bool take_any_p_locked(M* m) GOFER_REQUIRES(sched_lock);

}  // namespace gofer::internal
