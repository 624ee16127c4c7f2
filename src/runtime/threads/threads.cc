// Threads: the records of Ms, how their threads start and end, and how many there may be.
#include "runtime/threads/threads.h"

#include <cxxabi.h>
#include <signal.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "os/memory.h"
#include "os/thread.h"
#include "runtime/base/debug_table.h"
#include "runtime/process/exit.h"
#include "runtime/procs/current.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/procs.h"
#include "runtime/procs/spinning.h"
#include "runtime/procs/thread_gate.h"
#include "runtime/procs/transitions.h"
#include "runtime/report/panic.h"
#include "runtime/sched/global_queue.h"
#include "runtime/sched/schedule.h"
#include "runtime/threads/bound.h"
#include "runtime/threads/idle.h"
#include "runtime/threads/m_table.h"
#include "runtime/threads/signal_stack.h"
#include "runtime/threads/template_thread.h"
#include "runtime/threads/transitions.h"
#include "runtime/wait/coarse_clock.h"
#include "runtime/watch/prologue.h"

#ifdef _LIBCPP_VERSION
namespace __cxxabiv1 {  // libc++abi has it and does not declare it
struct __cxa_eh_globals;
extern "C" __cxa_eh_globals* __cxa_get_globals();
}  // namespace __cxxabiv1
#endif

namespace gofer::internal {

constinit Threads threads;
constinit atomic<M*>* m_table = nullptr;

namespace {

// A record for one more thread; nullptr without memory for it.
M* new_m_locked() GOFER_REQUIRES(sched_lock) {
  M* m = threads.free;
  if (m != nullptr) {
    threads.free = m->link;
    m->reset();
  } else {
    void* memory = os::reserve((sizeof(M) + os::page_size - 1) & ~(os::page_size - 1));
    if (memory == nullptr || threads.last_id == PWord::max_owner) return nullptr;
    m = ::new (memory) M;
    m->id = ++threads.last_id;
    m_table[m->id].store(m, release);
  }
  ++threads.count;
  ++threads.started;
  return m;
}

void free_m_locked(M* m) GOFER_REQUIRES(sched_lock) {
  --threads.count;
  m->link = threads.free;
  threads.free = m;
  // With this M gone the others may be stuck, and the last of them to sleep did not know: one is
  // woken without a P, to watch for a deadlock.
  if (idle_ms.list != nullptr && should_watch_locked()) wake_m(idle_ms.list);
}

// Threads that the program has asked for: in calls that it announced, and bound to goroutines that
// wait.
int asked_for_locked() GOFER_REQUIRES(sched_lock) {
  int n = idle_bound_ms - thread_gate.tied.load(relaxed);
  for (M* m : all_ms()) n += m->blocking_at.load(relaxed) != 0 ? 1 : 0;
  return n;
}

// The program is at its limit of threads, and exceeds it: of the threads without a P at least half
// are what it has asked for. Goroutines that keep the others did not ask for that. They go on in
// time, and then their threads are there for others. in_hand: Ps that are neither idle nor an M's.
bool exceeds_limit_locked(int in_hand) GOFER_REQUIRES(sched_lock) {
  if (threads.count < threads.limit) return false;
  const int with_p = p_table.in_use.load(relaxed) - wake_state.idle_p_count.load(relaxed) - in_hand;
  const int asked = asked_for_locked();
  return asked > 0 && 2 * asked >= threads.count - with_p;
}

// A thread could not be started, so there may be work that no M does, if all the others wait for
// goroutines of their own: one of those tries again (wait_for_p).
void wake_a_bound_m() {
  for (M* m : all_ms()) {
    if (!m->waits_for_p.load(seq_cst)) continue;
    m->note.signal();
    return;
  }
}

// No thread to be had: the work goes on with those that are there.
void thread_failed(M* m, int error) {
  {
    LockGuard guard(sched_lock);
    P* p = m->next_p.load(relaxed);
    const bool spinning = m->spinning;
    if (m->birth == Birth::as_reserve) --threads.reserve_coming;
    if (m->birth == Birth::with_p) --threads.unborn_ps;
    m->birth = Birth::over;
    free_m_locked(m);
    threads.no_thread_until_ns.store(os::now_ns() + thread_retry_ns, relaxed);
    if (spinning) drop_spinning();
    if (p != nullptr) put_unused_p(p);
  }
  try_threads_again();  // on an M that went idle while this P was waiting for the new one
  wake_a_bound_m();
  static constinit atomic<bool> said{false};
  if (!said.exchange(true, relaxed)) {
    warn("cannot start one more thread (%s): going on with fewer", std::strerror(error));
  }
}

bool hopeless_locked() GOFER_REQUIRES(sched_lock) {
  const int64_t until = threads.no_thread_until_ns.load(relaxed);
  return until != 0 && os::now_ns() < until;
}

// The thread was started with all signals blocked.
void set_signal_mask() {
  const int error = os::set_signal_mask(SIG_SETMASK, &threads.signal_mask, nullptr);
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
  // Threads and processes that a goroutine starts inherit this name: it is not the runtime's.
  os::name_thread(program_invocation_short_name);
  watch_for_exit();
  transition::started(m, os::thread_id());
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
    LockGuard guard(sched_lock);
    m->guard = prologue_guard();
    birth = std::exchange(m->birth, Birth::over);
    if (birth == Birth::with_p) {
      take_given_p(m);
      --threads.unborn_ps;
    }
    if (birth == Birth::as_reserve) --threads.reserve_coming;
  }
  set_coarse_clock(os::now_ns());
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
  LockGuard guard(sched_lock);
  transition::ended(m);
  free_m_locked(m);
  return nullptr;
}

// A thread that is being started as a reserve runs p when it comes. Else a world that is stopped
// and started in quick succession, which takes the Ps of unborn threads back, would ask for new
// ones each time.
bool take_coming_m_locked(P* p, bool spinning) GOFER_REQUIRES(sched_lock) {
  if (threads.reserve_coming == 0) return false;
  for (M* m : all_ms()) {
    if (m->birth != Birth::as_reserve) continue;
    m->birth = Birth::with_p;
    --threads.reserve_coming;
    ++threads.unborn_ps;
    transition::sent(m, p, spinning);
    return true;
  }
  return false;
}

}  // namespace

void Wakeup::now() const {
  if (exceeded_limit != 0) fatal_thread_limit(exceeded_limit);
  if (m != nullptr) wake_m(m);
  if (thread) tell_template_thread();
}

Wakeup start_m_locked(P* p, bool spinning) {
  M* m = take_idle_m_locked();
  while (m == nullptr) {
    M* tied = start_tied_locked(p);
    if (tied == nullptr) break;
    if (!spinning) return {tied};
    // The tied goroutine does not look for work, and submitters rely on an M that does: the next
    // idle P is for that one.
    p = take_idle_p();
    if (p == nullptr) {
      drop_relied_on_spinning();
      return {tied};
    }
    wake_m(tied);
    m = take_idle_m_locked();
  }
  if (m != nullptr) {
    transition::sent(m, p, spinning);
    return {m};
  }
  if (take_coming_m_locked(p, spinning)) return {};
  if (exceeds_limit_locked(1)) return {.exceeded_limit = threads.limit};
  if (!hopeless_locked() && threads.count < threads.limit) m = new_m_locked();
  if (m == nullptr) {
    if (spinning) drop_spinning();
    put_unused_p(p);
    return {};
  }
  transition::sent(m, p, spinning);
  ++threads.unborn_ps;
  want_thread_locked(m);
  return {.thread = true};
}

void try_threads_again() {
  Wakeup wakeup;
  {
    LockGuard guard(sched_lock);
    if (P* p = take_idle_p_with_work(); p != nullptr) wakeup = start_m_locked(p, false);
  }
  wakeup.now();
}

void begin_m(M* m) {
  const int error = os::start_thread(m_main, m);
  if (error != 0) {
    thread_failed(m, error);
  } else if (threads.no_thread_until_ns.load(relaxed) != 0) {
    threads.no_thread_until_ns.store(0, relaxed);
  }
}

bool retry_thread() {
  if (threads.no_thread_until_ns.load(seq_cst) == 0) return false;
  Wakeup wakeup;
  {
    LockGuard guard(sched_lock);
    const bool lacks = wake_state.idle_p_count.load(relaxed) != 0 && idle_ms.list == nullptr &&
                       threads.reserve_coming == 0 && threads.count < threads.limit;
    if (!lacks || hopeless_locked()) return lacks;
    P* p = take_idle_p_with_work();
    wakeup = start_m_locked(p != nullptr ? p : take_idle_p(), false);
  }
  wakeup.now();
  return true;
}

bool want_idle_ms(int n, bool fresh) {
  bool any = false;
  bool somebody;
  int limit = 0;
  {
    LockGuard guard(sched_lock);
    somebody = idle_ms.list != nullptr || global_queue.tied.front() != nullptr;
    // With all threads tied to goroutines, no thread could run those that have none.
    if (fresh && idle_ms.count + threads.reserve_coming == 0 && exceeds_limit_locked(0)) {
      limit = threads.limit;
    }
    while (idle_ms.count + threads.reserve_coming < n && threads.count < threads.limit &&
           !hopeless_locked()) {
      M* m = new_m_locked();
      if (m == nullptr) break;
      m->birth = Birth::as_reserve;
      ++threads.reserve_coming;
      want_thread_locked(m);
      any = true;
    }
  }
  if (limit != 0) fatal_thread_limit(limit);
  if (any) tell_template_thread();
  return somebody;
}

int start_first_m() {
  M* m;
  {
    LockGuard guard(sched_lock);
    m = new_m_locked();
    if (m == nullptr) return ENOMEM;
    // On the list at once, so that the first `go` finds it there and starts no second one.
    m->birth = Birth::on_idle_list;
    put_idle_m_locked(m);
  }
  const int error = os::start_thread(m_main, m);
  if (error != 0) {
    LockGuard guard(sched_lock);
    remove_idle_m_locked(m);
    free_m_locked(m);
  }
  return error;
}

void end_m(M* m) { hand_off(release_p(m)); }

// tools/gdb: which thread a goroutine is on, and whether it is in a call (true_status).
GOFER_DEBUG_TABLE(gofer_debug_threads) = {
    {"m_table", 0, &m_table},
    {"PWord.state_mask", 3},
    {"PWord.running", PWord().with(PWordState::running).bits()},
    GOFER_DEBUG_SIZE(M),
    GOFER_DEBUG_FIELD(M, id),
    GOFER_DEBUG_FIELD(M, tid),
    GOFER_DEBUG_FIELD(M, p),
    GOFER_DEBUG_FIELD(M, p_word),
    GOFER_DEBUG_FIELD(M, curg),
    GOFER_DEBUG_FIELD(M, blocking_at),
    GOFER_DEBUG_FIELD(M, base),
    GOFER_DEBUG_FIELD(M, g0),
    GOFER_DEBUG_FIELD(M, signal_stack),
    GOFER_DEBUG_FIELD(M, signal_stack_size),
    GOFER_DEBUG_FIELD(P, word),
    GOFER_DEBUG_FIELD(P, switches),
    GOFER_DEBUG_FIELD(P, id),
    {}};

}  // namespace gofer::internal
