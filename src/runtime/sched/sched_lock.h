// The scheduler's lock. It guards every list and count that the rooms of the runtime share: the
// global queue, the idle Ps, the records and lists of Ms. Each of them says so with
// GOFER_GUARDED_BY(sched_lock) in the header of its own room.
//
// There is one lock and not one per list, because most decisions need several of them at once: an M
// that goes idle, for example, looks at the queue, the idle Ps and the other idle Ms. It is held
// for a few list operations only.
//
// In names and comments, "locked" means that the caller holds this lock, and "inside" means that
// the caller has entered the runtime (enter()), or is on g0.
#pragma once

#include "runtime/base/lock.h"

namespace gofer::internal {

/// It has a cache line of its own: the Ms that wait for it do not slow down the readers of other
/// objects.
class alignas(64) GOFER_LOCKABLE SchedLock : public Lock {
 public:
  constexpr SchedLock() : Lock(LockRank::sched) {}
};

[[gnu::visibility("hidden")]] extern SchedLock sched_lock;

}  // namespace gofer::internal
