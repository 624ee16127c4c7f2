// Ms that have lost their P without noticing, because they sleep in some call. One that comes back
// goes on without a P until it calls the runtime. It may use 1 ms of processor time so; then sysmon
// pauses its thread until it has a P, because at most GOMAXPROCS goroutines may compute.
#include "runtime/procs/lost.h"

#include "os/thread.h"
#include "os/thread_state.h"
#include "runtime/process/settings.h"
#include "runtime/procs/thread_gate.h"
#include "runtime/threads/m_table.h"
#include "runtime/watch/preempt.h"

namespace gofer::internal {

constinit atomic<int> lost_ms{0};

namespace {

constexpr int64_t budget_ns = 1'000'000;  // processor time of a thread without a P
constexpr int looks_a_round = 16;
uint32_t last = 1;  // the M at which the last round ended

// Returns true if m has run since the last look, and does not sleep.
bool look_at(M* m) {
  const int64_t cpu = os::thread_cpu_ns(m->tid);
  int64_t before = m->lost_cpu_ns.load(relaxed);
  const bool first = before < 0;
  if (first) m->lost_cpu_ns.store(before = cpu, relaxed);
  if (!first && cpu == before) return false;
  const os::ThreadState::Doing doing = look_at_thread(m).doing;
  if (doing == os::ThreadState::asleep) return false;
  if (cpu - before < budget_ns || m->in_runtime.load(relaxed) != 0) {
    return doing == os::ThreadState::running;
  }
  m->lost_cpu_ns.store(cpu, relaxed);  // a new chance, if the signal comes at a bad moment
  signal_m(m);
  return true;
}

}  // namespace

os::ThreadState look_at_thread(const M* m) {
  return settings.has_proc ? os::thread_state(m->tid) : os::ThreadState();
}

void note_lost(M* m, int64_t cpu_ns, uint32_t crowd) {
  m->lost_cpu_ns.store(cpu_ns, relaxed);
  uint32_t none = no_crowd;
  const uint32_t place = place_in(crowd);
  if (!m->lost_in.compare_exchange_strong(none, place, acq_rel)) return;
  join_crowd(place);
  lost_ms.fetch_add(1, relaxed);
}

void forget_lost(M* m) {
  if (m->lost_in.load(relaxed) == no_crowd) return;
  const uint32_t place = m->lost_in.exchange(no_crowd, acq_rel);
  if (place == no_crowd) return;
  leave_crowd(place);
  lost_ms.fetch_sub(1, relaxed);
}

bool pause_lost() {
  if (lost_ms.load(relaxed) == 0) return false;
  const uint32_t first = last;
  int looked = 0;
  bool one_runs = false;
  do {
    M* m = m_after(last);
    last = m->id;
    if (m->lost_in.load(acquire) == no_crowd) continue;
    ++looked;
    if (look_at(m)) one_runs = true;
  } while (last != first && looked < looks_a_round);
  return one_runs;
}

}  // namespace gofer::internal
