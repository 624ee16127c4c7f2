// Switching from goroutine to goroutine: yield, park, the end of one; and the few lines that every
// switch has in common, inlined into switch.cc and schedule.cc.
//
// Protocol: code that leaves a stack sets m->commit, which says what happens to the goroutine that
// it leaves, and switches. The commit is the first thing that runs on the next stack. By then the
// registers of the goroutine are saved. Before that no other thread sees it: it is in no queue, and
// the lock of the primitive for which it waits is still held. So no other M can run it too early.
#pragma once

#include "arch/arch.h"
#include "runtime/goroutines/transitions.h"

namespace gofer::internal {

// These are called inside, on a goroutine's stack.

/// Gives the M to another goroutine; `commit` runs once the caller's context is saved. Returns when
/// the caller runs again, perhaps on another M.
void switch_away(M* m, CommitFn commit);
void yield_goroutine(M* m);
/// Parks the running goroutine. For wait/park.cc alone, through which everything waits. `lock` is
/// released when it is safe to ready the goroutine. `early` is the contest of a wait that may have
/// been won already, without that lock; then the goroutine goes on.
void park_goroutine(M* m, WaitReason reason, QueueLock lock, Contest* early = nullptr);

/// Ends the calling goroutine, whose function has returned or was unwound. Outside.
[[noreturn]] void finish_goroutine();

/// Whether a stack is wiped when its goroutine ends. Set once, before the first goroutine ends.
void set_zero_stacks(bool zero);

inline void run_commit(M* m) {
  CommitFn commit = m->commit;
  if (commit == nullptr) return;
  m->commit = nullptr;
  commit(m, m->left);
}

/// A goroutine begins or goes on to run on p. If `inherits` is set, it shares the time slice of the
/// one before it.
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

/// The goroutine yields because P::preempt is set.
void yield_as_asked(M* m);

/// For a call that may switch but does not have to: if sysmon wants the goroutine to stop, it
/// yields here, which is much cheaper than a pause. The M must be fetched anew afterwards.
inline void yield_if_asked(M* m) {
  if (m->p->preempt.load(relaxed)) [[unlikely]]
    yield_as_asked(m);
}

/// Goes over to another stack of this M. Returns when an M switches back to `from`.
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
