// A trace from its begin to its end.
//
// Begin: begin.cc. End of a generation, after a second or 16 MB: generations.cc. End of the trace:
// the generation becomes 0 as if that were the next one.
//
// The tracer's thread writes full buffers to the file as they come. It is a foreign thread that
// holds no lock while it writes, and the scheduler does not wait for it. To name functions it
// allocates; a paused goroutine may have the allocator's lock, but it will be given a P, whatever
// the tracer's thread does. What the threads write meanwhile takes memory, up to a limit. Beyond
// it, or if the file cannot be written, the trace ends: the generation that is not complete is left
// out, so that what is in the file stays valid.
//
// What other threads ask of the tracer's thread names the trace that it is about, because a trace
// may end by itself at any moment, and another one begin.
#include "runtime/trace/session.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include "debug/fd_writer.h"
#include "os/clock.h"
#include "os/thread.h"
#include "runtime/process/start.h"
#include "runtime/procs/current.h"
#include "runtime/procs/stop_world.h"
#include "runtime/report/panic.h"
#include "runtime/sched/sched_lock.h"
#include "runtime/trace/begin.h"
#include "runtime/trace/clock.h"
#include "runtime/trace/generations.h"
#include "runtime/trace/hooks.h"
#include "runtime/trace/output.h"
#include "runtime/trace/tables.h"

namespace gofer::internal::tracer {

constinit Session session;

namespace {

constexpr int64_t generation_ns = 1'000'000'000;
constexpr uint64_t generation_bytes = 16u << 20;

enum State : uint32_t { off, starting, recording };

// What the tracer's thread does for another one, which waits for it. One at a time.
struct Errand {
  enum State : uint32_t { free, taken, asked, done };
  atomic<uint32_t> state{free};  // a futex
  // Of the thread that has taken it; while it is asked for, of the tracer's thread.
  int fd = -1;
  bool owned = false;
  int result = 0;  // an errno value
};

struct Control {
  atomic<uint32_t> state{off};
  atomic<bool> has_thread{false};
  Errand errand;

  atomic<uint64_t> end_wanted{0};    // the greatest number of a trace that was to end
  atomic<int64_t> end_wanted_ns{0};  // when that was
  atomic<uint32_t> ends{0};          // traces that have ended; a futex
  atomic<uint64_t> ended{0};         // the number of the last one
  atomic<int> result{0};             // of the last one
  atomic<int> untold{0};             // the same until it is told to a caller

  // Of the thread that has the state, which is the tracer's while a trace is recorded.
  uint64_t last_generation = 0;  // of all traces
  Output output;
};
constinit Control control;

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

// --- The tracer's thread.

void end_generation(uint64_t old, uint64_t next) {
  close_generation(next);
  write_full(old);
  static Used used;
  note_used(old, used);
  write_tables(used, old, now(), write_bytes);
  buffers.bytes.store(0, relaxed);
  if (session.failure.load(relaxed) == 0) control.output.mark_complete();
}

void end_trace(uint64_t open) {
  on.store(false, seq_cst);
  end_generation(open, 0);
  const int failure = session.failure.load(relaxed);
  if (failure != 0) {
    // What was written after the failure is of the same generation.
    drop_full(open);
    drop_full(open + 1);
    control.output.cut_incomplete();
    warn("the trace ends early: %s", std::strerror(failure));
  }
  control.output.close();
  release_free_buffers();
  control.last_generation = open;
  control.result.store(failure, relaxed);
  control.untold.store(failure, relaxed);
  control.ended.store(session.number.load(relaxed), release);
  control.state.store(off, release);
  control.ends.fetch_add(1, release);
  os::futex_wake(&control.ends, 1 << 30);
}

// Records until the trace is to end.
void record_trace() {
  uint64_t open = session.generation.load(relaxed);
  int64_t next_ns = os::now_ns() + generation_ns;
  for (;;) {
    const int64_t left = next_ns - os::now_ns();
    if (left > 0 && !is_to_end() && buffers.bytes.load(relaxed) < generation_bytes) {
      session.work.wait(left);
    }
    write_full(open);
    if (is_to_end()) break;
    const int64_t time = os::now_ns();
    if (time < next_ns && buffers.bytes.load(relaxed) < generation_bytes) continue;
    end_generation(open, open + 1);
    ++open;
    next_ns = time + generation_ns;
    if (open % generations_between_sweeps == 0) sweep_marks(open);
  }
  end_trace(open);
}

void set_errand(Errand::State state) {
  control.errand.state.store(state, release);
  os::futex_wake(&control.errand.state, 1 << 30);
}

void serve_errand() {
  Errand& errand = control.errand;
  if (errand.state.load(acquire) != Errand::asked) return;
  errand.result = control.output.open(errand.fd, errand.owned, patience);
  set_errand(Errand::done);
}

void* thread_main(void*) {
  os::name_thread("gofer-trace");
  for (;;) {
    session.work.wait(-1);
    serve_errand();
    if (control.state.load(acquire) == recording) record_trace();
  }
}

// --- Other threads.

// Once. The thread takes no signals.
int start_thread() {
  if (control.has_thread.load(relaxed)) return 0;
  sigset_t all;
  sigset_t was;
  sigfillset(&all);
  os::set_signal_mask(SIG_SETMASK, &all, &was);
  control.has_thread.store(true, relaxed);  // before the detector of deadlocks can count it
  const int error = os::start_thread(thread_main, nullptr);
  if (error != 0) control.has_thread.store(false, relaxed);
  os::set_signal_mask(SIG_SETMASK, &was, nullptr);
  return error;
}

// Lets the tracer's thread write the header: a signal such as SIGPIPE would be the caller's.
int open_output(int fd, bool owned) {
  Errand& errand = control.errand;
  uint32_t before = Errand::free;
  while (!errand.state.compare_exchange_strong(before, Errand::taken, acquire)) {
    os::futex_wait(&errand.state, before);
    before = Errand::free;
  }
  errand.fd = fd;
  errand.owned = owned;
  set_errand(Errand::asked);
  session.work.signal();
  while (errand.state.load(acquire) != Errand::done) {
    os::futex_wait(&errand.state, Errand::asked);
  }
  const int result = errand.result;
  set_errand(Errand::free);
  return result;
}

bool take_state(State from, State to) {
  uint32_t expected = from;
  return control.state.compare_exchange_strong(expected, to, acq_rel);
}

// The part of a start that comes before the world has to stop.
int prepare(int fd, bool owns_fd) {
  if (!take_state(off, starting)) return EBUSY;
  int error = start_thread();
  if (error == 0) {
    set_clock();
    error = open_output(fd, owns_fd);
  }
  if (error != 0) control.state.store(off, release);
  return error;
}

void begin_recording() {
  control.state.store(recording, release);
  session.work.signal();
}

// ensure_started, which throws.
int start_runtime_if_possible() {
  try {
    ensure_started();
  } catch (const std::system_error& error) {
    return error.code().value();
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
  return 0;
}

}  // namespace

void fail(int error) {
  int none = 0;
  if (session.failure.compare_exchange_strong(none, error, relaxed)) session.work.signal();
}

int start_recording(int fd, bool owns_fd) {
  if (const int error = start_runtime_if_possible(); error != 0) return error;
  if (const int error = prepare(fd, owns_fd); error != 0) return error;
  M* m = stop_the_world();
  {
    LockGuard guard(sched_lock);
    begin_trace(m, control.last_generation + 1);
  }
  start_the_world(m);
  begin_recording();
  return 0;
}

int start_first_recording(int fd) {
  if (const int error = prepare(fd, true); error != 0) return error;
  {
    LockGuard guard(sched_lock);
    begin_trace(nullptr, control.last_generation + 1);
  }
  begin_recording();
  return 0;
}

bool is_recording() { return control.state.load(acquire) == recording; }

void request_end(uint64_t number) {
  uint64_t before = control.end_wanted.load(relaxed);
  if (before >= number) return;
  control.end_wanted_ns.store(os::now_ns(), relaxed);
  while (before < number &&
         !control.end_wanted.compare_exchange_weak(before, number, release, relaxed)) {
  }
  session.work.signal();
}

int stop_recording() {
  if (control.state.load(acquire) != recording) {
    // It may have ended by itself.
    const int failure = control.untold.exchange(0, relaxed);
    return failure != 0 ? failure : EINVAL;
  }
  const uint64_t number = session.number.load(relaxed);
  request_end(number);
  for (;;) {
    const uint32_t ends = control.ends.load(acquire);
    const uint64_t ended = control.ended.load(acquire);
    if (ended > number) return 0;
    if (ended == number) break;
    os::futex_wait(&control.ends, ends);
  }
  control.untold.store(0, relaxed);
  return control.result.load(relaxed);
}

void finish_at_exit(int64_t limit_ns) {
  if (control.state.load(acquire) != recording) return;
  const uint64_t number = session.number.load(relaxed);
  request_end(number);
  const int64_t end = os::now_ns() + limit_ns;
  for (;;) {
    const uint32_t ends = control.ends.load(acquire);
    const int64_t left = end - os::now_ns();
    if (left <= 0 || control.ended.load(acquire) >= number) return;
    os::futex_wait(&control.ends, ends, left);
  }
}

void finish_at_report() {
  constexpr int64_t longest_ns = 2'000'000'000;
  finish_at_exit(longest_ns);
}

void forget_in_child() {
  on.store(false, relaxed);
  session.generation.store(0, relaxed);
  control.state.store(off, relaxed);
}

int own_threads() { return control.has_thread.load(relaxed) ? 1 : 0; }

}  // namespace gofer::internal::tracer
