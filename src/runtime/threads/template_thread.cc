// The thread that starts all others.
//
// Starting a thread takes locks of libc (its allocator's, the loader's), and any thread that
// computes outside of the runtime may be paused while it holds one of them. So no M starts another:
// it would wait for that lock inside the runtime, with a P in its hands that the paused thread
// needs. This thread holds no P and may wait. It also lends the new threads its signal mask, which
// is that of the thread that started the runtime, however the goroutines may have changed theirs.
#include "runtime/threads/template_thread.h"
#include "os/thread.h"
#include "runtime/sched/sched_lock.h"
#include "runtime/threads/threads.h"

namespace gofer::internal {
namespace {

constinit Note wanted;
M* unborn GOFER_GUARDED_BY(sched_lock) = nullptr;  // to be started; newest first

M* take_unborn() {
  LockGuard guard(sched_lock);
  M* m = unborn;
  if (m != nullptr) unborn = m->link;
  return m;
}

void* template_main(void*) {
  os::name_thread("gofer-template");
  for (;;) {
    while (M* m = take_unborn()) begin_m(m);
    wanted.wait(-1);
  }
}

}  // namespace

int start_template_thread() { return os::start_thread(template_main, nullptr); }

void want_thread_locked(M* m) {
  m->link = unborn;
  unborn = m;
}

void tell_template_thread() { wanted.signal(); }

}  // namespace gofer::internal
