// debug::metrics(): reads what the rooms of the runtime count.
//
// Nothing is counted for this alone where a count would cost a switch anything: the states of
// goroutines come from the lengths of queues and from what each P's holder does, as in Go, and not
// from a walk over all goroutines. So they are estimates while goroutines change their states; the
// number of those that wait is the rest.
//
// Counters are sums over all Ps that ever were: a P that gomaxprocs() puts aside keeps its own.
#include <gofer/metrics.h>

#include "os/memory.h"
#include "runtime/goroutines/spawn.h"
#include "runtime/metrics/histogram.h"
#include "runtime/poll/netpoll.h"
#include "runtime/process/process_state.h"
#include "runtime/procs/current.h"
#include "runtime/procs/lost.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/retake.h"
#include "runtime/procs/spinning.h"
#include "runtime/procs/stop_world.h"
#include "runtime/procs/thread_gate.h"
#include "runtime/report/dump_signals.h"
#include "runtime/sched/global_queue.h"
#include "runtime/sched/schedule.h"
#include "runtime/threads/bound.h"
#include "runtime/threads/idle.h"
#include "runtime/threads/m_table.h"
#include "runtime/threads/threads.h"
#include "runtime/trace/session.h"
#include "runtime/watch/preempt.h"

namespace gofer::debug {

using namespace internal;

namespace {

uint64_t at_least_0(int64_t n) { return n > 0 ? static_cast<uint64_t>(n) : 0; }

size_t pages_of(size_t bytes) { return (bytes + os::page_size - 1) & ~(os::page_size - 1); }

void add(time_histogram& to, const Histogram& from) { from.add_to(to.counts, to.sum_ns); }

// In a call that it has announced, or in one in which its P was taken.
bool is_in_call(const M* m) {
  return m->blocking_at.load(relaxed) != 0 || m->lost_in.load(relaxed) != no_crowd;
}

void read_threads_locked(metrics_snapshot& s) GOFER_REQUIRES(sched_lock) {
  const int own = own_threads + dump_threads() + tracer::own_threads();
  s.threads = static_cast<uint64_t>(threads.count + own);
  s.threads_started = threads.started + static_cast<uint64_t>(own);
  s.threads_idle = static_cast<uint64_t>(idle_ms.count);
  s.threads_spinning = at_least_0(wake_state.spinning_ms.load(relaxed));
  s.threads_tied = at_least_0(thread_gate.tied.load(relaxed));
  s.threads_bound = at_least_0(idle_bound_ms - thread_gate.tied.load(relaxed));
  for (const M* m : all_ms()) {
    if (m->tid.load(relaxed) != 0 && is_in_call(m)) ++s.goroutines_not_in_go;
  }
  s.record_bytes += threads.last_id * pages_of(sizeof(M));
}

// Of a P that is in use. What its holder does is read while the holder goes on.
__attribute__((no_sanitize("thread"))) void read_holder(metrics_snapshot& s, const P* p) {
  const PWord word(p->word.load(acquire));
  if (word.state() != PWordState::running && word.state() != PWordState::retaking) {
    if (p->status.load(relaxed) == PStatus::gcstop) ++s.procs_stopped;
    return;
  }
  ++s.procs_running;
  ++s.threads_with_processor;
  const M* m = owner_of(word);
  if (in_announced_call(m, p)) {
    ++s.procs_in_calls;
  } else if (m->curg != nullptr) {
    ++s.goroutines_running;
  }
}

void read_queues_locked(metrics_snapshot& s) GOFER_REQUIRES(sched_lock) {
  s.global_queue = global_count_locked();
  s.global_queue_urgent = global_queue.urgent.count() + global_queue.untried.count();
  s.global_queue_tied = global_queue.tied.count();
  s.goroutines_runnable = s.global_queue + at_least_0(stack_waiters.count.load(relaxed));
  for (const P* p : all_ps()) {
    const uint64_t queued = p->queue.size() + (p->queue.has_next() ? 1u : 0u);
    s.local_queues += queued;
    if (queued > s.local_queue_longest) s.local_queue_longest = queued;
  }
  s.goroutines_runnable += s.local_queues;
}

// The caches of stacks belong to the holders of the Ps.
__attribute__((no_sanitize("thread"))) uint64_t count_cached_stacks() {
  uint64_t n = 0;
  for (const P* p : ps_ever()) n += at_least_0(p->stacks.count);
  return n;
}

void read_stacks(metrics_snapshot& s) {
  const StackCounts counts = count_stacks();
  const uint64_t cached = count_cached_stacks();
  const uint64_t cached_bytes = cached * stack_size(default_stack_class());
  s.stacks_reserved_bytes = counts.reserved_bytes;
  s.stacks_in_use = counts.in_use > cached ? counts.in_use - cached : 0;
  s.stacks_in_use_bytes =
      counts.in_use_bytes > cached_bytes ? counts.in_use_bytes - cached_bytes : 0;
  s.stacks_cached = counts.pooled + cached;
  s.stacks_cached_bytes = counts.pooled_bytes + cached_bytes;
  s.stacks_given_back = counts.trimmed;
}

void read_ps(metrics_snapshot& s) {
  for (const P* p : ps_ever()) {
    s.switches += p->switches.load(relaxed);
    s.steals += p->steals.load(relaxed);
    s.stolen += p->stolen.load(relaxed);
    s.preemptions_flag += p->asked_yields.load(relaxed);
    s.timers += p->timers.count();
    s.timers_fired += p->timers.fired();
    s.record_bytes += pages_of(sizeof(P));
    add(s.latency, p->latencies);
    add(s.slices, p->slices);
  }
}

void read_counters(metrics_snapshot& s) {
  s.hand_offs = taking.handed_off.load(relaxed);
  s.retakes_announced = taking.announced.load(relaxed);
  s.retakes_asleep = taking.asleep.load(relaxed);
  s.preemptions_prologue = preemption.by_prologue.load(relaxed);
  s.preemptions_signal = preemption.by_signal.load(relaxed);
  s.poll_visits = poll_state.visits.load(relaxed);
  s.poll_wakeups = poll_state.woken.load(relaxed);
  s.poll_registered = at_least_0(poll_state.watched.load(relaxed));
  s.poll_waiting = at_least_0(poll_state.waiters.load(relaxed));
  add(s.pauses_stopping, world_pauses.stopping);
  add(s.pauses_total, world_pauses.total);
  s.record_bytes += g_record_bytes() + poll_record_bytes();
}

// The states of all goroutines: those that are nowhere else wait.
void read_goroutines(metrics_snapshot& s) {
  s.goroutines_created = count_created();
  s.goroutines = at_least_0(count_live());
  const uint64_t elsewhere = s.goroutines_running + s.goroutines_runnable + s.goroutines_not_in_go;
  s.goroutines_waiting = s.goroutines > elsewhere ? s.goroutines - elsewhere : 0;
}

}  // namespace

metrics_snapshot metrics() {
  metrics_snapshot s{};
  if (!process.started.load(acquire)) return s;
  const Inside inside;
  {
    LockGuard guard(sched_lock);
    s.gomaxprocs = static_cast<uint64_t>(p_table.in_use.load(relaxed));
    s.procs_idle = at_least_0(wake_state.idle_p_count.load(relaxed));
    read_queues_locked(s);
    read_threads_locked(s);
    for (const P* p : all_ps()) read_holder(s, p);
    if (s.goroutines_not_in_go > s.procs_in_calls) {
      s.threads_in_calls = s.goroutines_not_in_go - s.procs_in_calls;
    }
  }
  read_ps(s);
  read_stacks(s);
  read_counters(s);
  read_goroutines(s);
  return s;
}

}  // namespace gofer::debug
