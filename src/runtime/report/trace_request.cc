// The trace of a goroutine that is on a thread: the thread makes it.
//
// No other thread may walk a stack that is in use. So the dumper puts a request into the M, and
// calls the thread: by SIGURG, the signal of preemption, or, if the M waits for a P, by its note.
// Both may be the case, when the thread is just being paused: the handler of SIGURG waits for the
// P, and the second signal is not delivered before it returns. The dumper stores the request and
// then looks whether the M waits; the M says that it waits and then looks for a request (both
// sequentially consistent), so one of the two ways always works. The one that takes the request out
// of the M is the one that answers.
//
// The handler runs on the thread's signal stack and only unwinds, into the dumper's memory: it
// takes no lock and allocates nothing. A system call that it interrupts is started again
// (SA_RESTART, arch::restart_interrupted_call), so the program sees no EINTR that preemption would
// not cause.
//
// Rejected: to read the stack pointer of a sleeping thread in /proc/self/task/*/syscall, which
// would leave its call alone. The unwinder needs the callee-saved registers, too.
#include "runtime/report/trace_request.h"

#include <signal.h>

#include "arch/arch.h"
#include "debug/unwind.h"
#include "os/thread_state.h"
#include "runtime/threads/m.h"
#include "runtime/watch/preempt.h"

namespace gofer::internal {
namespace {

void copy_name(char (&to)[TraceRequest::longest_name], const char* from) {
  size_t n = 0;
  if (from != nullptr) {
    for (; n + 1 < TraceRequest::longest_name && from[n] != '\0'; ++n) to[n] = from[n];
  }
  to[n] = '\0';
}

// An M that is let go, because the process ends, has left that wait.
bool hears_note(const M* m) { return m->waits_for_p.load(seq_cst) && !m->let_go.load(seq_cst); }

// m is inside, so it may be about to switch: what curg names need not be what it runs on.
bool is_on_stack_of(const G* g, uintptr_t sp) {
  if (g->head == nullptr) return false;
  return sp >= stack_low(g->stack()) && sp < reinterpret_cast<uintptr_t>(g->head);
}

}  // namespace

void ask_for_trace(M* m, TraceRequest& request) {
  request.m = m;
  m->trace_request.store(&request, seq_cst);
  if (hears_note(m)) {
    m->note.signal();
  } else {
    interrupt_m(m);
  }
}

bool is_deaf(const M* m) {
  if (hears_note(m)) return false;
  return !preemption.has_handler.load(relaxed) || os::blocks_signal(m->tid.load(relaxed), SIGURG);
}

bool withdraw(TraceRequest& request) {
  TraceRequest* asked = &request;
  return request.answered.load(acquire) ||
         request.m->trace_request.compare_exchange_strong(asked, nullptr, acq_rel);
}

__attribute__((no_sanitize("thread"))) void answer_trace_request(M* m, const void* signal_context) {
  TraceRequest* request = m->trace_request.exchange(nullptr, acq_rel);
  if (request == nullptr) return;
  G* g = m->curg;
  if (g != nullptr && signal_context != nullptr && m->in_runtime.load(relaxed) != 0 &&
      !m->paused.load(relaxed)) {
    arch::Registers registers = arch::interrupted_registers(signal_context);
    if (!is_on_stack_of(g, arch::sp_of(registers))) g = nullptr;
  }
  if (g != nullptr) {
    copy_name(request->name, g->name);
    const size_t n = signal_context != nullptr ? unwind_signal(signal_context, request->pcs)
                                               : unwind_here(request->pcs, 1);
    request->frames = static_cast<uint32_t>(n);
  }
  request->g = g;
  request->answered.store(true, release);
}

}  // namespace gofer::internal
