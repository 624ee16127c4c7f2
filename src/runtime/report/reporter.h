// Which thread makes the report that ends the process, and what the others do meanwhile. See
// reporter.cc.
#pragma once

namespace gofer::internal {

struct G;

/// One report, then the end: a thread that comes second waits for that end. If the report itself
/// gets stuck (a lock held by the code that failed), an alarm ends the process;
/// go_on_reporting() winds it up again, for every goroutine of a long report.
void begin_report();
void go_on_reporting();
/// The end of a fatal error: exit code 2.
[[noreturn]] void end_report();
inline constexpr int report_exit_code = 2;
/// The trace gets what the process did last, if that can be written within a short time.
void finish_trace();
/// The calling thread makes the report.
bool is_reporting();

/// The report is about to call code of the program, which may wait, fail in its turn, or exit
/// instead of returning. Then it goes on with `step`, which does not return. If the code may exit,
/// exit() in it ends the process, because all has been said. nullptr: the code has returned.
using ReportStep = void (*)();
void set_step_after_failure(ReportStep step, bool may_exit = false);
/// Goes on with that step; ends the report if there is none.
[[noreturn]] void resume_report();
bool has_step_after_failure();
bool step_may_exit();

/// A report after which the process may go on: nothing is stopped. Returns false, and there is
/// nothing to end, if another report is being made, or no more reports may begin.
bool begin_passing_report();
void end_passing_report();

/// g runs its panic handler, and begins a report after that. Meanwhile the process does not end,
/// unless g ends it.
void expect_report_of(G* g);

/// If another thread makes a report, sleeps until that ends, as a rule with the process. For a
/// report after which the process may go on, waits two seconds at most.
void wait_for_other_report();
/// The same, for a thread that is about to end the process.
void wait_for_report();
/// The same, and no thread but the caller can begin one from now on.
void forbid_reports();
/// In the child of a fork: the thread that made one is not there.
void forget_report();

}  // namespace gofer::internal
