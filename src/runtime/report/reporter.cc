// Which thread makes the report that ends the process.
//
// One word has the id of the reporting thread, and two flags:
//   passing   the process may go on after this report, and the word becomes 0 again;
//   closing   no thread but this one, which is at the end of its exit, can begin a report.
// A thread that finds another one there sleeps on the word. After most reports it never wakes.
//
// A handler of a signal may come here at any instruction, so there is no lock, only the word.
#include "runtime/report/reporter.h"

#include <signal.h>

#include <climits>
#include <cstdint>

#include "os/futex.h"
#include "os/process.h"
#include "os/signal.h"
#include "os/thread.h"
#include "runtime/base/atomic.h"
#include "runtime/process/start.h"
#include "runtime/procs/current.h"
#include "runtime/trace/session.h"

namespace gofer::internal {
namespace {

constexpr unsigned report_limit_s = 20;

// For a report that passes: it may need a lock that the caller holds, or a P.
constexpr int64_t patience_ns = 2'000'000'000;

constexpr uint32_t closing = uint32_t{1} << 31;
constexpr uint32_t passing = uint32_t{1} << 30;
constinit atomic<uint32_t> reporter{0};

// Of the reporting thread.
constinit ReportStep step_after_failure = nullptr;
constinit bool may_exit_now = false;

// The goroutine whose panic handler runs, and a word to sleep on until that is over.
constinit atomic<G*> expected{nullptr};
constinit atomic<uint32_t> expects{0};

uint32_t self() { return static_cast<uint32_t>(os::thread_id()); }

void wait_for_expected_report() {
  while (G* g = expected.load(acquire)) {
    if (g == current_g()) return expect_report_of(nullptr);  // its panic handler has called exit()
    os::futex_wait(&expects, 1);
  }
}

}  // namespace

void begin_report() {
  const uint32_t me = self();
  for (;;) {
    uint32_t before = reporter.load(acquire);
    if ((before & ~(closing | passing)) == me && (before & closing) == 0) {
      if ((before & passing) == 0) resume_report();  // the report failed in its turn
    } else if (before != 0 && before != (me | closing)) {
      const bool passes = (before & (closing | passing)) == passing;
      if (os::futex_wait(&reporter, before, passes ? patience_ns : -1)) continue;
    }
    if (reporter.compare_exchange_strong(before, me, acq_rel)) break;
  }
  stop_scheduling();
  os::reset_signal(SIGALRM);
  sigset_t alarm_only;
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  os::set_signal_mask(SIG_UNBLOCK, &alarm_only, nullptr);
  go_on_reporting();
}

void go_on_reporting() { os::set_alarm(report_limit_s); }

void finish_trace() {
  if (is_reporting()) go_on_reporting();  // a disk may be slow
  tracer::finish_at_report();
}

void end_report() {
  finish_trace();
  os::end_process(report_exit_code);
}

bool is_reporting() { return (reporter.load(relaxed) & ~passing) == self(); }

void set_step_after_failure(ReportStep step, bool may_exit) {
  step_after_failure = step;
  may_exit_now = may_exit;
}

bool has_step_after_failure() { return step_after_failure != nullptr; }

bool step_may_exit() { return may_exit_now; }

void resume_report() {
  const ReportStep step = step_after_failure;
  set_step_after_failure(nullptr);
  if (step != nullptr) step();
  end_report();
}

void wait_for_other_report() {
  for (;;) {
    const uint32_t before = reporter.load(acquire);
    if (before == 0 || (before & closing) != 0 || (before & ~passing) == self()) return;
    const bool passes = (before & passing) != 0;
    if (!os::futex_wait(&reporter, before, passes ? patience_ns : -1)) return;
  }
}

bool begin_passing_report() {
  uint32_t nobody = 0;
  return reporter.compare_exchange_strong(nobody, self() | passing, acq_rel);
}

void end_passing_report() {
  uint32_t own = self() | passing;  // unless another thread has lost its patience
  if (reporter.compare_exchange_strong(own, 0, acq_rel)) os::futex_wake(&reporter, INT_MAX);
}

void expect_report_of(G* g) {
  expects.store(g != nullptr ? 1 : 0, release);
  expected.store(g, release);
  if (g == nullptr) os::futex_wake(&expects, INT_MAX);
}

void wait_for_report() {
  wait_for_expected_report();
  for (;;) {
    const uint32_t before = reporter.load(acquire);
    if (before == 0 || (before & closing) != 0) return;
    if (before == self()) {  // exit() in the middle of it
      if (may_exit_now) return;
      resume_report();
    }
    os::futex_wait(&reporter, before);
  }
}

void forbid_reports() {
  wait_for_expected_report();
  const uint32_t me = self();
  for (;;) {
    uint32_t before = 0;
    if (reporter.compare_exchange_strong(before, me | closing, acq_rel)) return;
    if ((before & closing) != 0) return;
    wait_for_report();
    if (before == me) return;  // its report is made, and it exits in a handler of the program
  }
}

void forget_report() {
  reporter.store(0, relaxed);
  expect_report_of(nullptr);
}

}  // namespace gofer::internal
