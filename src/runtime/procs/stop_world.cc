// Stop the world, and gomaxprocs(n) by it.
//
// The world is stopped when no thread but the stopper touches a P. That does not need every
// goroutine to stop: an M that computes or blocks outside of the runtime loses its P by the P word
// (p_word.h) within microseconds, and only notices at its next entry, if it does not get the P back
// before. An M inside the runtime comes to the scheduler or leaves the runtime soon; idle Ps are
// taken under the lock. Without membarrier a signal asks the Ms outside of the runtime to give up
// their Ps; without signals, too, there is only the waiting for goroutines to call the runtime.
#include "runtime/procs/stop_world.h"

#include <gofer/go.h>

#include <new>
#include <utility>

#include "os/clock.h"
#include "os/cpu_count.h"
#include "os/memory.h"
#include "runtime/goroutines/spawn.h"
#include "runtime/process/process_state.h"
#include "runtime/process/start.h"
#include "runtime/procs/current.h"
#include "runtime/procs/lost.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/procs.h"
#include "runtime/procs/retake.h"
#include "runtime/procs/spinning.h"
#include "runtime/procs/thread_gate.h"
#include "runtime/procs/transitions.h"
#include "runtime/report/panic.h"
#include "runtime/sched/queues.h"
#include "runtime/sched/sched_lock.h"
#include "runtime/threads/m_table.h"
#include "runtime/threads/threads.h"
#include "runtime/watch/preempt.h"

namespace gofer::internal {

constinit World world;
constinit Pauses world_pauses;

namespace {

constexpr int64_t retry_ns = 100'000;

// Outside of the runtime, because a caller that waits for the world must not keep it from stopping.
void lock_world() GOFER_ACQUIRES(world.lock) {
  if (current_m() == nullptr) {
    world.lock.lock();
    return;
  }
  while (!world.lock.try_lock()) yield();
}

// Without membarrier: the Ms outside of the runtime give up their Ps by themselves (preempt_here).
// A signal that finds its M inside is in vain, and so the stopper sends it again and again.
void ask_for_running_ps() {
  for (P* p : all_ps()) {
    const PWord word(p->word.load(acquire));
    if (word.state() != PWordState::running) continue;
    M* m = owner_of(word);
    if (m->in_runtime.load(relaxed) == 0) signal_m(m);
  }
}

// Takes the Ps of all Ms outside of the runtime; one membarrier serves them all.
void take_running_ps() {
  if (!taking.has_membarrier.load(relaxed)) {
    ask_for_running_ps();
    return;
  }
  static constinit PWord words[max_procs] = {};  // guarded by world.lock
  bool any = false;
  LockGuard one_taker(taking.lock);
  for (P* p : all_ps()) {
    words[p->id] = begin_take(p, PWord(p->word.load(acquire)));
    any = any || words[p->id] != PWord();
  }
  if (!any) return;
  const bool fenced = fence_others();
  LockGuard guard(sched_lock);
  for (P* p : all_ps()) {
    const PWord word = words[p->id];
    if (word == PWord() || !finish_take(p, word, fenced)) continue;
    p->taken_from = owner_of(word);
    stop_p_locked(p);
  }
}

bool all_stopped() {
  LockGuard guard(sched_lock);
  return world.stop_wait == 0;
}

// If the M has not noticed that it lost p, it has p again, as it was.
bool give_back(P* p) GOFER_REQUIRES(sched_lock) {
  M* m = p->taken_from;
  p->taken_from = nullptr;
  if (m == nullptr || m->p != p) return false;
  return transition::given_back(m, p);
}

// Under sched_lock: the M that p was taken from has lost p for good.
void not_given_back(P* p) GOFER_REQUIRES(sched_lock) {
  M* m = p->taken_from;
  p->taken_from = nullptr;
  if (m == nullptr || m->p != p) return;
  if (p->word.load(relaxed) != PWord(m->p_word).with(PWordState::lost).bits()) return;
  note_lost(m, -1, call_crowd);
}

P* new_p(int id) {
  void* memory = os::reserve((sizeof(P) + os::page_size - 1) & ~(os::page_size - 1));
  if (memory == nullptr) return nullptr;
  P* p = ::new (memory) P;
  p->id = static_cast<uint32_t>(id);
  p->random = static_cast<uint32_t>(id + 1) * 0x9e3779b9u;
  return p;
}

// What p had goes to the global queue, lists and pools.
void retire_p(P* p) GOFER_REQUIRES(sched_lock) {
  drain_local_locked(p);
  drain_free_gs(p->free_gs, 0);
  drain_stacks(p->stacks, 0);
  not_given_back(p);
  transition::removed(p);
}

// The P of m, which has changed their number, may be among those put aside.
void keep_a_p(M* m) GOFER_REQUIRES(sched_lock) {
  if (m == nullptr || m->p->id < static_cast<uint32_t>(p_table.in_use.load(relaxed))) return;
  P* first = p_table.all[0].load(relaxed);
  not_given_back(first);
  acquire_p(m, first);
}

// Every P goes to the M that it was taken from, or is idle. Returns a list of those that have work.
P* restart_ps(const M* m) GOFER_REQUIRES(sched_lock) {
  P* with_work = nullptr;
  for (int i = p_table.in_use.load(relaxed) - 1; i >= 0; --i) {
    P* p = p_table.all[i].load(relaxed);
    p->preempt.store(false, relaxed);
    if (m != nullptr && m->p == p) {
      transition::restarted(p);
    } else if (!give_back(p)) {
      transition::freed(p);
      if (p->queue.empty()) {
        put_idle_p(p);
      } else {
        p->link = with_work;
        with_work = p;
      }
    }
  }
  return with_work;
}

// m is the M of the stopper, inside, or nullptr.
void begin_stop(const M* m) {
  LockGuard guard(sched_lock);
  world.stop_wait = p_table.in_use.load(relaxed);
  world.stopping.store(true, seq_cst);
  for (P* p : all_ps()) p->preempt.store(true, relaxed);
  if (m != nullptr) stop_p_locked(m->p);
  while (P* p = take_unused_p()) {
    transition::freed(p);
    stop_p_locked(p);
  }
}

// Tries for some time to take the lock.
bool try_lock_until(Lock& lock, int64_t end_ns) GOFER_UNCHECKED_LOCKS {
  while (!lock.try_lock()) {
    if (os::now_ns() >= end_ns) return false;
    os::sleep_ns(retry_ns);
  }
  return true;
}

}  // namespace

bool stop_the_world_for_good(int64_t limit_ns) GOFER_UNCHECKED_LOCKS {
  const int64_t end = os::now_ns() + limit_ns;
  if (!try_lock_until(world.lock, end)) return false;
  // A thread that is stuck may hold one of these.
  for (Lock* lock : {&taking.lock, static_cast<Lock*>(&sched_lock)}) {
    if (!try_lock_until(*lock, end)) return false;
    lock->unlock();
  }
  begin_stop(nullptr);
  while (!all_stopped()) {
    if (os::now_ns() >= end) return false;
    take_running_ps();
    if (!all_stopped()) world.stopped.wait(retry_ns);
  }
  return true;
}

M* stop_the_world() {
  lock_world();
  M* m = enter();
  world_pauses.begin_ns = os::now_ns();
  begin_stop(m);
  while (!all_stopped()) {
    take_running_ps();
    if (!all_stopped()) world.stopped.wait(retry_ns);
  }
  world_pauses.stopping.record(os::now_ns() - world_pauses.begin_ns);
  if (tracer::is_on()) tracer::world_stopped(m);
  return m;
}

void start_the_world(M* m) {
  if (tracer::is_on()) tracer::world_starts(m);
  P* with_work;
  {
    LockGuard guard(sched_lock);
    world.stopping.store(false, seq_cst);
    with_work = restart_ps(m);
  }
  while (with_work != nullptr) {
    Wakeup wakeup;
    {
      LockGuard guard(sched_lock);
      P* p = with_work;
      with_work = std::exchange(p->link, nullptr);
      wakeup = start_m_locked(p, false);
    }
    wakeup.now();
  }
  wake_p();
  world_pauses.total.record(os::now_ns() - world_pauses.begin_ns);
  world.lock.unlock();
  if (m != nullptr) leave(m);
}

int resize_ps(int n) {
  const int old = p_table.in_use.load(relaxed);
  for (int i = 0; i < n; ++i) {
    P* p = p_table.all[i].load(relaxed);
    if (p == nullptr) {
      p = new_p(i);
      if (p == nullptr) {
        n = i;
        break;
      }
      p_table.all[i].store(p, release);
    }
    if (i >= old) transition::added(p);
  }
  if (n < old) {
    for (P* p : ps_between(n, old)) retire_p(p);
  }
  for (P* p : ps_between(0, n)) p->queue.set_alone(n == 1);
  p_table.in_use.store(n, release);
  return n;
}

}  // namespace gofer::internal

namespace gofer {

using namespace internal;

int gomaxprocs(int n) {
  ensure_started();
  if (n <= 0 || process.exiting.load(relaxed)) return p_table.in_use.load(relaxed);
  if (n > max_procs) {
    warn("gomaxprocs(%d): %d at most", n, max_procs);
    n = max_procs;
  }
  M* m = stop_the_world();
  const int old = p_table.in_use.load(relaxed);
  if (n != old) {
    TimerHeap& first = p_table.all[0].load(relaxed)->timers;
    if (n < old) {
      for (P* p : ps_between(n, old)) p->timers.move_all(first);
    }
    int got;
    {
      LockGuard guard(sched_lock);
      got = resize_ps(n);
      keep_a_p(m);
    }
    if (tracer::is_on()) tracer::procs_changed(m, got);
    if (got != n) warn("gomaxprocs(%d): memory for %d only", n, got);
  }
  start_the_world(m);
  return old;
}

int num_cpu() { return internal::num_cpu(); }

}  // namespace gofer
