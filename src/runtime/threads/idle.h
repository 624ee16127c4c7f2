// Ms without a P: how they sleep, and how they are woken. See idle.cc.
#pragma once

#include <cstdint>

#include "runtime/base/atomic.h"
#include "runtime/sched/sched_lock.h"
#include "runtime/threads/m.h"
#include "runtime/wait/timer.h"

namespace gofer::internal {

inline constexpr int idle_ms_reserve = 4;  // so many idle Ms do not end

/// Those that any P may wake. Ms that wait for their own goroutine are not among them (bound.h).
struct alignas(64) IdleMs {
  atomic<int64_t> sleep_until_ns{no_timer};        // when the sleeper wakes
  M* list GOFER_GUARDED_BY(sched_lock) = nullptr;  // linked by M::link
  int count GOFER_GUARDED_BY(sched_lock) = 0;
  /// The one that wakes for timers. There is one whenever an M is idle.
  M* sleeper GOFER_GUARDED_BY(sched_lock) = nullptr;
  /// The one that sleeps in the netpoller. Set under the lock.
  atomic<M*> poller{nullptr};
};

[[gnu::visibility("hidden")]] extern IdleMs idle_ms;

/// What an idle M wakes for, apart from being told.
struct IdleTask {
  int64_t earliest_ns = no_timer;  // timers
  bool poll = false;               // descriptors
  bool watch = false;              // a deadlock
};

/// m has no P: it sleeps until it is given one. Returns false if the thread of m is to end.
bool stop_m(M* m);
/// The same for an M that is on the idle list already.
bool sleep_idle(M* m, const IdleTask& task);
/// Ends the sleep of an idle M.
void wake_m(M* m);

/// A timer was started that is due earlier than the sleeper knows.
void wake_sleeper(int64_t when_ns);
/// Wakes an idle M to sleep in the netpoller, if no M does so and a P is idle.
void want_poller();

M* take_idle_m_locked() GOFER_REQUIRES(sched_lock);
void put_idle_m_locked(M* m) GOFER_REQUIRES(sched_lock);
void remove_idle_m_locked(M* m) GOFER_REQUIRES(sched_lock);

/// Whether there may be a deadlock: run() waits and every M is idle.
bool should_watch_locked() GOFER_REQUIRES(sched_lock);

}  // namespace gofer::internal
