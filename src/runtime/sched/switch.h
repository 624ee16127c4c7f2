// The few lines that every switch has in common, inlined into switch.cc and schedule.cc.
//
// Protocol: who leaves a stack sets m->commit (what is to be done with the goroutine left behind)
// and switches; the commit runs first thing on the next stack, when the registers of the old one
// are saved. Before that, nobody else knows of the goroutine: it is in no queue, and the lock of
// the primitive it waits for is still held. So no other M can run it too early.
#pragma once

#include "arch/arch.h"
#include "runtime/sched/queues.h"

namespace gofer::internal {

/// Whether a stack is wiped when its goroutine ends. Set once, before the first one does.
void set_zero_stacks(bool zero);

inline void run_commit(M* m) {
  CommitFn commit = m->commit;
  if (commit == nullptr) return;
  m->commit = nullptr;
  commit(m, m->left);
}

/// A goroutine begins or goes on to run on p. inherits: in the time slice of the one before it.
inline void count_switch(P* p, bool inherits) {
  --p->budget;
  bump(p->switches);
  if (!inherits) bump(p->schedtick);
}

/// g is what m, which has p, executes from now on.
inline void begin_running(M* m, P* p, G* g, bool inherits) {
  transition::begins(m, g);
  count_switch(p, inherits);
}

/// In a call that may switch but does not have to: a goroutine that sysmon wants to stop does so
/// here, which is much cheaper than being paused. The M must be fetched anew afterwards.
inline void yield_if_asked(M* m) {
  if (m->p->preempt.load(relaxed)) [[unlikely]]
    yield_goroutine(m);
}

/// Goes over to another stack of this M and returns when somebody comes back to `from`.
[[gnu::always_inline]] inline void switch_stacks(M* m, StackHead* from, StackHead* to,
                                                 bool from_ends) {
  from->exceptions = *m->exceptions;
  *m->exceptions = to->exceptions;
  if constexpr (sanitizers_enabled) {
    m->came_from = from;
    sanitizer_before_switch(from->fiber, to->fiber, from_ends);
  }
  m = arch::gofer_switch(&from->sp, to->sp, m);
  if constexpr (sanitizers_enabled) sanitizer_after_switch(from->fiber, &m->came_from->fiber);
  run_commit(m);
}

}  // namespace gofer::internal
