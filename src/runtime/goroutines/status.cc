#include "runtime/goroutines/status.h"

#include "runtime/procs/p.h"
#include "runtime/report/panic.h"
#include "runtime/threads/m.h"

namespace gofer::internal {

const char* status_name(GStatus status) {
  switch (status) {
    case GStatus::idle:
      return "idle";
    case GStatus::runnable:
      return "runnable";
    case GStatus::running:
      return "running";
    case GStatus::syscall:
      return "syscall";
    case GStatus::waiting:
      return "waiting";
    case GStatus::dead:
      return "dead";
    case GStatus::copystack:
      return "copystack";
    case GStatus::preempted:
      return "preempted";
  }
  return "?";
}

const char* wait_reason_text(WaitReason reason) {
  switch (reason) {
    case WaitReason::none:
      return "waiting";
    case WaitReason::io_wait:
      return "IO wait";
    case WaitReason::chan_receive:
      return "chan receive";
    case WaitReason::chan_receive_nil:
      return "chan receive (nil chan)";
    case WaitReason::chan_send:
      return "chan send";
    case WaitReason::chan_send_nil:
      return "chan send (nil chan)";
    case WaitReason::select:
      return "select";
    case WaitReason::select_no_cases:
      return "select (no cases)";
    case WaitReason::sleep:
      return "sleep";
    case WaitReason::mutex_lock:
      return "sync.Mutex.Lock";
    case WaitReason::rw_mutex_rlock:
      return "sync.RWMutex.RLock";
    case WaitReason::rw_mutex_lock:
      return "sync.RWMutex.Lock";
    case WaitReason::cond_wait:
      return "sync.Cond.Wait";
    case WaitReason::semacquire:
      return "semacquire";
    case WaitReason::wait_group_wait:
      return "sync.WaitGroup.Wait";
    case WaitReason::panic_wait:
      return "panicwait";
  }
  return "?";
}

bool is_legal_transition(GStatus from, GStatus to) {
  using enum GStatus;
  switch (from) {
    case dead:
      return to == idle;
    case idle:
      return to == runnable || to == dead;
    case runnable:
      return to == running;
    case running:
      return to == runnable || to == preempted || to == waiting || to == dead;
    case preempted:
      return to == running;
    case waiting:
      return to == runnable || to == copystack;
    case copystack:
      return to == waiting || to == runnable;
    case syscall:
      return false;
  }
  return false;
}

void check_transition(G* g, GStatus from, GStatus to) {
  GStatus was = g->status.exchange(to, acq_rel);
  if (was == GStatus::copystack && from == GStatus::waiting) was = from;
  if (was != from || !is_legal_transition(from, to)) {
    fatal_error("goroutine %lu: illegal transition %s (expected %s) -> %s", g->id, status_name(was),
                status_name(from), status_name(to));
  }
}

__attribute__((no_sanitize("thread"))) GStatus true_status(const G* g) {
  const GStatus stored = g->status.load(acquire);
  if (stored != GStatus::running) return stored;
  const M* m = g->m();
  if (m == nullptr) return stored;
  const P* p = m->p;
  const bool has_p =
      p != nullptr && PWord(p->word.load(relaxed)).with(PWordState::running).bits() == m->p_word;
  return has_p && !in_announced_call(m, p) ? GStatus::running : GStatus::syscall;
}

}  // namespace gofer::internal
