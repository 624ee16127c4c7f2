// The end of the process by exit() or by the return of main.
//
// Goroutines go on until the process is gone, like detached threads. So a static destructor, or any
// other exit handler, may wait for a goroutine, and start one. The runtime has a part in two places
// only: before the first handler, and after the last.
//
// Before the first (begin_exit), the thread that exits
//   - waits for a report that has begun; the report ends the process, with its own status;
//   - leaves the scheduler, if a goroutine has called exit(): the handlers run on one thread from
//     the first to the last, and hold no P;
//   - notes that it runs the handlers, and the status. If it waits for what can never happen
//     (deadlock.cc), it leaves that wait behind and goes on with the handlers that are left.
//
// After the last (finish_exit), it waits for a report once more, and from then on none can begin:
// the process would be gone in the middle of it. Go does the same at the end of main.
//
// To be the first: exit() begins with the thread_local destructors of its caller, so a handler that
// is registered by one of them (note_end_of_thread) runs before all others. The end of a thread
// looks the same to a destructor, and handlers cannot be taken back, so this is for the main thread
// and for Ms, where the two can be told apart. Another foreign thread that calls exit() gets to
// begin_exit when it is the turn of the handler from the runtime's start.
//
// To be the last: what is in .fini_array runs after all handlers and static destructors.
//
// To leave a wait behind: nothing can return from it, because what it waited for has not happened.
// But a handler may call exit() again, and glibc goes on with the next handler then.
//
// Rejected: to schedule no goroutine from the exit on, or only while the exiting thread waits. A
// destructor that waits for a goroutine hangs then, in the second case if it does not wait by a
// primitive of ours.
#include "runtime/process/exit.h"

#include <signal.h>

#include <cstddef>
#include <cstdlib>

#include "os/process.h"
#include "os/thread.h"
#include "runtime/process/process_state.h"
#include "runtime/procs/current.h"
#include "runtime/procs/lost.h"
#include "runtime/procs/retake.h"
#include "runtime/procs/transitions.h"
#include "runtime/report/panic.h"
#include "runtime/report/reporter.h"
#include "runtime/sched/sched_lock.h"
#include "runtime/threads/threads.h"
#include "runtime/threads/transitions.h"
#include "runtime/trace/session.h"
#include "runtime/wait/waiter.h"

namespace gofer::internal {
namespace {

constinit atomic<int> exit_status{0};

// The thread of m is a foreign thread from now on. Its goroutine stays what it is on: no M will
// ever switch to it. The record of m is not used again.
void leave_scheduler(M* m) {
  sigset_t urgent;
  sigemptyset(&urgent);
  sigaddset(&urgent, SIGURG);
  os::set_signal_mask(SIG_BLOCK, &urgent, nullptr);  // one of ours may be on its way
  pass_gate(m);                                      // keep_p settles the doubt
  bool has_p;
  {
    LockGuard guard(sched_lock);
    has_p = keep_p(m);
    if (!has_p) transition::accepted_loss(m);
    forget_lost(m);
    transition::ended(m);
  }
  if (has_p) end_m(m);
  LockGuard guard(sched_lock);
  --threads.count;
  gofer_current_m = nullptr;
}

void begin_exit(int status, void*) {
  if (process.forked.load(relaxed)) return;
  wait_for_report();
  if (M* m = current_m(); m != nullptr) leave_scheduler(m);
  exit_status.store(status, relaxed);
  process.exit_tid.store(os::thread_id(), seq_cst);
}

struct ExitWatch {
  bool watches = false;
  ~ExitWatch() { note_end_of_thread(); }
};
thread_local ExitWatch exit_watch;

// The tracer's thread writes what it has, unless it waits for a lock that is never released.
constexpr int64_t longest_finish_ns = 10'000'000'000;

[[gnu::destructor(101)]] void finish_exit() {
  if (process.forked.load(relaxed)) return;
  forbid_reports();
  tracer::finish_at_exit(longest_finish_ns);
}

// Handlers of quick_exit that are older than the runtime run after it, and are not traced.
void finish_quick_exit() {
  if (process.forked.load(relaxed)) return;
  wait_for_report();
  tracer::finish_at_exit(longest_finish_ns);
}

}  // namespace

void watch_for_exit() {
  // glibc notes the destructor in memory that only the thread knows, and LSan looks in vain for one
  // that has ended: the main thread's destructors do not run if it ends by pthread_exit.
  sanitizer_allow_leak([] { exit_watch.watches = true; });
}

namespace {

// pthread_exit has left the goroutine's stack for the thread's own, and runs the destructors of
// thread_local objects there. While a goroutine runs, nothing else is there.
bool thread_ends_under(M* m, const void* here) {
  constexpr ptrdiff_t above = 512;
  constexpr ptrdiff_t below = 32 * 1024;
  const ptrdiff_t distance = static_cast<const char*>(here) - static_cast<const char*>(m->base);
  return m->curg != nullptr && distance < above && distance > -below;
}

}  // namespace

void note_end_of_thread() {
  M* m = current_m();
  if (m != nullptr && thread_ends_under(m, __builtin_frame_address(0))) {
    fatal_error(
        "the thread of a goroutine was ended by pthread_exit or pthread_cancel: goexit() ends a "
        "goroutine");
  }
  // An M that ends is none any more when it comes here.
  if (m != nullptr || os::thread_id() == os::process_id()) on_exit(begin_exit, nullptr);
}

void install_exit_handlers() {
  on_exit(begin_exit, nullptr);
  std::at_quick_exit(finish_quick_exit);
}

void exit_without_wait() {
  static constinit atomic<bool> said{false};
  if (!said.exchange(true, relaxed)) report_endless_wait_at_exit();
  leave_wait_behind();
  std::exit(exit_status.load(relaxed));
}

}  // namespace gofer::internal
