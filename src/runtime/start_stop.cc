// Ms and Ps coming together and parting: wake, start, lock to a goroutine, end.
//
// Waking a sleeping thread costs microseconds to the waker and tens of them until it runs, so it
// happens only when a P is idle and nobody is looking for work already (wake_p).
#include <cxxabi.h>
#include <signal.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "os/memory.h"
#include "os/thread.h"
#include "runtime/panic.h"
#include "runtime/prologue.h"
#include "runtime/sched.h"
#include "runtime/signal_stack.h"
#include "runtime/template_thread.h"
#include "runtime/thread_gate.h"

#ifdef _LIBCPP_VERSION
namespace __cxxabiv1 {  // libc++abi has it and does not declare it
struct __cxa_eh_globals;
extern "C" __cxa_eh_globals* __cxa_get_globals();
}  // namespace __cxxabiv1
#endif

namespace gofer::internal {
namespace {

constexpr int64_t ms_to_ns = 1'000'000;
constexpr int64_t thread_retry_ns = 10 * ms_to_ns;

// The functions with "locked" in their names need the scheduler's lock.

// A record for one more thread; nullptr without memory for it.
M* new_m_locked() {
  M* m = sched.free_ms;
  if (m != nullptr) {
    sched.free_ms = m->link;
    m->reset();
  } else {
    void* memory = os::reserve((sizeof(M) + os::page_size - 1) & ~(os::page_size - 1));
    if (memory == nullptr || sched.last_m_id == PWord::max_owner) return nullptr;
    m = ::new (memory) M;
    m->id = ++sched.last_m_id;
    sched.m_table[m->id].store(m, release);
  }
  ++sched.ms;
  return m;
}

void free_m_locked(M* m) {
  --sched.ms;
  m->link = sched.free_ms;
  sched.free_ms = m;
  // With this M gone the others may be stuck, and the last of them to sleep did not know: one is
  // woken without a P, to watch for a deadlock.
  if (sched.idle_ms != nullptr && should_watch_locked()) wake_m(sched.idle_ms);
}

// Goroutines that keep their threads without a P did not ask for that, and those that have a P need
// no other thread. They go on in time, and then their threads are there for others. But if most
// threads are what the program has asked for, in calls that it announced or bound to goroutines, it
// exceeds its limit. in_hand: Ps that are neither idle nor an M's.
bool wait_at_limit_locked(int in_hand) {
  const int with_p = sched.procs.load(relaxed) - sched.idle_p_count.load(relaxed) - in_hand;
  return sched.ms >= sched.max_ms &&
         2 * (sched.tied.load(relaxed) + sched.lost_ms.load(relaxed) + with_p) >= sched.ms;
}

void check_thread_limit_locked() {
  if (sched.ms < sched.max_ms) return;
  const int limit = sched.max_ms;
  sched.lock.unlock();
  fatal_thread_limit(limit);
}

// A thread could not be started, so there may be work without anybody to do it, if all the others
// wait for their locked goroutines: one of those tries again (wait_for_p).
void wake_a_locked_m() {
  for (uint32_t id = 1; id <= PWord::max_owner; ++id) {
    M* m = sched.m_table[id].load(acquire);
    if (m == nullptr) return;
    if (m->waits_for_p.load(seq_cst)) {
      m->note.signal();
      return;
    }
  }
}

void try_threads_again() {
  sched.lock.lock();
  if (P* p = take_idle_p_with_work_locked(); p != nullptr) {
    start_m(p, false);  // releases the lock
  } else {
    sched.lock.unlock();
  }
}

// No thread to be had: the work goes on with those that are there.
void thread_failed(M* m, int error) {
  {
    LockGuard guard(sched.lock);
    P* p = m->next_p.load(relaxed);
    const bool spinning = m->spinning;
    if (m->birth == Birth::as_reserve) --sched.reserve_coming;
    if (m->birth == Birth::with_p) --sched.unborn_ps;
    m->birth = Birth::over;
    free_m_locked(m);
    sched.no_thread_until_ns.store(os::now_ns() + thread_retry_ns, relaxed);
    if (spinning) sched.spinning_ms.fetch_sub(1, seq_cst);
    if (p != nullptr) put_unused_p(p);
  }
  try_threads_again();  // on an M that went idle while this P was waiting for the new one
  wake_a_locked_m();
  static constinit atomic<bool> said{false};
  if (!said.exchange(true, relaxed)) {
    warn("cannot start one more thread (%s): going on with fewer", std::strerror(error));
  }
}

// While tied ones crowd, an M gets p to serve fresh goroutines; or a single one that was woken, and
// then the tied ones again, because among those in p's ring may be many that compute.
void set_budget(P* p, Pass to) {
  if (crowded()) p->budget = to == Pass::to_urgent ? 1 : switches_per_look;
}

bool hopeless_locked() {
  const int64_t until = sched.no_thread_until_ns.load(relaxed);
  return until != 0 && os::now_ns() < until;
}

// The thread was started with all signals blocked.
void set_signal_mask() {
  const int error = os::set_signal_mask(SIG_SETMASK, &sched.signal_mask, nullptr);
  static constinit atomic<bool> said{false};
  if (error == 0 || said.exchange(true, relaxed)) return;
  warn(
      "rt_sigprocmask fails with errno %d: new threads may take no signals, and are not preempted "
      "then",
      error);
}

void* m_main(void* arg) {
  M* m = static_cast<M*>(arg);
  gofer_current_m = m;
  os::name_thread("gofer-m");
  watch_for_exit();
  m->tid = os::thread_id();
  set_signal_mask();
  m->base = __builtin_frame_address(0);
  m->exceptions = reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals());
  sanitizer_adopt_thread(m->g0.fiber);
  SignalStack signal_stack;
  m->signal_stack = reinterpret_cast<uintptr_t>(signal_stack.memory());
  m->signal_stack_size = signal_stack.size();
  // With what may wait for a lock of libc behind it: until now others may take its P.
  Birth birth;
  {
    LockGuard guard(sched.lock);
    m->guard = prologue_guard();
    birth = std::exchange(m->birth, Birth::over);
    if (birth == Birth::with_p) {
      take_given_p(m);
      --sched.unborn_ps;
    }
    if (birth == Birth::as_reserve) --sched.reserve_coming;
  }
  if (birth == Birth::with_p) {
    schedule_loop(m);
  } else if (birth == Birth::on_idle_list ? sleep_idle(m, IdleTask()) : stop_m(m)) {
    schedule_loop(m);
  }
  // From here on it is a foreign thread that runs its thread_local destructors.
  sigset_t all;
  sigfillset(&all);
  os::set_signal_mask(SIG_SETMASK, &all, nullptr);
  gofer_current_m = nullptr;
  LockGuard guard(sched.lock);
  m->guard = nullptr;
  free_m_locked(m);
  return nullptr;
}

}  // namespace

void acquire_p(M* m, P* p) {
  const PWord old(p->word.load(relaxed));
  const PWord word = PWord::make(m->id, old.generation() + 1, PWordState::running);
  forget_lost(m);
  m->p = p;
  m->p_word = word.bits();
  p->status.store(PStatus::running, relaxed);
  p->word.store(word.bits(), release);
}

P* release_p(M* m) {
  P* p = m->p;
  m->p = nullptr;
  disown_p(p);
  return p;
}

void disown_p(P* p) {
  const PWord old(p->word.load(relaxed));
  p->word.store(PWord::make(0, old.generation() + 1, PWordState::none).bits(), release);
}

void put_idle_p(P* p) {
  p->status.store(PStatus::idle, relaxed);
  p->link = sched.idle_ps;
  sched.idle_ps = p;
  sched.idle_p_count.fetch_add(1, seq_cst);
}

P* take_idle_p() {
  P* p = sched.idle_ps;
  if (p == nullptr) return nullptr;
  sched.idle_ps = p->link;
  p->link = nullptr;
  sched.idle_p_count.fetch_sub(1, seq_cst);
  if (sched.sysmon_sleeps.load(seq_cst) == static_cast<uint32_t>(SysmonSleep::deep)) wake_sysmon();
  return p;
}

P* take_unused_p() {
  if (P* p = take_idle_p(); p != nullptr) return p;
  if (sched.unborn_ps == 0) return nullptr;
  for (uint32_t id = 1; id <= PWord::max_owner; ++id) {
    M* m = sched.m_table[id].load(acquire);
    if (m == nullptr) return nullptr;
    P* p = m->next_p.load(relaxed);
    if (m->birth != Birth::with_p || p == nullptr) continue;
    m->next_p.store(nullptr, relaxed);
    m->birth = Birth::as_reserve;
    ++sched.reserve_coming;
    --sched.unborn_ps;
    if (std::exchange(m->spinning, false)) {
      sched.spinning_ms.fetch_sub(1, seq_cst);
      sched.need_spinning.store(1, seq_cst);  // it would have looked for work
    }
    return p;
  }
  return nullptr;
}

void put_unused_p(P* p) {
  if (!sched.stopping.load(relaxed)) {
    put_idle_p(p);
    return;
  }
  p->status.store(PStatus::gcstop, relaxed);
  if (--sched.stop_wait == 0) sched.stopped.signal();
}

namespace {

// No P is idle for the M that should look for work. Under the lock, and need_spinning after the
// count: a submitter that relied on the count until now has work somewhere, and the M that holds
// the missing P looks for it before it gives the P up.
void cannot_spin_locked() {
  sched.spinning_ms.fetch_sub(1, seq_cst);
  sched.need_spinning.store(1, seq_cst);
}

}  // namespace

void wake_p_slow() {
  int32_t nobody = 0;
  if (!sched.spinning_ms.compare_exchange_strong(nobody, 1, seq_cst)) return;
  sched.lock.lock();
  P* p = take_idle_p();
  if (p == nullptr) {
    cannot_spin_locked();
    sched.lock.unlock();
    return;
  }
  sched.need_spinning.store(0, seq_cst);
  start_m(p, true);
}

namespace {

// A thread that is being started as a reserve runs p when it comes. Else a world that is stopped
// and started in quick succession, which takes the Ps of unborn threads back, would ask for new
// ones each time.
bool take_coming_m_locked(P* p, bool spinning) {
  if (sched.reserve_coming == 0) return false;
  for (uint32_t id = 1; id <= PWord::max_owner; ++id) {
    M* m = sched.m_table[id].load(acquire);
    if (m == nullptr) return false;
    if (m->birth != Birth::as_reserve) continue;
    m->birth = Birth::with_p;
    --sched.reserve_coming;
    ++sched.unborn_ps;
    give_p(m, p, spinning);
    return true;
  }
  return false;
}

}  // namespace

void start_m(P* p, bool spinning) {
  M* m = take_idle_m_locked();
  while (m == nullptr && start_tied_locked(p)) {
    if (!spinning) return;
    // The tied goroutine does not look for work, and submitters rely on an M that does: the next
    // idle P is for that one.
    sched.lock.lock();
    p = take_idle_p();
    if (p == nullptr) {
      cannot_spin_locked();
      sched.lock.unlock();
      return;
    }
    m = take_idle_m_locked();
  }
  if (m != nullptr) {
    give_p(m, p, spinning);
    sched.lock.unlock();
    wake_m(m);
    return;
  }
  if (take_coming_m_locked(p, spinning)) {
    sched.lock.unlock();
    return;
  }
  if (!hopeless_locked() && !wait_at_limit_locked(1)) {
    check_thread_limit_locked();
    m = new_m_locked();
  }
  if (m == nullptr) {
    if (spinning) sched.spinning_ms.fetch_sub(1, seq_cst);
    put_unused_p(p);
    sched.lock.unlock();
    return;
  }
  give_p(m, p, spinning);
  ++sched.unborn_ps;
  want_thread_locked(m);
  sched.lock.unlock();
  tell_template_thread();
}

void begin_m(M* m) {
  const int error = os::start_thread(m_main, m);
  if (error != 0) {
    thread_failed(m, error);
  } else if (sched.no_thread_until_ns.load(relaxed) != 0) {
    sched.no_thread_until_ns.store(0, relaxed);
  }
}

bool retry_thread() {
  if (sched.no_thread_until_ns.load(seq_cst) == 0) return false;
  sched.lock.lock();
  const bool lacks = sched.idle_ps != nullptr && sched.idle_ms == nullptr &&
                     sched.reserve_coming == 0 && sched.ms < sched.max_ms;
  if (!lacks || hopeless_locked()) {
    sched.lock.unlock();
    return lacks;
  }
  P* p = take_idle_p_with_work_locked();
  start_m(p != nullptr ? p : take_idle_p(), false);  // releases the lock
  return true;
}

bool want_idle_ms(int n, bool fresh) {
  bool any = false;
  bool somebody;
  int limit = 0;
  {
    LockGuard guard(sched.lock);
    somebody = sched.idle_ms != nullptr || sched.tied_queue.front() != nullptr;
    // With all threads tied to goroutines, nobody could run those that have none.
    if (fresh && sched.idle_m_count + sched.reserve_coming == 0 && sched.ms >= sched.max_ms &&
        !wait_at_limit_locked(0)) {
      limit = sched.max_ms;
    }
    while (sched.idle_m_count + sched.reserve_coming < n && sched.ms < sched.max_ms &&
           !hopeless_locked()) {
      M* m = new_m_locked();
      if (m == nullptr) break;
      m->birth = Birth::as_reserve;
      ++sched.reserve_coming;
      want_thread_locked(m);
      any = true;
    }
  }
  if (limit != 0) fatal_thread_limit(limit);
  if (any) tell_template_thread();
  return somebody;
}

int start_first_m() {
  sched.lock.lock();
  M* m = new_m_locked();
  if (m != nullptr) {
    // On the list at once: the first `go` shall find it there and start no second one.
    m->birth = Birth::on_idle_list;
    put_idle_m_locked(m);
  }
  sched.lock.unlock();
  if (m == nullptr) return ENOMEM;
  const int error = os::start_thread(m_main, m);
  if (error != 0) {
    LockGuard guard(sched.lock);
    remove_idle_m_locked(m);
    free_m_locked(m);
  }
  return error;
}

void hand_off(P* p, Pass to) {
  sched.lock.lock();
  const bool stopping = sched.stopping.load(relaxed);
  if (!stopping && to == Pass::to_tied && start_tied_locked(p)) return;
  if (!stopping && (!p->queue.empty() || global_count_locked() != 0)) {
    start_m(p, false);
    return;
  }
  // Nobody looks for work and no P is idle: this one should.
  int32_t nobody = 0;
  if (!stopping && sched.idle_p_count.load(relaxed) == 0 &&
      sched.spinning_ms.compare_exchange_strong(nobody, 1, seq_cst)) {
    sched.need_spinning.store(0, seq_cst);
    start_m(p, true);
    return;
  }
  disown_p(p);
  put_unused_p(p);
  // Timers that are due have waited for an idle P.
  if (!stopping && sched.sleeper != nullptr && earliest_timer_ns() <= os::now_ns()) {
    wake_m(sched.sleeper);
  }
  // The spinner that we saw may have found work and no idle P for the next spinner: this one is it.
  if (!stopping && sched.need_spinning.load(seq_cst) != 0) {
    p = take_idle_p();
    sched.spinning_ms.fetch_add(1, seq_cst);
    sched.need_spinning.store(0, seq_cst);
    start_m(p, true);
    return;
  }
  sched.lock.unlock();
}

void give_up_p(M* m) {
  P* p = m->p;
  m->in_doubt.store(1, relaxed);
  disown_p(p);
  hand_off(p);
}

void end_m(M* m) { hand_off(release_p(m)); }

bool wait_for_p(M* m) {
  sched.lock.lock();
  ++sched.idle_locked_ms;
  // It is on no list, so nobody can tell it to watch later: it looks now and then in any case.
  const bool run_waits = sched.runs.load(relaxed) != 0;
  int64_t look_ns = should_watch_locked() ? first_deadlock_look_ns : last_deadlock_look_ns / 8;
  sched.lock.unlock();
  m->waits_for_p.store(true, seq_cst);
  while (m->next_p.load(acquire) == nullptr) {
    if (m->let_go.load(seq_cst)) return false;
    if (m->released.load(seq_cst)) {
      m->waits_for_p.store(false, relaxed);
      return false;
    }
    const bool no_thread = sched.no_thread_until_ns.load(seq_cst) != 0;
    int64_t timeout = run_waits ? look_ns : -1;
    if (no_thread) timeout = thread_retry_ns;
    if (m->note.wait(timeout)) continue;
    if (no_thread) {
      try_threads_again();
    } else {
      check_deadlock();
      look_ns = next_deadlock_look(look_ns);
    }
  }
  m->waits_for_p.store(false, relaxed);
  take_given_p(m);
  return true;
}

bool can_pass_on_locked(P* p, Pass to) {
  if (sched.stopping.load(relaxed)) return false;
  if (to == Pass::to_tied) return sched.tied_queue.front() != nullptr;
  G* next = next_global_locked();
  if (next == nullptr && p->queue.empty()) return false;
  return sched.idle_ms != nullptr || sched.tied_queue.front() != nullptr;
}

void pass_on_locked(P* p, Pass to) {
  if (to == Pass::to_tied && start_tied_locked(p)) return;
  set_budget(p, to);
  G* next = next_global_locked();
  const bool globally = next != nullptr && (p->queue.empty() || urgent_waits());
  // Straight to its own thread, without another that would only find that out.
  if (globally && next == sched.tied_queue.front() && start_tied_locked(p)) return;
  start_m(p, false);
}

void stop_locked_m(M* m) {
  announce_timer(m);
  if (m->p != nullptr) hand_off(release_p(m));
  while (!wait_for_p(m)) os::sleep_for_ever();
}

void start_locked_m(M* m, G* g) {
  M* owner = g->head->locked_m;
  P* p = release_p(m);
  {
    LockGuard guard(sched.lock);
    --sched.idle_locked_ms;
    if (g->head->tied) bump(sched.tied, -1);
  }
  give_p(owner, p, false);
  owner->note.signal();
}

bool start_tied_locked(P* p) {
  G* g = take_tied_locked();
  if (g == nullptr) return false;
  M* owner = g->head->locked_m;
  --sched.idle_locked_ms;
  if (g->head->tied) bump(sched.tied, -1);
  disown_p(p);
  give_p(owner, p, false);
  sched.lock.unlock();
  owner->note.signal();
  return true;
}

bool stop_for_world(M* m) {
  sched.lock.lock();
  if (!sched.stopping.load(relaxed)) {
    sched.lock.unlock();
    return true;
  }
  if (m->spinning) {
    m->spinning = false;
    sched.spinning_ms.fetch_sub(1, seq_cst);
  }
  put_unused_p(release_p(m));
  sched.lock.unlock();
  return stop_m(m);
}

}  // namespace gofer::internal
