// The scavenger: stacks that once went deep give their pages back, in place of Go's forced GC. Part
// of sysmon, every two minutes while goroutines run, and once when all has been idle for a while.
//
// Free stacks lie in the pool (stack.cc). A parked goroutine's stack is trimmed below the point
// where it parked, and no M may run it meanwhile. Running must stay cheap, so the protocol is
// one-sided, as that of the P word:
//
//   the M that runs g:  status = running; compiler barrier; look at g->marks: trim_mark: wait
//   the scavenger:      g->marks |= trim_mark; membarrier; look at the status: if it is not
//                       waiting, leave it
//
// With the membarrier between the scavenger's store and load, and program order on the other side,
// one of them sees the other (store-load on both). If the scavenger sees `waiting` after the
// barrier, an M that runs g from then on finds the mark, and waits until it is taken off, some
// microseconds; the release of that and the acquire of the waiting side order the trimming before
// everything that g does on its stack. The saved stack pointer was written before `waiting`.
//
// The byte has another bit, which the waker sets (metrics/sampler.h). So each side changes its own
// bit by a read-modify-write. The argument above stands: an M that runs g only looks at the byte
// first.
//
// A goroutine that is paused by a signal is not `waiting`: its stack is never touched. Without
// membarrier, parked goroutines are not trimmed.
#include "runtime/stacks/scavenge.h"

#include "arch/arch.h"
#include "os/memory.h"
#include "os/thread.h"
#include "runtime/goroutines/transitions.h"
#include "runtime/process/settings.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/procs.h"
#include "runtime/procs/retake.h"
#include "runtime/sched/schedule.h"
#include "runtime/stacks/stack.h"

namespace gofer::internal {
namespace {

constexpr int batch = 64;
constexpr int64_t pass_slice_ns = 2'000'000;  // at a time: sysmon has more to do
constexpr int spins = 100;

GCursor cursor;

struct Plan {
  bool passing = false;
  bool was_idle = false;      // all, when the last pass began
  uint64_t switches = 0;      // the same
  int64_t last_ns = 0;        // when it ended; at first, when sysmon began
  int64_t idle_since_ns = 0;  // 0: not idle
};
constinit Plan plan;

int64_t later(int64_t a, int64_t b) { return a < b ? b : a; }

uint64_t count_switches() {
  uint64_t n = 0;
  for (P* p : ps_ever()) n += p->switches.load(acquire);
  return n;
}

void trim(G* g) {
  if (!transition::trim_begins(g)) return;
  if (g->has_stack()) {
    const auto sp = reinterpret_cast<uintptr_t>(g->head->sp);
    const uintptr_t high = (sp - arch::red_zone) & ~(os::page_size - 1);
    const uintptr_t low = reinterpret_cast<uintptr_t>(g->stack()) + stack_guard_size;
    if (high > low) {
      os::discard(reinterpret_cast<void*>(low), high - low);
      note_trimmed();
    }
  }
  transition::trim_ends(g);
}

// False: that was the last.
bool trim_batch() {
  G* marked[batch];
  int n = 0;
  G* g = nullptr;
  while (n < batch && (g = cursor.next()) != nullptr) {
    if (g->status.load(relaxed) != GStatus::waiting) continue;
    g->marks.fetch_or(trim_mark, relaxed);
    marked[n++] = g;
  }
  const bool ordered = n != 0 && fence_others();
  for (int i = 0; i < n; ++i) {
    if (ordered) trim(marked[i]);
    marked[i]->marks.fetch_and(static_cast<uint8_t>(~trim_mark), release);
  }
  return g != nullptr;
}

// False: there are more.
bool trim_parked() {
  if (taking.has_membarrier.load(relaxed)) {
    const int64_t end = os::now_ns() + pass_slice_ns;
    while (trim_batch()) {
      if (os::now_ns() >= end) return false;
    }
  }
  cursor = GCursor();
  return true;
}

}  // namespace

int64_t scavenge(int64_t now) {
  if (plan.last_ns == 0) plan.last_ns = now;
  // In this order: a goroutine that runs after all was idle is counted later. A goroutine that ran
  // during a pass and parks or ends afterwards is not counted again, so there is another pass when
  // all is idle.
  const uint64_t switches = count_switches();
  const bool idle = all_idle();
  if (!plan.passing && plan.was_idle && switches == plan.switches) return no_timer;
  if (!idle) {
    plan.idle_since_ns = 0;
  } else if (plan.idle_since_ns == 0) {
    plan.idle_since_ns = now;
  }
  // Soon, if all is idle, but not after every pause of a program that is often idle.
  const int64_t when =
      !idle ? plan.last_ns + settings.scavenge_ns
            : later(plan.idle_since_ns + settings.idle_ns, plan.last_ns + settings.scavenge_ns / 4);
  if (!plan.passing && now < when) return when;
  if (!plan.passing) {
    plan.passing = true;
    plan.was_idle = idle;
    plan.switches = switches;
  }
  if (!trim_parked()) return now;
  collect_idle_stacks();
  trim_stacks();
  plan.passing = false;
  plan.last_ns = now;
  const bool nothing_since = plan.was_idle && plan.switches == count_switches();
  return nothing_since ? no_timer : now + settings.scavenge_ns / 4;
}

void run_marked(M* m, G* g) {
  for (int i = 0; (g->marks.load(acquire) & trim_mark) != 0; ++i) {
    if (i < spins) {
      cpu_relax();
    } else {
      os::yield_thread();
    }
  }
  if ((g->marks.load(relaxed) & sample_mark) != 0) sampled_runs(m, g);
}

}  // namespace gofer::internal
