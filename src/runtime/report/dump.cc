// Dumps, for the program and for reports.
//
// A dump of a program that goes on: the world stops, a snapshot is taken, the world starts again,
// and then the snapshot is printed, which takes most of the time. A goroutine that makes a dump
// announces the printing as a blocking call, so it keeps nobody's P. Dumps are printed one after
// the other.
//
// A dump on SIGQUIT is the same without an end, so the world does not start again. If the world
// cannot be stopped, because the runtime itself is stuck, the snapshot is that of a report.
#include "runtime/report/dump.h"

#include <gofer/blocking.h>
#include <gofer/debug.h>

#include <ostream>
#include <string>

#include "os/futex.h"
#include "runtime/process/process_state.h"
#include "runtime/procs/current.h"
#include "runtime/procs/stop_world.h"
#include "runtime/report/dump_printer.h"
#include "runtime/report/panic.h"
#include "runtime/report/reporter.h"
#include "runtime/report/snapshot.h"

namespace gofer::internal {
namespace {

constexpr size_t many = 100;  // goroutines; more are grouped
constexpr int64_t stop_limit_ns = 1'000'000'000;

// A thread of any kind may wait for it, outside of the runtime, while another one prints to a slow
// reader. So it is none of the runtime's locks, which have ranks and are held for microseconds.
class DumpLock {
 public:
  DumpLock() {
    uint32_t is = 0;
    if (word_.compare_exchange_strong(is, 1, acquire)) return;
    while (word_.exchange(2, acquire) != 0) os::futex_wait(&word_, 2);
  }
  ~DumpLock() {
    if (word_.exchange(0, release) == 2) os::futex_wake(&word_);
  }
  DumpLock(const DumpLock&) = delete;
  DumpLock& operator=(const DumpLock&) = delete;

 private:
  static inline constinit atomic<uint32_t> word_{0};
};

bool is_grouped(debug::grouping wanted, size_t goroutines) {
  return wanted == debug::grouping::always ||
         (wanted == debug::grouping::automatic && goroutines > many);
}

G* calling_goroutine() {
  const M* m = current_m();
  return m != nullptr ? m->curg : nullptr;
}

[[gnu::noinline]] void take_in_stopped_world(Snapshot& snapshot, const Snapshot::Wanted& wanted) {
  Caller caller{calling_goroutine(), {}};
  uintptr_t pcs[max_report_frames];
  if (caller.g != nullptr) caller.pcs = {pcs, unwind_here(pcs, 1)};
  M* m = stop_the_world();
  snapshot.take(Snapshot::World::stopped, caller, wanted);
  start_the_world(m);
}

void print_in_report(const Snapshot::Wanted& wanted, const FrameOptions& frames) {
  Snapshot snapshot;
  snapshot.take(Snapshot::World::ends, {calling_goroutine(), {}}, wanted);
  FdWriter out(STDERR_FILENO);
  DumpPrinter(out, snapshot,
              {.grouped = snapshot.goroutines().size() > many,
               .empty_line_before = true,
               .frames = frames,
               .before_each = go_on_reporting})
      .print();
}

}  // namespace

void dump(FdWriter& out, const debug::dump_options& options, const char* why) {
  if (process.forked.load(relaxed)) {
    warn("no dump in the child of a fork(): the goroutines are in its parent");
    return;
  }
  if (process.exiting.load(relaxed)) return;  // a report is being made
  Snapshot snapshot;
  if (process.started.load(acquire)) {
    take_in_stopped_world(
        snapshot, {.traces = options.traces, .waiting_for_ns = options.waiting_for.count()});
  }
  const detail::blocking_call printing(true);
  const DumpLock one_at_a_time;
  const size_t goroutines = snapshot.goroutines().size();
  if (why != nullptr) out.print("%s: %zu goroutines\n", why, goroutines);
  const G* caller = calling_goroutine();
  DumpPrinter(out, snapshot,
              {.grouped = is_grouped(options.group, goroutines),
               .limit = options.limit,
               .first_id = caller != nullptr ? caller->id : 0,
               .empty_line_before = why != nullptr,
               .frames = {}})
      .print();
}

void print_goroutines() { print_in_report({}, {}); }

void print_other_goroutines(bool no_malloc) {
  print_in_report({.without_caller = true}, {.no_malloc = no_malloc});
}

void dump_and_end(const char* heading) {
  Snapshot snapshot;
  const bool stopped = stop_the_world_for_good(stop_limit_ns);
  if (stopped) snapshot.take(Snapshot::World::stopped, {}, {});
  begin_report();
  if (!stopped) snapshot.take(Snapshot::World::ends, {}, {});
  {
    FdWriter out(STDERR_FILENO);
    out.write(heading);
    DumpPrinter(out, snapshot,
                {.grouped = snapshot.goroutines().size() > many,
                 .empty_line_before = true,
                 .frames = {},
                 .before_each = go_on_reporting})
        .print();
  }
  end_report();
}

}  // namespace gofer::internal

namespace gofer::debug {

void dump(int fd, const dump_options& options) {
  internal::FdWriter out(fd);
  internal::dump(out, options);
}

// The stream's code may do anything, so it gets the text when all is done.
void dump(std::ostream& to, const dump_options& options) {
  std::string text;
  {
    internal::FdWriter out(
        [](void* all, std::string_view part) { static_cast<std::string*>(all)->append(part); },
        &text);
    internal::dump(out, options);
  }
  to << text;
}

}  // namespace gofer::debug
