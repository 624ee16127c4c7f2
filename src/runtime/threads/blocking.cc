// Calls that say that they block.
//
// An M outside of the runtime can lose its P at any time (p_word.h), so to announce a blocking call
// takes one store: sysmon need not ask the kernel whether the thread sleeps. On return the M still
// has its P, by one load, or it has lost it and is a thread like any that lost its P in a call: it
// takes an idle P if there is one; else it goes on, and if it computes for more than 1 ms in all,
// or enters the runtime, it waits tied for a P. A goroutine that goes from call to call costs
// neither a P nor a wake-up then. (100 goroutines with calls of 1 ms on two Ps made 23,000 calls a
// second when each return waited for a P, because sysmon had to take it back each time, and 90,000
// since.)
//
// A goroutine that has its P and goes from one short call to the next is never seen outside of
// them. At the end of its slice sysmon raises the P's flag, and the return of the call looks at it.
#include <gofer/blocking.h>

#include <cerrno>
#include <utility>

#include "os/thread.h"
#include "os/thread_state.h"
#include "runtime/goroutines/transitions.h"
#include "runtime/process/process_state.h"
#include "runtime/procs/current.h"
#include "runtime/procs/lost.h"
#include "runtime/procs/procs.h"
#include "runtime/procs/spinning.h"
#include "runtime/procs/thread_gate.h"
#include "runtime/sched/switch.h"
#include "runtime/watch/preempt.h"

namespace gofer::detail {

using namespace internal;

blocking_call::blocking_call(bool at_once) noexcept {
  M* m = current_m();
  if (m == nullptr) return;
  before_ = m->blocking_at.load(relaxed);
  if (m->lost_in.load(relaxed) != no_crowd) {  // nothing to announce; what it computes is its own
    transition::calls(m, m->p);
    const int64_t since = m->lost_cpu_ns.load(relaxed);
    m->used_without_p_ns = since < 0 ? 0 : os::own_cpu_ns() - since;
    forget_lost(m);
    return;
  }
  if (at_once) enter();
  P* p = m->p;
  transition::calls(m, p);
  // Only sysmon reads it, to tell one call from the next: a count that is lost together with
  // the P does no harm.
  p->syscalltick.store(p->syscalltick.load(relaxed) + 1, relaxed);
  if (!at_once) return;
  give_up_p(m);
  leave(m);
}

blocking_call::~blocking_call() {
  M* m = current_m();
  if (m == nullptr) return;
  transition::call_ended(m, before_);
  P* p = m->p;
  const bool has_p = seems_to_hold_p(m);
  if (has_p && !p->preempt.load(relaxed)) [[likely]]
    return;
  if (process.forked.load(relaxed)) return;  // there is no runtime to come back to
  const int of_the_call = errno;
  const StackHead* head = m->curg->head;
  if (!has_p && wake_state.idle_p_count.load(relaxed) == 0 && preemption.has_signal.load(relaxed) &&
      head->own_m == nullptr && head->no_preempt == 0 && !process.exiting.load(relaxed)) {
    transition::goes_on_without_p(m);
    note_lost(m, os::own_cpu_ns() - std::exchange(m->used_without_p_ns, 0), call_crowd);
    return;
  }
  enter();
  m->used_without_p_ns = 0;
  if (head->no_preempt == 0) yield_if_asked(m);
  leave(current_m());
  os::set_errno(of_the_call);
}

}  // namespace gofer::detail
