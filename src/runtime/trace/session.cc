// What other threads do to begin and end a trace: begin.cc has the begin itself, tracer_thread.cc
// what happens until its end.
#include "runtime/trace/session.h"

#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include "os/clock.h"
#include "os/futex.h"
#include "os/thread.h"
#include "runtime/process/start.h"
#include "runtime/procs/stop_world.h"
#include "runtime/sched/sched_lock.h"
#include "runtime/trace/begin.h"
#include "runtime/trace/clock.h"
#include "runtime/trace/hooks.h"
#include "runtime/trace/tracer_thread.h"

namespace gofer::internal::tracer {

constinit Session session;

namespace {

// Has the tracer's thread write: signals such as SIGPIPE would be the caller's.
int run_errand(uint64_t flight, int fd, bool owned) {
  Errand& errand = control.errand;
  uint32_t before = Errand::free;
  while (!errand.state.compare_exchange_strong(before, Errand::taken, acquire)) {
    os::futex_wait(&errand.state, before);
    before = Errand::free;
  }
  errand.flight = flight;
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

int set_up_flight(const Flight& flight) {
  const char* path = flight.report_path != nullptr ? flight.report_path : "";
  if (std::strlen(path) >= sizeof control.report_path) return ENAMETOOLONG;
  std::strcpy(control.report_path, path);
  control.recorder.begin(flight.limits);
  return 0;
}

struct Plan {
  int fd = -1;
  bool owns_fd = false;
  const Flight* flight = nullptr;  // instead of the descriptor
};

// The part of a start that comes before the world has to stop.
int prepare(const Plan& plan) {
  if (!take_state(off, starting)) return EBUSY;
  int error = start_thread();
  if (error == 0) {
    set_clock();
    control.in_memory.store(plan.flight != nullptr, relaxed);
    error =
        plan.flight != nullptr ? set_up_flight(*plan.flight) : run_errand(0, plan.fd, plan.owns_fd);
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

int start_trace(const Plan& plan, uint64_t* number) {
  if (const int error = start_runtime_if_possible(); error != 0) return error;
  if (const int error = prepare(plan); error != 0) return error;
  M* m = stop_the_world();
  {
    LockGuard guard(sched_lock);
    begin_trace(m, control.last_generation + 1);
  }
  start_the_world(m);
  if (number != nullptr) *number = session.number.load(relaxed);
  begin_recording();
  return 0;
}

int start_first_trace(const Plan& plan) {
  if (const int error = prepare(plan); error != 0) return error;
  {
    LockGuard guard(sched_lock);
    begin_trace(nullptr, control.last_generation + 1);
  }
  begin_recording();
  return 0;
}

int end_and_wait(uint64_t number) {
  request_end(number);
  for (;;) {
    const uint32_t ends = control.ends.load(acquire);
    const uint64_t ended = control.ended.load(acquire);
    if (ended > number) return 0;
    if (ended == number) break;
    os::futex_wait(&control.ends, ends);
  }
  control.untold[control.in_memory.load(relaxed)].store(0, relaxed);
  return control.result.load(relaxed);
}

// The number of the trace that is being written to a file, or 0. It is read twice, because another
// trace may begin meanwhile.
uint64_t recorded_to_file() {
  const uint64_t number = session.number.load(acquire);
  return is_recording() && session.number.load(relaxed) == number ? number : 0;
}

// It may have ended by itself.
int result_of_ended(bool in_memory) {
  const int failure = control.untold[in_memory].exchange(0, relaxed);
  return failure != 0 ? failure : EINVAL;
}

}  // namespace

void fail(int error) {
  int none = 0;
  if (session.failure.compare_exchange_strong(none, error, relaxed)) session.work.signal();
}

int start_recording(int fd, bool owns_fd) {
  return start_trace({.fd = fd, .owns_fd = owns_fd}, nullptr);
}

int start_flight(const Flight& flight, uint64_t* number) {
  return start_trace({.flight = &flight}, number);
}

int start_first_recording(int fd) { return start_first_trace({.fd = fd, .owns_fd = true}); }

int start_first_flight(const Flight& flight) { return start_first_trace({.flight = &flight}); }

bool is_recording() {
  return control.state.load(acquire) == recording && !control.in_memory.load(relaxed);
}

bool is_flight_recording(uint64_t number) {
  return control.state.load(acquire) == recording && control.in_memory.load(relaxed) &&
         session.number.load(relaxed) == number;
}

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
  const uint64_t number = recorded_to_file();
  return number != 0 ? end_and_wait(number) : result_of_ended(false);
}

int stop_flight(uint64_t number) {
  if (is_flight_recording(number)) return end_and_wait(number);
  return control.ended.load(acquire) == number ? result_of_ended(true) : EINVAL;
}

int write_flight(uint64_t number, int fd) {
  return is_flight_recording(number) ? run_errand(number, fd, false) : EINVAL;
}

void finish_at_exit(int64_t limit_ns) {
  const uint64_t number = recorded_to_file();
  if (number == 0 || control.thread_id.load(relaxed) == os::thread_id()) return;
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
  constexpr int64_t longest_flight_ns = 10'000'000'000;
  finish_at_exit(longest_ns);
  if (!is_flight_recording(session.number.load(relaxed))) return;
  if (control.thread_id.load(relaxed) == os::thread_id()) return;  // it has failed itself
  uint32_t none = Control::none;
  control.report.compare_exchange_strong(none, Control::wanted, acq_rel);
  session.work.signal();
  const int64_t end = os::now_ns() + longest_flight_ns;
  while (control.report.load(acquire) == Control::wanted) {
    const int64_t left = end - os::now_ns();
    if (left <= 0) return;
    os::futex_wait(&control.report, Control::wanted, left);
  }
}

void forget_in_child() {
  on.store(false, relaxed);
  session.generation.store(0, relaxed);
  control.state.store(off, relaxed);
}

int own_threads() { return control.has_thread.load(relaxed) ? 1 : 0; }

}  // namespace gofer::internal::tracer
