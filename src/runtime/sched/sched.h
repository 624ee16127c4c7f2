// The scheduler's global state.
//
// The rooms of the runtime, a folder each:
//   base        locks, atomics, assertions: what all others stand on
//   goroutines  records of goroutines, `go`, goexit
//   stacks      where stacks lie, their guards, overflow, memory that is given back
//   procs       Ps: who holds one, taking and handing off, spinning, the bound on threads, stops
//   threads     Ms: start, sleep, end; announced calls; what goroutines do to their threads
//   sched       queues, finding work, switching
//   wait        waiters and timers
//   poll        the netpoller
//   watch       sysmon, preemption, schedtrace
//   report      fatal errors, uncaught exceptions, deadlocks
//   process     start, exit, fork, the environment, the small public calls
//
// "inside" in a comment: the caller has entered the runtime (enter()), or is on g0.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>

#include "runtime/base/atomic.h"
#include "runtime/base/lock.h"
#include "runtime/procs/p.h"
#include "runtime/sched/g_queue.h"
#include "runtime/sched/sched_lock.h"
#include "runtime/threads/m.h"

namespace gofer::internal {

inline constexpr int max_procs = 4096;

struct Sched {
  // Under the lock; atomics may be read without it.
  GQueue urgent GOFER_GUARDED_BY(sched_lock);  // before the others: woken while every P was busy
  GQueue untried GOFER_GUARDED_BY(
      sched_lock);  // the same, but nobody knows whether they are short (G::is_short)
  GQueue queue GOFER_GUARDED_BY(sched_lock);
  GQueue tied_queue
      GOFER_GUARDED_BY(sched_lock);  // those that wait on their own threads, in turn with `queue`
  uint32_t tied_spinning GOFER_GUARDED_BY(sched_lock) =
      0;  // of those, the ones that were paused while they spun
  uint64_t queue_pushed GOFER_GUARDED_BY(sched_lock) =
      0;                                            // goroutines ever put at the tail of `queue`
  uint32_t turns GOFER_GUARDED_BY(sched_lock) = 0;  // of tied goroutines while they are crowded
  uint32_t spinner_turns GOFER_GUARDED_BY(sched_lock) = 0;  // and while some of them spin
  int64_t urgent_since_ns GOFER_GUARDED_BY(sched_lock) =
      0;  // others wait for the urgent; 0: they do not
  bool untrieds_turn GOFER_GUARDED_BY(sched_lock) =
      false;  // not the ordinary ones', when those have waited for too long
  int passes_left GOFER_GUARDED_BY(sched_lock) =
      0;  // how often the first that is tied may be passed over
  atomic<uint32_t> urgent_size{0};
  atomic<uint32_t> untried_size{0};
  atomic<bool> spinner_waits{false};  // a spinning and another goroutine wait tied
  atomic<bool> most_tied_spin{false};
  atomic<uint32_t> queue_size{0};  // of all four
  atomic<uint32_t> tied_size{0};   // of tied_queue: those in `tied`, and paused ones that are bound
  GQueue stack_waiters
      GOFER_GUARDED_BY(sched_lock);  // goroutines that could not get a stack for their first run
  atomic<uint32_t> stack_waiter_count{0};
  P* idle_ps GOFER_GUARDED_BY(sched_lock) = nullptr;
  M* idle_ms GOFER_GUARDED_BY(sched_lock) = nullptr;
  M* free_ms GOFER_GUARDED_BY(sched_lock) = nullptr;  // records of ended threads
  int ms GOFER_GUARDED_BY(sched_lock) = 0;            // threads that live or are being started
  int idle_m_count GOFER_GUARDED_BY(sched_lock) = 0;
  int idle_bound_ms GOFER_GUARDED_BY(sched_lock) = 0;   // Ms that wait for their locked goroutine
  int reserve_coming GOFER_GUARDED_BY(sched_lock) = 0;  // idle Ms that are being started
  int unborn_ps GOFER_GUARDED_BY(sched_lock) = 0;       // given to Ms whose threads do not run yet
  atomic<M*> poller{nullptr};  // of the idle Ms the one that sleeps in the netpoller; set under the
                               // lock
  atomic<int> tied{0};         // runnable goroutines that wait for a P on their own thread
  atomic<int> tied_room{76};   // as many as should wait so: thread_gate.h
  M* sleeper GOFER_GUARDED_BY(sched_lock) =
      nullptr;  // of the idle Ms the one that wakes for timers; there is one if any is idle
  atomic<int> lost_ms{0};  // Ms with lost_in
  int max_ms GOFER_GUARDED_BY(sched_lock) = 10000;
  uint32_t last_m_id GOFER_GUARDED_BY(sched_lock) = 0;  // Ms that ever were; their records stay
  atomic<int64_t> no_thread_until_ns{0};                // after a failure to start one
  int stop_wait GOFER_GUARDED_BY(sched_lock) = 0;       // Ps yet to stop

  // Read on hot paths, written rarely.
  alignas(64) atomic<int32_t> idle_p_count{0};
  atomic<int32_t> spinning_ms{0};
  atomic<uint32_t> need_spinning{0};
  atomic<int64_t> sleep_until_ns{no_timer};  // when the sleeper wakes
  atomic<bool> stopping{false};              // the world is to stop
  atomic<bool> exiting{false};               // a report is made: nothing is scheduled any more
  atomic<M*> exit_m{nullptr};                // whose goroutine makes the report, if one does
  atomic<int> exit_tid{0};                   // the thread that runs the exit handlers, if one does
  atomic<bool> forked{false};                // this is the child of a fork
  atomic<bool> started{false};
  bool gm = false;                     // GOFER_DEBUG=model=gm: no local queues
  atomic<bool> has_membarrier{false};  // see fence_others
  bool has_proc = true;                // /proc tells whether a thread sleeps
  atomic<bool> has_signal{false};      // threads may be paused by a signal; see signal_m
  atomic<uint32_t> sysmon_sleeps{0};   // SysmonSleep
  atomic<uint64_t> paused{0};          // times that a goroutine was paused
  atomic<uint64_t> retaken{0};         // times that a blocked thread lost its P
  atomic<uint64_t> released{0};        // times that a paused one went on without a P
  atomic<int32_t> procs{0};            // GOMAXPROCS
  atomic<bool> has_poller{false};      // the netpoller is in use

  alignas(64) atomic<uint64_t> last_id{0};
  atomic<int64_t> live{0};  // as P::live, by callers without a P
  atomic<int32_t> runs{0};  // calls of run() that wait
  atomic<bool> main_called_goexit{false};
  atomic<int32_t> poll_waiters{0};    // goroutines and threads that wait for a descriptor
  atomic<uint64_t> polls{0};          // visits to the netpoller; a hint
  atomic<int32_t> parked_threads{0};  // foreign threads parked without a time limit
  int64_t idle_ns = 0;                // an idle M's lifetime
  int64_t scavenge_ns = 0;            // between two passes of the scavenger

  sigset_t signal_mask{};  // of every M

  Lock world{LockRank::world};    // who stops the world; taken outside of the runtime
  Lock taking{LockRank::taking};  // one taker of Ps at a time, see p_word.h
  Note stopped;                   // the last P has stopped

  atomic<P*> all_ps[max_procs] = {};
  atomic<M*>* m_table = nullptr;  // by M::id, up to last_m_id
};

extern Sched sched;

/// A walk over a table of records, up to its end or its first empty place.
template <class T>
class Walk {
 public:
  Walk(const atomic<T*>* first, const atomic<T*>* end) : at_(first), end_(end) { look(); }
  Walk begin() const { return *this; }
  std::nullptr_t end() const { return nullptr; }
  T* operator*() const { return record_; }
  Walk& operator++() {
    ++at_;
    look();
    return *this;
  }
  bool operator!=(std::nullptr_t) const { return record_ != nullptr; }

 private:
  void look() { record_ = at_ != end_ ? at_->load(acquire) : nullptr; }
  const atomic<T*>* at_;
  const atomic<T*>* end_;
  T* record_ = nullptr;
};

/// Every M that ever was: `for (M* m : all_ms())`. New ones may be missed.
inline Walk<M> all_ms() { return {sched.m_table + 1, sched.m_table + PWord::max_owner + 1}; }
/// The Ps in use, GOMAXPROCS of them.
inline Walk<P> all_ps() { return {sched.all_ps, sched.all_ps + sched.procs.load(acquire)}; }
/// The same and those that a smaller GOMAXPROCS has put aside.
inline Walk<P> ps_ever() { return {sched.all_ps, sched.all_ps + max_procs}; }

/// The M that a P's word names.
inline M* owner_of(PWord word) { return sched.m_table[word.owner()].load(acquire); }

}  // namespace gofer::internal
