// The small public calls: yield, threads, counts.
#include <gofer/debug.h>
#include <gofer/go.h>
#include <gofer/last_error.h>

#include <cerrno>

#include "os/thread.h"
#include "runtime/goroutines/spawn.h"
#include "runtime/process/start.h"
#include "runtime/procs/current.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/retake.h"
#include "runtime/procs/spinning.h"
#include "runtime/report/panic.h"
#include "runtime/sched/global_queue.h"
#include "runtime/sched/switch.h"
#include "runtime/threads/idle.h"
#include "runtime/threads/threads.h"
#include "runtime/watch/preempt.h"

namespace gofer {

using namespace internal;

[[gnu::noinline]] int last_error() noexcept { return errno; }
[[gnu::noinline]] void set_last_error(int value) noexcept { errno = value; }

void yield() {
  M* m = enter();
  if (m == nullptr) {
    os::yield_thread();
    return;
  }
  yield_goroutine(m);
  leave(current_m());
}

void checkpoint() {
  M* m = current_m();
  if (m == nullptr || m->curg == nullptr) return;
  m->checks.store(true, relaxed);
  if (!m->p->preempt.load(relaxed)) [[likely]]
    return;
  m = enter();
  if (m->curg->head->no_preempt == 0) yield_as_asked(m);
  leave(current_m());
}

int set_max_threads(int n) {
  ensure_started();
  M* m = enter();
  sched_lock.lock();
  const int old = threads.limit;
  if (n > 0) {
    threads.limit = n < static_cast<int>(PWord::max_owner) ? n : static_cast<int>(PWord::max_owner);
  }
  const bool exceeded = threads.count > threads.limit;
  const int limit = threads.limit;
  sched_lock.unlock();
  if (m != nullptr) leave(m);
  if (exceeded) fatal_thread_limit(limit);
  return old;
}

std::size_t num_goroutine() {
  const int64_t n = count_live();
  return n > 0 ? static_cast<std::size_t>(n) : 0;
}

void lock_os_thread() {
  M* m = enter();
  if (m == nullptr) return;
  StackHead* head = m->curg->head;
  ++head->locks;
  m->curg->bind_to(m);
  m->own_g = m->curg;
  leave(m);
}

void unlock_os_thread() {
  M* m = enter();
  if (m == nullptr) return;
  StackHead* head = m->curg->head;
  const int of_mask = head->own_mask ? 1 : 0;  // stays while the goroutine has its own signal mask
  if (head->locks > of_mask && --head->locks == 0) {
    m->curg->let_go();
    m->own_g = nullptr;
  }
  leave(m);
}

namespace this_goroutine {

std::uint64_t id() noexcept {
  M* m = current_m();
  return m == nullptr || m->curg == nullptr ? 0 : m->curg->id;
}

std::string_view name() noexcept {
  M* m = current_m();
  if (m == nullptr || m->curg == nullptr || m->curg->name == nullptr) return {};
  return m->curg->name;
}

}  // namespace this_goroutine

scheduler_stats stats() {
  ensure_started();
  scheduler_stats s{};
  s.procs.reserve(static_cast<std::size_t>(p_table.in_use.load(acquire)));
  M* m = enter();
  sched_lock.lock();
  s.gomaxprocs = p_table.in_use.load(relaxed);
  s.idle_procs = wake_state.idle_p_count.load(relaxed);
  s.threads = threads.count;
  s.idle_threads = idle_ms.count;
  s.spinning_threads = wake_state.spinning_ms.load(relaxed);
  s.global_queue = global_count_locked();
  sched_lock.unlock();
  if (m != nullptr) leave(m);
  for (const P* p : ps_between(0, s.gomaxprocs)) {
    s.procs.push_back({.started = p->started.load(relaxed),
                       .switches = p->switches.load(relaxed),
                       .steals = p->steals.load(relaxed),
                       .stolen = p->stolen.load(relaxed),
                       .queued = p->queue.size() + (p->queue.has_next() ? 1u : 0u)});
  }
  s.goroutines = num_goroutine();
  s.preemptions = preemption.paused.load(relaxed);
  s.handoffs = taking.retaken.load(relaxed);
  return s;
}

}  // namespace gofer
