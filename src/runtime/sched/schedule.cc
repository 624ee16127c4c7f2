// What an M does on g0: finds a goroutine, gives it a stack, runs it.
#include "runtime/sched/schedule.h"

#include <new>

#include "runtime/process/process_state.h"
#include "runtime/procs/procs.h"
#include "runtime/procs/spinning.h"
#include "runtime/report/panic.h"
#include "runtime/sched/find_runnable.h"
#include "runtime/sched/global_queue.h"
#include "runtime/sched/switch.h"
#include "runtime/threads/bound.h"
#include "runtime/threads/idle.h"
#include "runtime/threads/threads.h"

namespace gofer::internal {

constinit StackWaiters stack_waiters;

namespace {

// A stack is missing although its address space was reserved: the kernel refuses one more mapping,
// and other Ps hold the free ones. Those of idle Ps are fetched; else some goroutine has to end
// first.
void wait_for_stack(M* m, G* g) {
  const int cached = collect_idle_stacks();
  if (cached == 0 && m->p->stacks.count == 0 && !any_stack_outside_caches(0)) {
    fatal_error("no stack to be had for goroutine %lu, and none in use", g->id);
  }
  static constinit atomic<bool> said{false};
  if (!said.exchange(true, relaxed)) {
    warn(
        "no stack to be had for goroutine %lu: it waits for one to become free "
        "(the program has as many mappings as vm.max_map_count allows?)",
        g->id);
  }
  {
    LockGuard guard(sched_lock);
    stack_waiters.queue.push_back(g);
    stack_waiters.count.fetch_add(1, seq_cst);
  }
  // A stack may have become free, or a P idle with some, before g was on the list.
  const int late = collect_idle_stacks();
  if (cached + late != 0 || refill_stacks(m->p->stacks)) serve_stack_waiter(m->p);
}

// The goroutine to run now, of which m has the P; nullptr: the thread is to end.
G* next_goroutine(M* m, bool& inherits) {
  for (;;) {
    if (m->p == nullptr && !stop_m(m)) return nullptr;  // its goroutine left without a P
    if (m->ends) {
      end_m(m);
      return nullptr;
    }
    if (m->own_g != nullptr) {
      if (process.exiting.load(relaxed)) wait_at_exit(m);
      if (m->handed != nullptr) {
        put_global_front(m->handed);
        m->handed = nullptr;
      }
      stop_bound_m(m);
      inherits = false;
      return m->own_g;
    }
    G* g = find_runnable(m, inherits);
    if (g == nullptr) return nullptr;
    stop_spinning_with_work(m);
    if (g->own_m() == nullptr) return g;
    start_bound_m(m, g);
    if (!stop_m(m)) return nullptr;
  }
}

}  // namespace

int collect_idle_stacks() {
  LockGuard guard(sched_lock);
  return drain_idle_stacks();
}

void serve_stack_waiter(P* p) {
  drain_stacks(p->stacks, 0);
  LockGuard guard(sched_lock);
  G* g = stack_waiters.queue.pop_front();
  if (g == nullptr) return;
  stack_waiters.count.fetch_sub(1, seq_cst);
  put_global_locked(g);
}

void adopt_stack(G* g, char* stack) {
  char* top = stack_top(stack, g->stack_class);
  g->head = ::new (top) StackHead;
  g->head->sp = arch::make_frame(top);
  char* low = stack + stack_guard_size;
  sanitizer_start(g->head->fiber, low, static_cast<size_t>(top - low));
}

bool attach_stack(P* p, G* g) {
  char* stack;
  if (g->stack_class != default_stack_class()) {
    stack = take_stack(g->stack_class);
  } else {
    if (p->stacks.count == 0) refill_stacks(p->stacks);
    stack = p->stacks.pop();
  }
  if (stack == nullptr) return false;
  adopt_stack(g, stack);
  return true;
}

void schedule_loop(M* m) {
  for (;;) {
    if (m->slice.begin_ns != 0) sampled_slice_ends(m);
    bool inherits = false;
    G* g = next_goroutine(m, inherits);
    if (g == nullptr) return;
    if (g->needs_stack() && !attach_stack(m->p, g)) {
      wait_for_stack(m, g);
      continue;
    }
    begin_running(m, m->p, g, inherits);
    switch_stacks(m, &m->g0, g->head, false);
  }
}

}  // namespace gofer::internal
