// The threads of Ms: their records, their start and end, and how many there may be.
#pragma once

#include <signal.h>

#include <cstdint>

#include "runtime/base/atomic.h"
#include "runtime/sched/sched_lock.h"
#include "runtime/threads/m.h"

namespace gofer::internal {

inline constexpr int own_threads = 2;                   // sysmon and the template thread: always
inline constexpr int64_t thread_retry_ns = 10'000'000;  // after a thread could not be started

struct Threads {
  M* free GOFER_GUARDED_BY(sched_lock) = nullptr;       // records of Ms whose threads have ended
  int count GOFER_GUARDED_BY(sched_lock) = 0;           // Ms that live or are being started
  int limit GOFER_GUARDED_BY(sched_lock) = 10000;       // set_max_threads()
  uint64_t started GOFER_GUARDED_BY(sched_lock) = 0;    // threads of Ms that were ever asked for
  uint32_t last_id GOFER_GUARDED_BY(sched_lock) = 0;    // Ms that ever were
  int reserve_coming GOFER_GUARDED_BY(sched_lock) = 0;  // idle Ms that are being started
  int unborn_ps GOFER_GUARDED_BY(sched_lock) = 0;       // Ps given to threads that do not run yet
  atomic<int64_t> no_thread_until_ns{0};                // after a thread could not be started
  sigset_t signal_mask{};                               // of every M
};

[[gnu::visibility("hidden")]] extern Threads threads;

/// What a function has decided under the scheduler's lock. The caller releases the lock and then
/// does it by now().
struct [[nodiscard]] Wakeup {
  M* m = nullptr;          // to be woken: it was given a P
  bool thread = false;     // the template thread has a thread to start
  int exceeded_limit = 0;  // the program has asked for more threads than this
  void now() const;
};

/// Runs p on an idle M. If there is none, p goes to a goroutine that waits for a P tied to its
/// thread: that costs no new thread, and others may wait for that goroutine. If there is none
/// either, p goes to a new thread.
Wakeup start_m_locked(P* p, bool spinning) GOFER_REQUIRES(sched_lock);

/// Starts the thread of m. Only the template thread calls this.
void begin_m(M* m);
/// Creates the first M. Returns 0 or an errno value.
int start_first_m();
/// m gives up its P for good.
void end_m(M* m);

/// Requests threads until n Ms are idle. Returns whether a P could be given to an M now: to an idle
/// one, or to one that waits for it tied. If `fresh` is set, goroutines wait that are not tied to a
/// thread, so the program may exceed its limit of threads if there is no thread for them.
bool want_idle_ms(int n, bool fresh = false);

/// Gives an idle P that has work to an M, if there is one now.
void try_threads_again();
/// After the start of a thread has failed, a P may be idle while no M is: if all other threads are
/// in calls, nothing runs what is in the queues, or wakes for timers and descriptors. Tries again,
/// some time after the failure. Returns false if no thread is missing.
bool retry_thread();

}  // namespace gofer::internal
