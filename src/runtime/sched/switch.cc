// From goroutine to goroutine: yield, park, ready, the end of one.
//
// The hot path goes from one goroutine's stack directly to the next one's, without a detour over
// g0. That is allowed while neither is bound to a thread and the P's budget lasts: 61 switches,
// inherited slices included, else two goroutines that wake each other would starve the global queue
// for ever. A goroutine that ends gives its stack to the next one if that has none yet: then there
// is not even a switch, the stack just starts anew.
#include "runtime/sched/switch.h"

#include <cstdlib>
#include <iterator>
#include <new>

#include "os/memory.h"
#include "os/process.h"
#include "runtime/base/debug_table.h"
#include "runtime/base/frame_pointer.h"
#include "runtime/goroutines/local.h"
#include "runtime/process/process_state.h"
#include "runtime/procs/current.h"
#include "runtime/procs/spinning.h"
#include "runtime/procs/stop_world.h"
#include "runtime/sched/global_queue.h"
#include "runtime/sched/queues.h"
#include "runtime/sched/schedule.h"
#include "runtime/stacks/overflow.h"
#include "runtime/wait/coarse_clock.h"
#include "runtime/wait/waiter.h"

namespace gofer::internal {
namespace {

// A stack for a goroutine that runs for the first time, if the P has one at hand.
bool attach_cached_stack(P* p, G* g) {
  if (g->stack_class != default_stack_class()) return false;
  char* stack = p->stacks.pop();
  if (stack == nullptr) return false;
  adopt_stack(g, stack);
  return true;
}

// The next goroutine for a direct switch, or nullptr: go over g0. One that was taken from the
// queue but cannot be switched to directly is left in m->handed.
G* next_directly(M* m, P* p, G* g) {
  if (g->head->own_m != nullptr || p->budget <= 0 || p->preempt.load(relaxed)) return nullptr;
  bool inherits;
  G* next = take_local(p, inherits);
  if (next == nullptr) return nullptr;
  if (next->needs_stack() ? !attach_cached_stack(p, next) : next->own_m() != nullptr) [[unlikely]] {
    m->handed = next;
    m->handed_inherits = inherits;
    return nullptr;
  }
  begin_running(m, p, next, inherits);
  return next;
}

StackHead* to_g0(M* m) {
  m->curg = nullptr;
  return &m->g0;
}

void commit_yield(M* m, G* g) {
  m = transition::yielded(m, g);
  put_local(m->p, g, false);
  // A hint, without a fence: this P will run it in any case.
  if (wake_state.idle_p_count.load(relaxed) != 0) wake_p();
}

void commit_park(M* m, G* g) {
  const QueueLock lock = m->queue_lock;
  StackHead* head = g->head;
  head->parked_at = coarse_clock.now.load(relaxed);
  if (head->short_runs != most_short_runs) ++head->short_runs;
  transition::parked(m, g);
  lock.unlock(lock.arg);  // without an early contest g may run elsewhere by now
  Contest* early = m->early;
  if (early == nullptr) return;
  m->early = nullptr;
  if (early->state.exchange(Contest::parked, acq_rel) != Contest::woken) return;
  transition::readied(m, g);
  put_local(m->p, g, true);
  wake_p();  // m goes on with another one
}

void bury(M* m, P* p, G* g) {
  transition::ended(m, g);
  p->free_gs.push(g);
  if (p->free_gs.count() >= g_free_high) drain_free_gs(p->free_gs, g_free_high - g_free_batch);
}

bool zero_stacks = false;

void commit_end(M* m, G* g) {
  P* p = m->p;
  // Its frames will never return: what they poisoned is clean for the next goroutine.
  char* sp = static_cast<char*>(g->head->sp);
  sanitizer_forget_stack(sp, static_cast<size_t>(reinterpret_cast<char*>(g->head) - sp));
  sanitizer_end(g->head->fiber);
  char* stack = g->stack();
  g->head = nullptr;
  if (g->stack_class != default_stack_class()) {
    put_stack(stack, g->stack_class);
  } else {
    if (p->stacks.count == StackCache::high) drain_stacks(p->stacks, StackCache::high / 2);
    p->stacks.slot[p->stacks.count++] = stack;
    if (stack_waiters.count.load(relaxed) != 0) [[unlikely]]
      serve_stack_waiter(p);
  }
  bury(m, p, g);
}

// With GOFER_DEBUG=zerostacks=1. On g0: no code is on the stack any more.
void commit_end_and_wipe(M* m, G* g) {
  char* low = g->stack() + stack_guard_size;
  const auto size = static_cast<size_t>(reinterpret_cast<char*>(g->head) - low);
  sanitizer_forget_stack(low, size);
  os::zero(low, size);
  commit_end(m, g);
}

// Pointers, so that the switches of a program whose stacks all have guards do not even ask whether
// to check them.
constinit atomic<CommitFn> on_yield{commit_yield};
constinit atomic<CommitFn> on_park{commit_park};
constinit atomic<CommitFn> on_end{commit_end};

template <CommitFn commit>
void checked(M* m, G* g) {
  check_stack(m, g);
  commit(m, g);
}

}  // namespace

void begin_stack_checks() {
  on_yield.store(checked<commit_yield>, relaxed);
  on_park.store(checked<commit_park>, relaxed);
  on_end.store(zero_stacks ? checked<commit_end_and_wipe> : checked<commit_end>, relaxed);
}

// Before the first stack.
void set_zero_stacks(bool zero) {
  zero_stacks = zero;
  on_end.store(zero ? commit_end_and_wipe : commit_end, relaxed);
}

void switch_away(M* m, CommitFn commit) {
  G* g = m->curg;
  m->commit = commit;
  m->left = g;
  G* next = next_directly(m, m->p, g);
  switch_stacks(m, g->head, next != nullptr ? next->head : to_g0(m), false);
}

void yield_goroutine(M* m) {
  P* p = m->p;
  // No other goroutine to run: nothing to do, but for a look at the timers now and then. (The
  // world, if it waits, is seen by the flag.)
  if (!p->queue.has_next() && p->queue.size() == 0 && global_queue.size.load(relaxed) == 0 &&
      !p->preempt.load(relaxed) && --p->budget > 0) {
    return;
  }
  if (process.exiting.load(relaxed)) return;
  transition::yields(m, m->curg);
  switch_away(m, on_yield.load(relaxed));
}

void yield_as_asked(M* m) {
  // The flag is also set for a stop of the world, which preempts nobody.
  if (!world.stopping.load(relaxed)) bump(m->p->asked_yields);
  yield_goroutine(m);
}

void park_goroutine(M* m, WaitReason reason, QueueLock lock, Contest* early) {
  transition::parks(m, m->curg, reason);
  m->queue_lock = lock;
  m->early = early;
  switch_away(m, on_park.load(relaxed));
}

namespace {

[[noreturn]] void end_goroutine(M* m) {
  G* g = m->curg;
  P* p = m->p;
  bump(p->ended);
  transition::ends(m, g);
  StackHead* head = g->head;
  if (head->own_m != nullptr) {
    // As in Go, a goroutine that ends while bound ends its thread.
    g->let_go();
    m->own_g = nullptr;
    m->ends = true;
    p->preempt.store(true, relaxed);
  }
  *m->exceptions = ExceptionState{};
  m->commit = on_end.load(relaxed);
  m->left = g;
  // Any other commit has to look at the stack, or wipe it, before another goroutine gets it.
  if (m->commit == commit_end && p->budget > 0 && !p->preempt.load(relaxed)) {
    bool inherits;
    G* next = take_local(p, inherits);
    if (next != nullptr && next->needs_stack()) {
      if (!sanitizers_enabled && next->stack_class == g->stack_class) {
        m->commit = nullptr;
        next->head = ::new (head) StackHead;
        g->head = nullptr;
        bury(m, p, g);
        begin_running(m, p, next, inherits);
        arch::gofer_restart(head, m);
      }
      attach_cached_stack(p, next);
    }
    if (next != nullptr && !next->needs_stack() && next->own_m() == nullptr) {
      begin_running(m, p, next, inherits);
      switch_stacks(m, head, next->head, true);
      __builtin_unreachable();
    }
    m->handed = next;
    m->handed_inherits = inherits;
  }
  switch_stacks(m, head, to_g0(m), true);
  __builtin_unreachable();
}

}  // namespace

void finish_goroutine() {
  if (process.forked.load(relaxed)) [[unlikely]]
    os::end_process(0);
  G* g = current_m()->curg;
  if (g->head->locals != nullptr) {
    destroy_locals(g->head->locals);  // may block, and move the goroutine
  }
  if (char* name = g->name; name != nullptr) {
    g->name = nullptr;
    std::atomic_signal_fence(std::memory_order_seq_cst);  // a dump's signal may copy it
    std::free(name);
  }
  end_goroutine(enter());
}

// tools/gdb: where gofer_switch has left the registers of a goroutine.
struct RegistersTable {
  DebugEntry entries[std::size(arch::saved_register_places) + 2]{};
  constexpr RegistersTable() {
    int n = 0;
    for (const arch::SavedRegister& r : arch::saved_register_places) {
      entries[n++] = debug_entry("register:", r.name, r.offset);
    }
    entries[n] = debug_entry("sp:", arch::saved_sp.name, arch::saved_sp.offset);
  }
};

extern "C" [[gnu::visibility("default")]] const RegistersTable gofer_debug_registers;
extern "C" [[gnu::used, gnu::retain]] constinit const RegistersTable gofer_debug_registers{};

}  // namespace gofer::internal

extern "C" void gofer_main(gofer::internal::M* m) {
  using namespace gofer::internal;
  GOFER_HAS_FRAME_POINTER;
  G* g = m->curg;
  if constexpr (sanitizers_enabled) sanitizer_after_switch(g->head->fiber, &m->came_from->fiber);
  run_commit(m);
  bump(m->p->started);
  leave(m);
  g->entry(g->closure);
  finish_goroutine();
}
