// The runtime's start, on first use, and fork.
//
// In the child of a fork there is one thread and whatever state the others left: the runtime must
// not be used there, and the first entry says so.
#include "runtime/process/start.h"

#include <cerrno>
#include <cstdlib>
#include <new>
#include <system_error>

#include "debug/fd_writer.h"
#include "os/cpu_count.h"
#include "os/membarrier.h"
#include "os/memory.h"
#include "os/process.h"
#include "os/thread.h"
#include "runtime/process/debug_env.h"
#include "runtime/process/exit.h"
#include "runtime/process/one_copy.h"
#include "runtime/process/process_state.h"
#include "runtime/process/sanitizer_mismatch.h"
#include "runtime/process/settings.h"
#include "runtime/procs/current.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/procs.h"
#include "runtime/procs/retake.h"
#include "runtime/procs/stop_world.h"
#include "runtime/procs/transitions.h"
#include "runtime/report/crash.h"
#include "runtime/report/dump_signals.h"
#include "runtime/report/exceptions.h"
#include "runtime/report/panic.h"
#include "runtime/report/reporter.h"
#include "runtime/sched/sched_lock.h"
#include "runtime/sched/switch.h"
#include "runtime/threads/m_table.h"
#include "runtime/threads/template_thread.h"
#include "runtime/threads/thread_calls.h"
#include "runtime/threads/threads.h"
#include "runtime/trace/environment.h"
#include "runtime/trace/session.h"
#include "runtime/watch/preempt.h"
#include "runtime/watch/schedtrace.h"
#include "runtime/watch/sysmon.h"

extern "C" {
thread_local constinit gofer::internal::M* gofer_current_m
    __attribute__((tls_model("initial-exec"), visibility("hidden"))) = nullptr;
}

namespace gofer::internal {

constinit ProcessState process;
constinit Settings settings;

namespace {

bool async_preempt_off = false;
bool crash_report = true;
bool panic_exits = false;

void complain(const char* message) {
  FdWriter out(STDERR_FILENO);
  out.print("%s\n", message);
}

// A variable that is set but empty counts as not set.
const char* variable(const char* name) {
  const char* value = getenv(name);
  return value == nullptr || value[0] == '\0' ? nullptr : value;
}

// The same for what makes the program write files: not if the program has rights that its caller
// does not have.
const char* secure_variable(const char* name) {
  return secure_getenv(name) != nullptr ? variable(name) : nullptr;
}

// The next entry is made to fail: a goroutine's because it does not have its P any more, that of an
// foreign thread because the runtime has to be started again.
void on_fork_child() {
  process.forked.store(true, relaxed);
  process.started.store(false, relaxed);
  forget_report();
  tracer::forget_in_child();
  if (M* m = current_m(); m != nullptr) transition::forked(m);
}

GuardKind guard_kind(DebugEnv::Guard wanted) {
  if (wanted == DebugEnv::Guard::none) return GuardKind::none;
  const bool markers = wanted == DebugEnv::Guard::madvise && os::has_guard_markers();
  return markers ? GuardKind::marker : GuardKind::mprotect;
}

// How stacks lie and are guarded, by what the kernel can do and allows: stack_space.h.
void set_up_stacks(const DebugEnv& env) {
  const GuardKind kind = guard_kind(env.guard);
  const long mappings = os::max_mappings(env.procfs);
  set_guard_kind(kind);
  set_guard_budget(kind == GuardKind::none ? 0 : mappings / (kind == GuardKind::marker ? 16 : 8));
  set_charged_early(!env.overcommit || os::memory_is_charged_early(env.procfs));
  if (env.stack_size != 0) set_default_stack_size(env.stack_size);
}

void read_environment() {
  const DebugEnv env = parse_debug_env(variable("GOFER_DEBUG"), variable("GOMAXPROCS"),
                                       variable("GOFER_STACK_SIZE"), complain);
  settings.gm = env.model_gm;
  settings.idle_ns = env.idle_ms * 1'000'000;
  settings.scavenge_ns = env.scavenge_ms * 1'000'000;
  async_preempt_off = env.async_preempt_off;
  crash_report = env.crash_report;
  panic_exits = env.panic_exits;
  taking.has_membarrier.store(env.membarrier && os::membarrier_register(), relaxed);
  settings.has_proc = env.procfs;
  set_zero_stacks(env.zero_stacks);
  set_schedtrace(env.schedtrace_ms, env.scheddetail);
  settings.traceback = env.traceback;
  set_dump_signals(env.sigquit, env.dump_signal);
  set_up_stacks(env);
  const int procs = env.gomaxprocs != 0 ? env.gomaxprocs : default_gomaxprocs();
  LockGuard guard(sched_lock);
  const int got = resize_ps(procs < max_procs ? procs : max_procs);
  for (int i = got - 1; i >= 0; --i) put_idle_p(p_table.all[i].load(relaxed));
}

// The runtime's own threads take no signals; Ms have the starter's mask.
int start_own_threads() {
  sigset_t all;
  sigset_t was;
  sigfillset(&all);
  os::set_signal_mask(SIG_SETMASK, &all, &was);
  set_usual_mask(was);
  static bool has_template = false;
  static bool has_sysmon = false;
  int error = has_template ? 0 : start_template_thread();
  if (error == 0) {
    has_template = true;
    error = has_sysmon ? 0 : start_sysmon();
  }
  if (error == 0) {
    has_sysmon = true;
    error = start_first_m();
  }
  if (error == 0) start_dump_thread();  // the runtime can do without
  os::set_signal_mask(SIG_SETMASK, &was, nullptr);
  return error;
}

// Once; what it does again after a failed start does no harm.
void prepare() {
  static bool prepared = false;
  if (prepared) return;
  constexpr size_t table = (PWord::max_owner + 1) * sizeof(atomic<M*>);
  m_table = static_cast<atomic<M*>*>(os::reserve(table));
  if (m_table == nullptr) throw std::bad_alloc();
  read_environment();
  if (p_table.in_use.load(relaxed) == 0) throw std::bad_alloc();
  claim_process();
  warn_of_sanitizer();
  install_terminate_report(panic_exits);
  install_crash_report(crash_report);
  const bool has_handler = !tsan_enabled && install_preemption();
  if (!has_handler && !async_preempt_off && !tsan_enabled) {
    warn("sigaction fails for SIGURG: a goroutine that computes is not preempted");
  }
  preemption.has_handler.store(has_handler, relaxed);
  preemption.has_signal.store(has_handler && !async_preempt_off, relaxed);
  install_exit_handlers();
  os::at_fork_in_child(on_fork_child);
  prepared = true;
  tracer::start_from_environment(secure_variable("GOFER_TRACE"),
                                 secure_variable("GOFER_TRACE_FLIGHT"));
}

}  // namespace

void start_runtime() {
  if (process.forked.load(relaxed)) used_after_fork();
  static constinit Lock starting{LockRank::world};
  LockGuard guard(starting);
  if (process.started.load(relaxed)) return;
  watch_for_exit();
  prepare();
  if (const int error = start_own_threads(); error != 0) {
    throw std::system_error(error, std::generic_category(), "gofer: cannot start a thread");
  }
  process.started.store(true, release);
}

void stop_scheduling() {
  process.exit_m.store(current_m(), relaxed);
  process.exiting.store(true, seq_cst);
  if (m_table != nullptr) let_paused_go();
  for (P* p : all_ps()) p->preempt.store(true, relaxed);
}

void used_after_fork() {
  warn("the runtime was used in the child of a fork(): only exec and _exit are allowed there");
  std::abort();
}

}  // namespace gofer::internal
