// The lines have Go's format, with the fields that make sense here, so a reader of Go's schedtrace
// can read them. All threads work meanwhile: each figure was true at some moment.
#include "runtime/watch/schedtrace.h"

#include "debug/fd_writer.h"
#include "os/thread.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/spinning.h"
#include "runtime/procs/stop_world.h"
#include "runtime/report/dump_signals.h"
#include "runtime/sched/global_queue.h"
#include "runtime/threads/bound.h"
#include "runtime/threads/idle.h"
#include "runtime/threads/m_table.h"
#include "runtime/threads/threads.h"
#include "runtime/trace/session.h"

namespace gofer::internal {
namespace {

int64_t every_ns = 0;  // 0: off
bool with_detail = false;
int64_t start_ns = 0;
int64_t next_ns = 0;

const char* text_of(bool value) { return value ? "true" : "false"; }

unsigned queued(const P* p) { return p->queue.size() + (p->queue.has_next() ? 1u : 0u); }

struct Counts {
  int procs, idle_procs, threads, spinning, idle_threads, idle_locked, stop_wait;
  size_t queue;
};

Counts count() {
  LockGuard guard(sched_lock);
  return {.procs = p_table.in_use.load(relaxed),
          .idle_procs = wake_state.idle_p_count.load(relaxed),
          .threads = threads.count + own_threads + dump_threads() + tracer::own_threads(),
          .spinning = wake_state.spinning_ms.load(relaxed),
          .idle_threads = idle_ms.count,
          .idle_locked = idle_bound_ms,
          .stop_wait = world.stop_wait,
          .queue = global_count_locked()};
}

void print_summary(FdWriter& out) {
  out.print(" [ ");
  for (const P* p : all_ps()) out.print("%u ", queued(p));
  out.print("] schedticks=[ ");
  for (const P* p : all_ps()) out.print("%u ", p->schedtick.load(relaxed));
  out.print("]\n");
}

// "m=3", or "m=nil".
void print_id(FdWriter& out, const char* name, bool is, uint64_t id) {
  if (is) {
    out.print(" %s=%lu", name, static_cast<unsigned long>(id));
  } else {
    out.print(" %s=nil", name);
  }
}

void print_p(FdWriter& out, const P* p) {
  const PWord word(p->word.load(relaxed));
  const bool held = word.state() == PWordState::running || word.state() == PWordState::retaking;
  PStatus status = p->status.load(relaxed);
  if (held && in_announced_call(owner_of(word), p)) status = PStatus::syscall;
  out.print("  P%u: status=%u schedtick=%u syscalltick=%u", p->id, static_cast<unsigned>(status),
            p->schedtick.load(relaxed), p->syscalltick.load(relaxed));
  print_id(out, "m", held, word.owner());
  out.print(" runqsize=%u gfreecnt=%d timerslen=%u\n", queued(p), p->free_gs.count(),
            p->timers.count());
}

__attribute__((no_sanitize("thread"))) void print_m(FdWriter& out, const M* m) {
  const P* p = m->p;
  const bool has_p = p != nullptr && p->word.load(relaxed) == m->p_word;
  const G* g = m->curg;
  const G* locked = m->own_g;
  out.print("  M%u:", m->id);
  print_id(out, "p", has_p, has_p ? p->id : 0);
  print_id(out, "curg", g != nullptr, g != nullptr ? g->id : 0);
  out.print(" spinning=%s blocked=%s", text_of(m->spinning),
            text_of(m->on_idle_list || m->waits_for_p.load(relaxed)));
  print_id(out, "lockedg", locked != nullptr, locked != nullptr ? locked->id : 0);
  out.print("\n");
}

__attribute__((no_sanitize("thread"))) void print_g(G* g, void* writer) {
  auto& out = *static_cast<FdWriter*>(writer);
  const GStatus status = true_status(g);
  if (status == GStatus::dead || status == GStatus::idle) return;
  const M* m = g->m();
  const M* locked = g->own_m();
  out.print("  G%lu: status=%u(%s)", static_cast<unsigned long>(g->id),
            static_cast<unsigned>(status),
            status == GStatus::waiting ? wait_reason_text(g->wait_reason) : "");
  print_id(out, "m", m != nullptr, m != nullptr ? m->id : 0);
  print_id(out, "lockedm", locked != nullptr, locked != nullptr ? locked->id : 0);
  out.print("\n");
}

__attribute__((no_sanitize("thread"))) void print_detail(FdWriter& out, const Counts& c) {
  out.print(" gcwaiting=%s nmidlelocked=%d stopwait=%d sysmonwait=false\n",
            text_of(world.stopping.load(relaxed)), c.idle_locked, c.stop_wait);
  for (const P* p : all_ps()) print_p(out, p);
  for (const M* m : all_ms()) {
    if (m->tid != 0) print_m(out, m);
  }
  for_each_g(print_g, &out);
}

}  // namespace

void set_schedtrace(int64_t every_ms, bool detail) {
  every_ns = every_ms * 1'000'000;
  with_detail = detail && !tsan_enabled;  // it reads what others write
  start_ns = os::now_ns();
  next_ns = start_ns + every_ns;
}

bool is_tracing_schedule() { return every_ns != 0; }

int64_t next_schedtrace_ns() { return every_ns != 0 ? next_ns : no_timer; }

void trace_schedule(int64_t now) {
  if (every_ns == 0 || now < next_ns) return;
  next_ns += every_ns * (1 + (now - next_ns) / every_ns);
  const Counts c = count();
  FdWriter out(STDERR_FILENO);
  out.print(
      "SCHED %ldms: gomaxprocs=%d idleprocs=%d threads=%d spinningthreads=%d needspinning=%u "
      "idlethreads=%d runqueue=%zu",
      static_cast<long>((now - start_ns) / 1'000'000), c.procs, c.idle_procs, c.threads, c.spinning,
      wake_state.need_spinning.load(relaxed), c.idle_threads, c.queue);
  if (with_detail) {
    print_detail(out, c);
  } else {
    print_summary(out);
  }
}

}  // namespace gofer::internal
