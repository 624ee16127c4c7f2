// The tracer's thread: it ends generations, and writes them to the file or keeps them.
//
// It writes full buffers to the file as they come. It is a foreign thread that holds no lock while
// it writes, and the scheduler does not wait for it. To name functions it allocates; a paused
// goroutine may have the allocator's lock, but it will be given a P, whatever the tracer's thread
// does. What the threads write meanwhile takes memory, up to a limit. Beyond it, or if the file
// cannot be written, the trace ends: the generation that is not complete is left out, so that what
// is in the file stays valid.
//
// A flight recording is a trace whose generations are kept in memory (recorder.h) and not written.
// A call that wants it written ends the open generation, and the thread writes all that are kept.
// Meanwhile the other threads go on with the next generation, which takes memory up to the same
// limit.
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "os/clock.h"
#include "os/futex.h"
#include "os/thread.h"
#include "runtime/report/panic.h"
#include "runtime/trace/buffers.h"
#include "runtime/trace/clock.h"
#include "runtime/trace/generations.h"
#include "runtime/trace/hooks.h"
#include "runtime/trace/session.h"
#include "runtime/trace/tables.h"
#include "runtime/trace/tracer_thread.h"

namespace gofer::internal::tracer {

constinit Control control;

void set_errand(Errand::State state) {
  control.errand.state.store(state, release);
  os::futex_wake(&control.errand.state, 1 << 30);
}

namespace {

constexpr int64_t generation_ns = 1'000'000'000;
constexpr uint64_t generation_bytes = 16u << 20;

bool is_to_end() {
  return control.end_wanted.load(acquire) >= session.number.load(relaxed) ||
         session.failure.load(relaxed) != 0;
}

// --- The file. On the tracer's thread.

// How long the output may stand still: while the trace is recorded, as long as there is memory.
int64_t patience(int64_t since_ns) {
  if (session.failure.load(relaxed) != 0) return 0;
  if (!is_to_end()) return INT64_MAX;
  return std::max(since_ns, control.end_wanted_ns.load(relaxed)) +
         longest_standstill_ns.load(relaxed);
}

void write_bytes(const void* bytes, size_t size) {
  if (session.failure.load(relaxed) != 0) return;
  if (const int error = control.output.write(bytes, size); error != 0) fail(error);
}

void write_full(uint64_t generation) {
  for (Buffer* b = take_full(generation); b != nullptr;) {
    Buffer* next = b->next;
    write_bytes(batch_of(b), batch_size(b));
    give_back(b);
    b = next;
  }
}

// --- The memory. On the tracer's thread.

// An error ends the write and not the recording.
int write_recorder(int fd, bool owned) {
  Output output;
  const auto limit = [](int64_t since_ns) { return since_ns + longest_standstill_ns; };
  int error = output.open(fd, owned, limit);
  if (error == 0) error = control.recorder.write(output);
  if (error != 0) output.cut_incomplete();
  output.close();
  return error;
}

void write_report() {
  char name[longest_file_name];
  const int fd = create_file(control.report_path, name);
  const int error = fd < 0 ? -fd : write_recorder(fd, true);
  if (error != 0) {
    warn("the flight recording cannot be written: %s: %s", name, std::strerror(error));
  } else {
    const auto ms = static_cast<unsigned>(control.recorder.duration_ns() / 1'000'000);
    warn("the last %u.%03u s are in %s", ms / 1000, ms % 1000, name);
  }
}

void finish_errand(int result) {
  control.errand.result = result;
  set_errand(Errand::done);
}

void finish_report() {
  control.report.store(Control::written, release);
  os::futex_wake(&control.report, 1 << 30);
}

// What others want of a recording. It is noted before a generation is closed for it: what is wanted
// after that is about events of the next one, too.
struct Wanted {
  bool errand = control.errand.state.load(acquire) == Errand::asked;
  bool report = control.report.load(acquire) == Control::wanted;
  bool any() const { return errand || report; }
};

void serve(const Wanted& wanted) {
  const Errand& errand = control.errand;
  if (wanted.errand) {
    const bool about_this = is_flight_recording(errand.flight);
    finish_errand(about_this ? write_recorder(errand.fd, errand.owned) : EINVAL);
  }
  if (wanted.report) {
    if (control.in_memory.load(relaxed) && control.report_path[0] != '\0') write_report();
    finish_report();
  }
}

// The same while nothing is recorded. A recording may begin at any moment: serve() does what is
// wanted of that one.
void serve_others() {
  Errand& errand = control.errand;
  if (errand.state.load(acquire) == Errand::asked) {
    if (errand.flight == 0) {
      finish_errand(control.output.open(errand.fd, errand.owned, patience));
    } else if (!is_flight_recording(errand.flight)) {
      finish_errand(EINVAL);
    }
  }
  if (control.report.load(acquire) == Control::wanted && control.state.load(acquire) != recording) {
    finish_report();
  }
}

// --- The tracer's thread.

int64_t longest_generation_ns() {
  return control.in_memory.load(relaxed) ? control.recorder.generation_ns() : generation_ns;
}

bool is_long_enough() {
  const uint64_t limit =
      control.in_memory.load(relaxed) ? control.recorder.generation_bytes() : generation_bytes;
  return buffers.bytes.load(relaxed) >= limit;
}

void write_generation(uint64_t generation) {
  static Used used;
  write_full(generation);
  note_used(generation, used);
  write_tables(used, generation, now(), write_bytes);
  if (session.failure.load(relaxed) == 0) control.output.mark_complete();
}

void end_generation(uint64_t old, uint64_t next) {
  close_generation(next);
  if (!control.in_memory.load(relaxed)) {
    write_generation(old);
  } else if (const int error = control.recorder.keep(old); error != 0) {
    fail(error);
  }
  buffers.bytes.store(0, relaxed);
}

void end_trace(uint64_t open) {
  on.store(false, seq_cst);
  end_generation(open, 0);
  const bool in_memory = control.in_memory.load(relaxed);
  const int failure = session.failure.load(relaxed);
  if (failure != 0) {
    // What was written after the failure is of the same generation.
    drop_full(open);
    drop_full(open + 1);
    if (!in_memory) control.output.cut_incomplete();
    warn("the %s ends early: %s", in_memory ? "flight recording" : "trace", std::strerror(failure));
  }
  if (!in_memory) control.output.close();
  control.recorder.clear();
  release_free_buffers();
  control.last_generation = open;
  control.result.store(failure, relaxed);
  control.untold[in_memory].store(failure, relaxed);
  const uint64_t number = session.number.load(relaxed);
  control.state.store(off, release);  // before a caller of stop can see the end, and begin another
  control.ended.store(number, release);
  control.ends.fetch_add(1, release);
  os::futex_wake(&control.ends, 1 << 30);
}

// Records until the trace is to end.
void record_trace() {
  uint64_t open = session.generation.load(relaxed);
  int64_t next_ns = os::now_ns() + longest_generation_ns();
  for (;;) {
    const int64_t left = next_ns - os::now_ns();
    if (left > 0 && !is_to_end() && !Wanted().any() && !is_long_enough()) session.work.wait(left);
    if (!control.in_memory.load(relaxed)) write_full(open);
    if (is_to_end()) break;
    const Wanted wanted;
    const int64_t time = os::now_ns();
    if (time < next_ns && !is_long_enough() && !wanted.any()) continue;
    end_generation(open, open + 1);
    ++open;
    next_ns = time + longest_generation_ns();
    if (open % generations_between_sweeps == 0) sweep_marks(open);
    serve(wanted);
  }
  end_trace(open);
}

void* thread_main(void*) {
  os::name_thread("gofer-trace");
  control.thread_id.store(os::thread_id(), relaxed);
  for (;;) {
    session.work.wait(-1);
    if (control.state.load(acquire) == recording) record_trace();
    serve_others();
  }
}

}  // namespace

// The thread takes no signals.
int start_thread() {
  if (control.has_thread.load(relaxed)) return 0;
  sigset_t all;
  sigset_t was;
  sigfillset(&all);
  os::set_signal_mask(SIG_SETMASK, &all, &was);
  const int error = os::start_thread(thread_main, nullptr);
  // Not before: for the detector of deadlocks a thread too many is one that may still act, but one
  // too few would hide a thread that does.
  if (error == 0) control.has_thread.store(true, relaxed);
  os::set_signal_mask(SIG_SETMASK, &was, nullptr);
  return error;
}

}  // namespace gofer::internal::tracer
