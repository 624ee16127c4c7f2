// The scheduler's global state and the functions by which the rooms of the runtime call each other.
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
//   trace       execution traces: what transitions are as events, streams, the file
//   process     start, exit, fork, the environment, the small public calls
//
// "inside" in a comment: the caller has entered the runtime (enter()), or is on g0.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>

#include "os/thread.h"
#include "os/thread_state.h"
#include "runtime/base/atomic.h"
#include "runtime/base/lock.h"
#include "runtime/goroutines/g.h"
#include "runtime/process/debug_env.h"
#include "runtime/procs/current.h"
#include "runtime/procs/p.h"
#include "runtime/threads/m.h"

namespace gofer::internal {

/// How sysmon sleeps: for a short time; until something happens, or some milliseconds; or until a P
/// is no longer idle.
enum class SysmonSleep : uint32_t { shortly = 0, lightly = 1, deep = 2 };

inline constexpr int max_procs = 4096;
inline constexpr int idle_ms_reserve = 4;  // idle Ms that do not end
inline constexpr int id_batch = 16;
inline constexpr int own_threads = 2;  // sysmon and the template thread

/// A FIFO of goroutines linked by G::link.
class GQueue {
 public:
  void push_back(G* g) {
    g->link = nullptr;
    if (tail_ != nullptr) {
      tail_->link = g;
    } else {
      head_ = g;
    }
    tail_ = g;
    ++count_;
  }
  void push_front(G* g) {
    g->link = head_;
    head_ = g;
    if (tail_ == nullptr) tail_ = g;
    ++count_;
  }
  G* pop_front() {
    G* g = head_;
    if (g == nullptr) return nullptr;
    head_ = g->link;
    if (head_ == nullptr) tail_ = nullptr;
    --count_;
    return g;
  }
  /// The first of which `wanted` is true, taken out.
  G* take_if(bool (*wanted)(G* g, void* arg), void* arg) {
    G* before = nullptr;
    for (G* g = head_; g != nullptr; before = g, g = g->link) {
      if (!wanted(g, arg)) continue;
      if (before == nullptr) return pop_front();
      before->link = g->link;
      if (tail_ == g) tail_ = before;
      --count_;
      return g;
    }
    return nullptr;
  }
  void append(GQueue& other) {
    if (other.head_ == nullptr) return;
    if (tail_ != nullptr) {
      tail_->link = other.head_;
    } else {
      head_ = other.head_;
    }
    tail_ = other.tail_;
    count_ += other.count_;
    other = GQueue{};
  }
  size_t count() const { return count_; }
  G* front() const { return head_; }

 private:
  G* head_ = nullptr;
  G* tail_ = nullptr;
  size_t count_ = 0;
};

/// To whom a P goes from a goroutine that keeps its thread.
enum class Pass : uint8_t {
  in_turn,    // to the next one in the queues
  to_tied,    // to one that waits tied, if there is one
  to_urgent,  // to one that was just woken; after it, if tied ones crowd, to those
};

struct Sched {
  Lock lock{LockRank::sched};

  // Under the lock; atomics may be read without it.
  GQueue urgent GOFER_GUARDED_BY(lock);  // before the others: woken while every P was busy
  GQueue untried
      GOFER_GUARDED_BY(lock);  // the same, but nobody knows whether they are short (G::is_short)
  GQueue queue GOFER_GUARDED_BY(lock);
  GQueue tied_queue
      GOFER_GUARDED_BY(lock);  // those that wait on their own threads, in turn with `queue`
  uint32_t tied_spinning GOFER_GUARDED_BY(lock) =
      0;  // of those, the ones that were paused while they spun
  uint64_t queue_pushed GOFER_GUARDED_BY(lock) = 0;    // goroutines ever put at the tail of `queue`
  uint32_t turns GOFER_GUARDED_BY(lock) = 0;           // of tied goroutines while they are crowded
  uint32_t spinner_turns GOFER_GUARDED_BY(lock) = 0;   // and while some of them spin
  int64_t urgent_since_ns GOFER_GUARDED_BY(lock) = 0;  // others wait for the urgent; 0: they do not
  bool untrieds_turn GOFER_GUARDED_BY(lock) =
      false;  // not the ordinary ones', when those have waited for too long
  int passes_left GOFER_GUARDED_BY(lock) =
      0;  // how often the first that is tied may be passed over
  atomic<uint32_t> urgent_size{0};
  atomic<uint32_t> untried_size{0};
  atomic<bool> spinner_waits{false};  // a spinning and another goroutine wait tied
  atomic<bool> most_tied_spin{false};
  atomic<uint32_t> queue_size{0};  // of all four
  atomic<uint32_t> tied_size{0};   // of tied_queue: those in `tied`, and paused ones that are bound
  GQueue stack_waiters
      GOFER_GUARDED_BY(lock);  // goroutines that could not get a stack for their first run
  atomic<uint32_t> stack_waiter_count{0};
  P* idle_ps GOFER_GUARDED_BY(lock) = nullptr;
  M* idle_ms GOFER_GUARDED_BY(lock) = nullptr;
  M* free_ms GOFER_GUARDED_BY(lock) = nullptr;  // records of ended threads
  int ms GOFER_GUARDED_BY(lock) = 0;            // threads that live or are being started
  int idle_m_count GOFER_GUARDED_BY(lock) = 0;
  int idle_bound_ms GOFER_GUARDED_BY(lock) = 0;   // Ms that wait for their locked goroutine
  int reserve_coming GOFER_GUARDED_BY(lock) = 0;  // idle Ms that are being started
  int unborn_ps GOFER_GUARDED_BY(lock) = 0;       // given to Ms whose threads do not run yet
  atomic<M*> poller{nullptr};  // of the idle Ms the one that sleeps in the netpoller; set under the
                               // lock
  atomic<int> tied{0};         // runnable goroutines that wait for a P on their own thread
  atomic<int> tied_room{76};   // as many as should wait so: thread_gate.h
  M* sleeper GOFER_GUARDED_BY(lock) =
      nullptr;  // of the idle Ms the one that wakes for timers; there is one if any is idle
  atomic<int> lost_ms{0};  // Ms with lost_in
  int max_ms GOFER_GUARDED_BY(lock) = 10000;
  uint32_t last_m_id GOFER_GUARDED_BY(lock) = 0;  // Ms that ever were; their records stay
  atomic<int64_t> no_thread_until_ns{0};          // after a failure to start one
  int stop_wait GOFER_GUARDED_BY(lock) = 0;       // Ps yet to stop

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

// --- start.cc
void start_runtime();
[[noreturn]] void used_after_fork();
/// For a report, with which the process ends: no goroutine is scheduled any more, none is paused,
/// and those that compute go on like detached threads.
void stop_scheduling();
inline void ensure_started() {
  if (!sched.started.load(acquire)) [[unlikely]]
    start_runtime();
}

// --- sanitizer_mismatch.cc
/// Says so if the program is built with a sanitizer and the runtime is not.
void warn_of_sanitizer();

// --- exit.cc
/// If the calling thread is the main thread or an M, and calls exit(), the runtime hears of it
/// before the first exit handler runs.
void watch_for_exit();
/// Called by a thread_local destructor: the thread ends, or it has called exit().
void note_end_of_thread();
void install_exit_handlers();
/// Whether the calling thread runs the exit handlers.
inline bool is_exiting_thread() {
  const int tid = sched.exit_tid.load(relaxed);
  return tid != 0 && tid == os::thread_id();
}
/// The calling thread runs the exit handlers and waits for what can never happen: says so, and goes
/// on with the handlers that are left.
[[noreturn]] void exit_without_wait();

// --- queues.cc; "locked" needs the scheduler's lock. queues.h has the rest.
void put_global(G* g);
void put_global_locked(G* g) GOFER_REQUIRES(sched.lock);
/// Before all that wait there, the urgent aside.
void put_global_front(G* g);
void put_global_front_locked(G* g) GOFER_REQUIRES(sched.lock);
/// What the calling thread makes runnable without a P is urgent, as long as this lives.
class UrgentThread {
 public:
  UrgentThread();
  ~UrgentThread();
  UrgentThread(const UrgentThread&) = delete;
  UrgentThread& operator=(const UrgentThread&) = delete;
};
/// Needs the lock. A batch from the global queue: one is returned, the others go to p. max 0: a
/// fair share.
G* take_global(P* p, uint32_t max) GOFER_REQUIRES(sched.lock);
/// Makes goroutines that wait runnable, and empties the list. by: the M that found them, or
/// nullptr. urgent: before the others.
void put_global_locked(M* by, GQueue& list, bool urgent) GOFER_REQUIRES(sched.lock);
/// Goroutines in the global queue, and the first of them. Need the lock.
size_t global_count_locked() GOFER_REQUIRES(sched.lock);
G* next_global_locked() GOFER_REQUIRES(sched.lock);
/// Needs the lock. g waits for a P on its own thread; front: before all that wait there.
void put_tied_locked(G* g, bool front) GOFER_REQUIRES(sched.lock);
/// Needs the lock. The first goroutine that waits so and of which `wanted` is true.
G* take_tied_if(bool (*wanted)(G* g, void* arg), void* arg) GOFER_REQUIRES(sched.lock);
/// Needs the lock. The next of those that wait tied; nullptr: there is none.
G* take_tied_locked() GOFER_REQUIRES(sched.lock);
/// Needs the lock. One waits tied that was not paused while it spun.
bool has_unspinning_tied_locked() GOFER_REQUIRES(sched.lock);
/// Everything p has goes to the global queue.
void drain_local_locked(P* p) GOFER_REQUIRES(sched.lock);

// --- switch.cc: inside, on a goroutine's stack
/// Gives the M to another goroutine; `commit` runs once the caller's context is saved. Returns when
/// the caller runs again, perhaps on another M.
void switch_away(M* m, CommitFn commit);
void yield_goroutine(M* m);
/// Parks the running goroutine. For wait/park.cc, through which everything waits. The lock is
/// released when it is safe to ready the goroutine. early: the contest of a wait that may have been
/// won already, without that lock; then the goroutine goes on.
void park_goroutine(M* m, WaitReason reason, QueueLock lock, Contest* early = nullptr);
/// The end of the calling goroutine, whose function has returned or was unwound. Outside.
[[noreturn]] void finish_goroutine();

// --- schedule.cc
/// The life of an M on g0; returns when its thread is to end.
void schedule_loop(M* m);
/// Prepares the stack for g to begin on.
void adopt_stack(G* g, char* stack);
/// Gives a goroutine its stack. False: none to be had.
bool attach_stack(P* p, G* g);
/// Moves the free stacks of idle Ps to the pool; how many.
int collect_idle_stacks();
/// p's free stacks go to the pool, and a goroutine that waits for one gets its chance.
void serve_stack_waiter(P* p);

// --- find_runnable.cc
/// A goroutine to run, sleeping until there is one; nullptr: the thread is to end.
G* find_runnable(M* m, bool& inherits);
/// No goroutine is scheduled any more. An M whose goroutine makes the report, and waits in it, ends
/// the process.
[[noreturn]] void wait_at_exit(M* m);

// --- sysmon.cc
int start_sysmon();
void wake_sysmon();

// --- procs.cc; procs.h has the rest
inline bool all_idle() { return sched.idle_p_count.load(seq_cst) == sched.procs.load(relaxed); }

void wake_p_slow();
/// If a P is idle and nobody looks for work, somebody shall.
///
/// The order of the loads matters; spinning.h tells why.
inline void wake_p() {
  if (sched.spinning_ms.load(seq_cst) != 0) return;
  if (sched.need_spinning.load(seq_cst) == 0) sched.need_spinning.store(1, seq_cst);
  if (sched.idle_p_count.load(seq_cst) != 0) {
    wake_p_slow();
  } else if (sched.sysmon_sleeps.load(relaxed) != 0) [[unlikely]] {
    wake_sysmon();  // work waits and every P is busy, or blocked
  }
}

// --- threads.cc
inline constexpr int64_t thread_retry_ns = 10'000'000;  // after a thread could not be started

/// What a function has decided under the scheduler's lock and its caller does without the lock.
struct [[nodiscard]] Wakeup {
  M* m = nullptr;          // to be woken: it was given a P
  bool thread = false;     // the template thread has a thread to start
  int exceeded_limit = 0;  // the program has asked for more threads than this
  void now() const;
};
/// Needs the lock. Runs p on an idle M; if there is none, on the thread of a goroutine that waits
/// for a P tied to it, which costs no new thread and may be what others wait for; else on a new
/// one.
Wakeup start_m_locked(P* p, bool spinning) GOFER_REQUIRES(sched.lock);
/// Starts the thread of m. On the template thread.
void begin_m(M* m);
/// An idle P that has work goes to some M, if one can be had now.
void try_threads_again();
/// Requests threads until n Ms are idle. Returns whether a P could be given to an M now: an idle
/// one, or one that waits for it tied. fresh: goroutines wait that are not tied to a thread, so if
/// there is none for them the program may exceed its limit of threads.
bool want_idle_ms(int n, bool fresh = false);
/// A P is idle and no M is, because a thread could not be started: nobody runs what is in the
/// queues, or wakes for timers and descriptors, if all other threads are in calls. Tries again,
/// some time after the failure. False: it is not so.
bool retry_thread();
/// The M gives up its P for good.
void end_m(M* m);
/// Creates the first M. 0 or an errno value.
int start_first_m();

// --- bound.cc
/// Blocks until this M is handed a P for its own goroutine. Returns false if the M must continue
/// without one (M::let_go, M::released).
bool wait_for_p(M* m);
void stop_bound_m(M* m);
/// Gives m's P to the M whose own goroutine g is.
void start_bound_m(M* m, G* g);
/// Stops for the M that stops the world. False: the thread is to end.
bool stop_for_world(M* m);

// --- idle.cc; "locked" needs the scheduler's lock
/// What an idle M wakes for, apart from being told.
struct IdleTask {
  int64_t earliest_ns = no_timer;  // timers
  bool poll = false;               // descriptors
  bool watch = false;              // a deadlock
};
/// The M has no P: sleeps until it is given one. False: the thread is to end.
bool stop_m(M* m);
/// The same for an M that is on the idle list already.
bool sleep_idle(M* m, const IdleTask& task);
/// Ends the sleep of an idle M.
void wake_m(M* m);
/// There is a timer earlier than the sleeper knows.
void wake_sleeper(int64_t when_ns);
/// An idle M shall sleep in the netpoller, if none does and a P is idle.
void want_poller();
M* take_idle_m_locked() GOFER_REQUIRES(sched.lock);
void put_idle_m_locked(M* m) GOFER_REQUIRES(sched.lock);
void remove_idle_m_locked(M* m) GOFER_REQUIRES(sched.lock);
/// It may be a deadlock: run() waits and every M is idle.
bool should_watch_locked() GOFER_REQUIRES(sched.lock);
P* take_idle_p_with_work_locked() GOFER_REQUIRES(sched.lock);

// --- retake.cc
/// Every other thread has passed a full barrier. False: it has not, because the kernel refuses; the
/// first refusal ends the use of membarrier, and Ms are asked for their Ps by signals instead.
bool fence_others();
/// The first half of taking p from the M that holds it by exactly the word that the caller has
/// judged: the owner may have been another one a moment later. PWord() when there is nothing to
/// take. A membarrier has to follow before the second half; that is true if p is the caller's.
PWord begin_take(P* p, PWord judged);
bool finish_take(P* p, PWord word, bool fenced);
/// Both halves.
bool take_p(P* p, PWord judged);
/// The P belongs to m by its word, whatever takers do meanwhile. Inside.
bool keep_p(M* m);
/// m is inside and in doubt about its P: it keeps the P, or gets another one, waiting if need be.
/// False: it has none, as above.
bool settle_doubt(M* m);
/// Needs the lock. The goroutine of m is to wait for a P in the global queue, tied to its thread;
/// front: before all that wait so. The caller calls wait_tied when it has released the lock.
void tie_locked(M* m, bool front) GOFER_REQUIRES(sched.lock);
/// Blocks until m has a P again for its goroutine. False: the process ends or the paused are
/// released, and m goes on without a P; `before` is the P that it had.
bool wait_tied(M* m, P* before);
/// Some paused thread goes on without a P, as one that has lost it. False: there is none.
bool release_paused();
/// A P for m, which has lost its own; false if none is idle. Needs the lock.
bool take_any_p_locked(M* m) GOFER_REQUIRES(sched.lock);

// --- lost.cc
/// m is about to lose its P without noticing, or has, and sleeps in a crowd (thread_gate.h): sysmon
/// pauses it if it computes on. Its processor time then, or -1.
void note_lost(M* m, int64_t cpu_ns, uint32_t crowd);
void forget_lost(M* m);
/// Pauses those of them that compute on. For sysmon, once a round.
void pause_lost();
/// What the kernel tells about the thread of m.
os::ThreadState look_at_thread(const M* m);

// --- stop_world.cc: called outside of the runtime; the caller is inside afterwards
/// Returns the caller's M, nullptr in a foreign thread.
M* stop_the_world() GOFER_ACQUIRES(sched.world);
void start_the_world(M* m) GOFER_RELEASES(sched.world);
/// World stopped, lock held. Returns how many there are then: fewer than n without memory.
int resize_ps(int n) GOFER_REQUIRES(sched.lock);

// --- deadlock.cc
/// If it is certain that no goroutine can ever run again: reports and ends the process; in the
/// thread that runs the exit handlers, goes on with them.
void check_deadlock();
inline constexpr int64_t first_deadlock_look_ns = 10'000'000;
inline constexpr int64_t last_deadlock_look_ns = 10'000'000'000;
int64_t next_deadlock_look(int64_t look_ns);

// --- verify.cc
/// Stops the world and checks every queue, list and counter; the first contradiction is fatal.
void verify_scheduler();

}  // namespace gofer::internal
