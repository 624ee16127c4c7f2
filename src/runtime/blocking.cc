// Calls that say that they block.
//
// An M outside of the runtime can lose its P at any time (p_word.h), so to announce a blocking call
// takes one store: sysmon need not ask the kernel whether the thread sleeps. On return the M still
// has its P, by one load, or it has lost it: then it takes an idle one, or its goroutine goes to
// the global queue and the M to sleep, because after a blocking call a goroutine may go on
// anywhere.
#include <gofer/blocking.h>

#include <cerrno>

#include "os/thread.h"
#include "runtime/switch.h"

namespace gofer::detail {

using namespace internal;

namespace {

void commit_without_p(M*, G* g) {
  g->head->m.store(nullptr, relaxed);
  set_status(g, GStatus::running, GStatus::runnable);
  put_global(g);
  wake_p();
}

// The M, which has no P, goes idle. Returns on whatever M runs the goroutine then.
void wait_without_p(M* m) {
  G* g = m->curg;
  m->commit = commit_without_p;
  m->left = g;
  m->curg = nullptr;
  switch_stacks(m, g->head, &m->g0, false);
}

// Its address is of the thread it is asked for in.
[[gnu::noinline]] void set_errno(int value) { errno = value; }

// Inside, the P is lost.
void find_p(M* m) {
  if (m->curg->head->locked_m != nullptr || sched.exiting.load(relaxed)) {
    enter_slow(m);
    return;
  }
  sched.lock.lock();
  const bool found = keep_p(m) || take_any_p_locked(m);
  forget_lost(m);
  if (!found) m->p = nullptr;  // noticed: it cannot be given back any more
  sched.lock.unlock();
  if (found) return;
  const int of_the_call = errno;
  wait_without_p(m);
  set_errno(of_the_call);
}

}  // namespace

blocking_call::blocking_call(bool at_once) noexcept {
  M* m = at_once ? enter() : current_m();
  if (m == nullptr) return;
  P* p = m->p;
  before_ = m->blocking_at.load(relaxed);
  m->blocking_at.store(p->switches.load(relaxed) + 1, relaxed);
  // Nobody but sysmon reads it, to tell one call from the next: a count that is lost together with
  // the P does no harm.
  p->syscalltick.store(p->syscalltick.load(relaxed) + 1, relaxed);
  if (!at_once) return;
  give_up_p(m);
  leave(m);
}

blocking_call::~blocking_call() {
  M* m = current_m();
  if (m == nullptr) return;
  m->blocking_at.store(before_, relaxed);
  if (m->p->word.load(acquire) == m->p_word) [[likely]]
    return;
  if (sched.forked.load(relaxed)) return;  // there is no runtime to come back to
  m->in_runtime.store(1, relaxed);
  compiler_barrier();
  if (!keep_p(m)) find_p(m);
  leave(current_m());
}

}  // namespace gofer::detail
