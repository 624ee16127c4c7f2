// Deadlock: while run() is active, no goroutine can ever run again.
//
// Go's detector is silent in every program that links C; ours must work in one. It reports only
// what is certain: every M is idle, no goroutine is runnable, no timer runs, nobody waits for a
// descriptor, and every thread of the process is either an M or a foreign thread that is parked
// in one of our primitives without a time limit. Any other thread might still send, so it keeps the
// detector silent.
//
// While the process exits, the thread that runs the exit handlers counts as a run() that waits, and
// looks by itself. Its exit goes on then, without the wait.
//
// The last M to go idle looks, first after 10 ms, then ever more rarely while foreign threads are
// about: they may park, or end, without telling us.
#include "runtime/report/deadlock.h"

#include <gofer/go.h>

#include "os/thread.h"
#include "runtime/goroutines/spawn.h"
#include "runtime/poll/netpoll.h"
#include "runtime/process/exit.h"
#include "runtime/process/process_state.h"
#include "runtime/procs/stop_world.h"
#include "runtime/report/dump_signals.h"
#include "runtime/report/panic.h"
#include "runtime/sched/global_queue.h"
#include "runtime/threads/bound.h"
#include "runtime/threads/idle.h"
#include "runtime/threads/threads.h"
#include "runtime/trace/session.h"
#include "runtime/wait/waiter.h"

namespace gofer::internal {
namespace {

struct Snapshot {
  bool quiet;
  int threads;  // that cannot act: Ms, and parked foreign threads
};

// Two equal readings of parked_threads, under the lock, prove that no thread was woken in between:
// a waker lowers the count, and raising it again takes a thread that runs.
Snapshot look() {
  LockGuard guard(sched_lock);
  const bool all_idle = idle_ms.count + idle_bound_ms == threads.count;
  const bool wanted = goroutines.runs.load(seq_cst) > 0 || process.exit_tid.load(seq_cst) != 0;
  const bool quiet = wanted && all_idle && global_count_locked() == 0 &&
                     earliest_timer_ns() == no_timer && poll_state.waiters.load(seq_cst) == 0 &&
                     !world.stopping.load(relaxed) && !process.exiting.load(relaxed);
  const int live = own_threads + dump_threads() + tracer::own_threads() + threads.count;
  return {quiet, live + parked_threads.load(seq_cst)};
}

}  // namespace

int64_t next_deadlock_look(int64_t look_ns) {
  return look_ns * 2 < last_deadlock_look_ns ? look_ns * 2 : last_deadlock_look_ns;
}

void check_deadlock() {
  const Snapshot before = look();
  if (!before.quiet) return;
  if (os::count_threads() != before.threads) return;
  const Snapshot after = look();
  if (!after.quiet || after.threads != before.threads) return;
  if (os::count_threads() != after.threads) return;
  if (is_exiting_thread()) exit_without_wait();
  if (process.exit_tid.load(seq_cst) != 0) return;  // that thread has the say
  fatal_deadlock(goroutines.main_called_goexit.load(relaxed) && num_goroutine() == 0
                     ? "no goroutines (main called runtime.Goexit) - deadlock!"
                     : "all goroutines are asleep - deadlock!");
}

}  // namespace gofer::internal
