// Preemption, in three layers, each for goroutines that the one before it does not reach:
//
//   (a) a flag (P::preempt), which every call that may switch looks at;
//   (b) the prologues of functions in targets built for that (prologue.h);
//   (c) a signal, SIGURG.
//
// In (b) and (c) the goroutine may be anywhere: in malloc, with a lock, with the address of a
// thread_local in a register. It must not go on in another thread. So it is the *thread* that
// pauses: it gives its P to another M and waits, with the goroutine in the global queue tied to it,
// until somebody hands it a P again. Correct at every instruction, and the price is two futex calls
// a slice.
//
// What the handler does is what any call into the runtime does at its start: in_runtime, and a look
// at the P's word (p_word.h). It runs on the thread itself, between two instructions outside of the
// runtime: if the thread was inside, it does nothing. So for the takers of Ps it is one more entry
// at a place of the program where there was none, and nothing new has to be argued.
//
// A paused thread may hold any lock of libc or the user. Those who wait for such a lock block, lose
// their Ps to sysmon's retake like every blocked thread, and so the paused one gets its turn. What
// the runtime itself needs to go on never waits for a lock that a paused thread might hold: inside
// there is no allocation and no stdio, threads are started by the template thread, and a P is only
// given up if there is an M for it that exists already (can_pass_on_locked).
#include "runtime/watch/preempt.h"

#include <gofer/no_preempt.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>

#include "arch/arch.h"
#include "os/process.h"
#include "os/signal.h"
#include "os/thread.h"
#include "runtime/process/process_state.h"
#include "runtime/process/settings.h"
#include "runtime/procs/current.h"
#include "runtime/procs/lost.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/procs.h"
#include "runtime/procs/retake.h"
#include "runtime/procs/stop_world.h"
#include "runtime/procs/thread_gate.h"
#include "runtime/procs/transitions.h"
#include "runtime/report/panic.h"
#include "runtime/report/trace_request.h"
#include "runtime/sched/global_queue.h"
#include "runtime/sched/queues.h"
#include "runtime/threads/m_table.h"
#include "runtime/threads/threads.h"
#include "runtime/watch/prologue.h"

namespace gofer::internal {

constinit Preemption preemption;

namespace {

struct sigaction next_urg {};
char mark;  // its address comes with the signals of ours, as a rule
int own_pid = 0;
constinit atomic<bool> uses_tgkill{false};  // the kernel refuses the call that takes the mark

// A SIGURG of somebody else: out-of-band data, or the user's own.
void pass_on(int signal_number, siginfo_t* info, void* context) {
  if ((next_urg.sa_flags & SA_SIGINFO) != 0) {
    next_urg.sa_sigaction(signal_number, info, context);
  } else if (next_urg.sa_handler != SIG_DFL && next_urg.sa_handler != SIG_IGN) {
    next_urg.sa_handler(signal_number);
  }
}

// Whose signal is it? Ours has the mark. But the kernel drops all that comes with a signal when the
// user's queue of signals is full (RLIMIT_SIGPENDING), and tgkill takes no mark: then the word of
// the sender counts, M::signalled. If two signals follow each other closely, the second passes for
// a foreign one, which costs a call of the program's handler, if there is one.
bool is_ours(const siginfo_t* info, bool signalled) {
  if (info->si_code == SI_QUEUE && info->si_ptr == &mark) return true;
  if (!signalled) return false;
  if (info->si_code == SI_USER) return info->si_pid == 0;
  return info->si_code == SI_TKILL && info->si_pid == own_pid && uses_tgkill.load(relaxed);
}

Pass pass_of(Preempt kind) {
  switch (kind) {
    case Preempt::rotate:
    case Preempt::if_spinning:
      return Pass::to_tied;
    case Preempt::wake:
      return Pass::to_urgent;
    default:
      return Pass::in_turn;
  }
}

// It is the turn of a fresh goroutine, and p has none: half of another P's.
void fetch_fresh(P* p) {
  if (!p->queue.empty() || settings.gm) return;
  for (P* victim : all_ps()) {
    if (victim == p) continue;
    uint32_t moved = 0;
    if (G* g = p->queue.steal_from(victim->queue, false, moved); g != nullptr) {
      put_local(p, g, false);
      return;
    }
  }
}

void pause(M* m, Preempt kind, bool by_signal) {
  P* p = m->p;
  Pass to = pass_of(kind);
  if (to == Pass::in_turn) fetch_fresh(p);
  G* g = m->curg;
  bool is_short;
  Wakeup wakeup;
  {
    LockGuard guard(sched_lock);
    // A tied goroutine may hold the lock for which this one spins, and costs no thread.
    const bool for_unspinning = m->spins && has_unspinning_tied_locked();
    if (for_unspinning && to == Pass::in_turn) to = Pass::to_tied;
    if (kind == Preempt::if_spinning && !for_unspinning) return;
    if (!can_pass_on_locked(p, to)) return;
    if (m->resumed.load(relaxed) != 0 && p->budget <= 0) p->budget = m->budget;
    // A short goroutine goes to the front, and its pause is no evidence about CPU-bound ones.
    is_short = g->is_short();
    uint8_t& runs = g->head->short_runs;
    runs = runs > enough_short_runs ? static_cast<uint8_t>(runs - enough_short_runs) : 0;
    if (to == Pass::to_urgent && p->slice_tick.load(relaxed) == p->schedtick.load(relaxed)) {
      constexpr int64_t most_us = 0xffff;  // six slices
      const int64_t used_us = (os::now_ns() - p->slice_start_ns.load(relaxed)) / 1000;
      g->head->slice_used_us = static_cast<uint16_t>(std::min(used_us, most_us));
    }
    preemption.paused.fetch_add(1, relaxed);
    (by_signal ? preemption.by_signal : preemption.by_prologue).fetch_add(1, relaxed);
    if (m->slice.begin_ns != 0) sampled_slice_ends(m);
    tie_locked(m, to == Pass::to_urgent || is_short);
    transition::given_up(m, p);
    if (tracer::is_on()) tracer::paused(m, p, by_signal);
    wakeup = pass_on_locked(p, to);
    if (tracer::is_on()) tracer::passed(m, p, wakeup.m);
  }
  wakeup.now();
  if (!wait_tied(m, p) || is_short) return;
  bump(m->resumed);
  if (m->p->budget > 0) m->budget = m->p->budget;
  m->p->budget = 0;  // over g0 when the goroutine is done, where that is noted
}

void on_urg(int signal_number, siginfo_t* info, void* context) {
  M* m = current_m();
  const bool signalled = m != nullptr && m->signalled.exchange(false, acquire);
  const bool ours = is_ours(info, signalled);
  // The kernel keeps one SIGURG of those that come together, so a foreign one may stand for ours.
  if (!ours) pass_on(signal_number, info, context);
  if (m == nullptr || !(ours || signalled)) return;
  const int saved = errno;
  const bool inside = m->in_runtime.load(relaxed) != 0;
  if (ours && !inside) arch::restart_interrupted_call(context);
  // A dumper wants the thread to go on as it did. Whatever else was asked for is asked for again.
  if (m->trace_request.load(relaxed) != nullptr) {
    answer_trace_request(m, context);
  } else if (!inside && preemption.has_signal.load(relaxed)) {
    m->interrupted = context;
    preempt_here(m, arch::is_spinning(context), true);
    m->interrupted = nullptr;
  }
  errno = saved;
}

// errno of the kernel's refusal, or 0.
int send_urg(M* m) {
  const int tid = m->tid.load(relaxed);
  // The thread that was meant has ended, and its record waits for the next one. The kernel would
  // say EINVAL, which would pass for a refusal of the mark.
  if (tid == 0) return 0;
  m->signalled.store(true, release);
  siginfo_t info{};
  info.si_code = SI_QUEUE;
  info.si_pid = own_pid;
  info.si_ptr = &mark;
  int result = os::queue_signal(own_pid, tid, SIGURG, info);
  if (result == 0 || result == -ESRCH) return 0;
  uses_tgkill.store(true, relaxed);
  result = os::send_signal(own_pid, tid, SIGURG);
  return result == -EPERM || result == -ENOSYS || result == -EACCES ? -result : 0;
}

}  // namespace

bool install_preemption() {
  own_pid = os::process_id();
  struct sigaction action {};
  action.sa_sigaction = on_urg;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  return os::set_signal_action(SIGURG, &action, &next_urg) == 0;
}

void preempt_here(M* m, bool spins, bool by_signal) {
  if (m->curg == nullptr || m->curg->head->no_preempt != 0) return;
  if (process.exiting.load(relaxed) || process.forked.load(relaxed)) return;
  const bool sure = pass_gate(m);
  m->paused.store(true, relaxed);
  m->spins = spins;
  const bool has_p = sure || settle_doubt(m);
  if (has_p) forget_lost(m);  // it was given back
  const uint64_t wanted = m->preempt_word.load(acquire);
  if (has_p && world.stopping.load(relaxed) && !taking.has_membarrier.load(relaxed)) {
    note_lost(m, -1, call_crowd);
    give_up_p(m);
  } else if (has_p && wanted != 0 && wanted == m->p_word) {
    m->preempt_word.store(0, relaxed);
    const Preempt kind = m->preempt_kind.load(relaxed);
    if (kind == Preempt::surrender) {
      const uint32_t in = m->surrenders_in.load(relaxed);
      if (in != no_crowd) note_lost(m, -1, in);
      count_retaken(in);
      give_up_p(m);  // the thread sleeps in some call, which is none of our business
    } else {
      pause(m, kind, by_signal);
    }
  }
  m->spins = false;
  m->paused.store(false, relaxed);
  m->in_runtime.store(0, release);
}

void request_preempt(M* m, P* p, PWord word, Preempt kind) {
  const bool ends_slice = kind != Preempt::surrender && kind != Preempt::if_spinning;
  if (ends_slice) p->preempt.store(true, relaxed);
  m->preempt_kind.store(kind, relaxed);
  m->preempt_word.store(word.bits(), release);
  if (ends_slice) {
    LockGuard guard(sched_lock);  // the thread may end, and the guard lives in the thread
    if (m->guard != nullptr) raise_prologue_guard(m->guard);
  }
  signal_m(m);
}

void signal_m(M* m) {
  if (!preemption.has_signal.load(relaxed)) return;
  const int error = send_urg(m);
  if (error == 0) return;
  static constinit atomic<bool> said{false};
  if (said.exchange(true, relaxed)) return;
  warn("tgkill fails with errno %d: a goroutine that computes is not preempted any more", error);
  preemption.has_signal.store(false, release);  // last: a program that sees it may end at once
}

void interrupt_m(M* m) {
  if (preemption.has_handler.load(relaxed)) (void)send_urg(m);
}

void let_paused_go() {
  for (M* m : all_ms()) {
    m->let_go.store(true, seq_cst);
    if (m->waits_for_p.load(seq_cst)) m->note.signal();
  }
}

}  // namespace gofer::internal

namespace gofer {

using namespace internal;

no_preempt::no_preempt() noexcept {
  M* m = current_m();
  if (m == nullptr || m->curg == nullptr) return;
  ++m->curg->head->no_preempt;
}

no_preempt::~no_preempt() {
  M* m = current_m();
  if (m == nullptr || m->curg == nullptr) return;
  --m->curg->head->no_preempt;
}

}  // namespace gofer
