// What an M does on g0, and how goroutines get their stacks.
#pragma once

#include "runtime/base/atomic.h"
#include "runtime/sched/g_queue.h"
#include "runtime/sched/sched_lock.h"
#include "runtime/threads/m.h"

namespace gofer::internal {

/// Goroutines that could not get a stack for their first run.
struct StackWaiters {
  GQueue queue GOFER_GUARDED_BY(sched_lock);
  atomic<uint32_t> count{0};
};

[[gnu::visibility("hidden")]] extern StackWaiters stack_waiters;

/// The life of an M on g0. Returns when the thread is to end.
void schedule_loop(M* m);

/// Prepares the stack so that g begins on it.
void adopt_stack(G* g, char* stack);
/// Gives g a stack. Returns false if there is none.
bool attach_stack(P* p, G* g);

/// Moves the free stacks of all idle Ps to the pool. Returns how many.
int collect_idle_stacks();
/// Moves the free stacks of p to the pool, and makes a goroutine that waits for one runnable.
void serve_stack_waiter(P* p);

}  // namespace gofer::internal
