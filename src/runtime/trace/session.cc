// A trace from its begin to its end.
//
// Begin. The world is stopped, and the scheduler's lock is held. So no transition of a goroutine is
// under way in any thread: Ms with a P stand still, and all others change goroutines under the
// lock. The caller is then the only M with a P, each other goroutine that runs is shown as in a
// system call, and gets its P back as soon as the world goes on. The first generation lists
// everything that there is.
//
// End of a generation, after a second or 16 MB: stream.h tells why nobody has to be stopped. The
// next generation mentions a goroutine when something happens to it.
//
// End. The generation becomes 0 as if that were the next one.
//
// The tracer's thread writes full buffers to the file as they come. It is a foreign thread that
// holds no lock while it writes, and the scheduler does not wait for it. To name functions it
// allocates; a paused goroutine may have the allocator's lock, but it will be given a P, whatever
// the tracer's thread does. What the threads write meanwhile takes memory, up to a limit. Beyond
// it, or if the file cannot be written, the trace ends: the generation that is not complete is left
// out, so that what is in the file stays valid.
#include "runtime/trace/session.h"

#include <signal.h>

#include <cerrno>
#include <cstring>

#include "debug/fd_writer.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/memory.h"
#include "os/process.h"
#include "os/thread.h"
#include "runtime/process/start.h"
#include "runtime/procs/current.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/retake.h"
#include "runtime/procs/stop_world.h"
#include "runtime/report/panic.h"
#include "runtime/sched/sched_lock.h"
#include "runtime/threads/m_table.h"
#include "runtime/trace/hooks.h"
#include "runtime/trace/tables.h"
#include "runtime/trace/writer.h"

namespace gofer::internal::tracer {

constinit Session session;

namespace {

constexpr int64_t generation_ns = 1'000'000'000;
constexpr uint64_t generation_bytes = 16u << 20;
constexpr uint64_t generations_between_sweeps = marks / 4;

enum State : uint32_t { off, starting, recording, stopping };

struct Control {
  atomic<uint32_t> state{off};
  atomic<bool> stop_wanted{false};
  atomic<uint32_t> ends{0};  // traces that have ended; a futex
  atomic<int> result{0};     // of the last one
  atomic<bool> has_thread{false};

  // Of the thread that has the state, which is the tracer's while a trace is recorded.
  uint64_t last_generation = 0;  // of all traces
  int fd = -1;
  bool owns_fd = false;
  int64_t written = 0;   // bytes
  int64_t complete = 0;  // of them, those of generations that are complete
};
constinit Control control;

// --- Buffers.

Buffer* take_free() {
  LockGuard guard(session.lists);
  Buffer* b = session.free;
  if (b != nullptr) session.free = b->next;
  return b;
}

Buffer* new_buffer() {
  {
    LockGuard guard(session.lists);
    if (session.buffers == most_buffers) return nullptr;
    ++session.buffers;
  }
  return static_cast<Buffer*>(os::reserve(Buffer::size));
}

// Writes the batch's head in front of its data.
void write_head(Buffer* b) {
  uint8_t head[2 + 4 * longest_varint];
  uint8_t* at = head;
  *at++ = b->records ? experimental_batch : event_batch;
  if (b->records) *at++ = gofer_experiment;
  at = put_varint(at, b->generation);
  at = put_varint(at, b->m);
  at = put_varint(at, b->first_time);
  at = put_varint(at, b->used);
  b->head = static_cast<uint32_t>(at - head);
  std::memcpy(b->data() - b->head, head, b->head);
}

// --- The file.

void write_bytes(const void* bytes, size_t size) {
  const auto* at = static_cast<const char*>(bytes);
  while (size != 0 && session.failure.load(relaxed) == 0) {
    const ssize_t n = os::write(control.fd, at, size);
    if (n == -EINTR) continue;
    if (n <= 0) {
      fail(n == 0 ? EIO : static_cast<int>(-n));
      return;
    }
    at += n;
    size -= static_cast<size_t>(n);
    control.written += n;
  }
}

Buffer* take_full(uint64_t generation) {
  LockGuard guard(session.lists);
  BufferList& list = session.full[generation & 1];
  Buffer* first = list.first;
  list = BufferList{};
  return first;
}

void give_back(Buffer* b) {
  LockGuard guard(session.lists);
  b->next = session.free;
  session.free = b;
}

void write_full(uint64_t generation) {
  for (Buffer* b = take_full(generation); b != nullptr;) {
    Buffer* next = b->next;
    write_bytes(b->data() - b->head, b->head + b->used);
    give_back(b);
    b = next;
  }
}

// --- Generations. On the tracer's thread.

// Fetches what a stream has of an old generation.
void collect(Stream& s, void* generation) {
  const uint64_t now_open = *static_cast<uint64_t*>(generation);
  for (Buffer** b : {&s.events, &s.records}) {
    if (*b == nullptr || (*b)->generation == now_open) continue;
    retire(*b);
    *b = nullptr;
  }
}

// The marks of goroutines that were not mentioned for long must not pass for marks of a generation
// to come.
void sweep_marks(uint64_t generation) {
  struct Recent {
    uint32_t marks[2];
  } recent{{mark_of(generation), mark_of(generation + 1)}};
  for_each_g(
      [](G* g, void* arg) {
        uint32_t word = g->trace.load(relaxed);
        for (uint32_t mark : static_cast<Recent*>(arg)->marks) {
          if ((word & ~count_mask) == mark) return;
        }
        // If the goroutine is mentioned at this moment, that is what counts.
        g->trace.compare_exchange_strong(word, 0, relaxed);
      },
      &recent);
}

// The generation `old` is followed by `next`, or by nothing.
void end_generation(uint64_t old, uint64_t next) {
  session.generation.store(next, seq_cst);
  visit_all(collect, &next);
  collect_texts(next);
  write_full(old);
  write_tables(old, now(), write_bytes);
  session.bytes.store(0, relaxed);
  if (session.failure.load(relaxed) == 0) control.complete = control.written;
}

void end_trace(uint64_t open) {
  on.store(false, seq_cst);
  end_generation(open, 0);
  const int failure = session.failure.exchange(0, relaxed);
  if (failure != 0) {
    // What was written after the failure is of the same generation.
    for (uint64_t generation : {open, open + 1}) {
      for (Buffer* b = take_full(generation); b != nullptr;) {
        Buffer* next = b->next;
        give_back(b);
        b = next;
      }
    }
    os::truncate(control.fd, control.complete);
    warn("the trace ends early: %s", std::strerror(failure));
  }
  if (control.owns_fd) os::close(control.fd);
  control.last_generation = open;
  control.result.store(failure, relaxed);
  control.stop_wanted.store(false, relaxed);
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
    if (left > 0 && !control.stop_wanted.load(acquire) && session.failure.load(relaxed) == 0 &&
        session.bytes.load(relaxed) < generation_bytes) {
      session.work.wait(left);
    }
    write_full(open);
    if (control.stop_wanted.load(acquire) || session.failure.load(relaxed) != 0) break;
    const int64_t time = os::now_ns();
    if (time < next_ns && session.bytes.load(relaxed) < generation_bytes) continue;
    end_generation(open, open + 1);
    ++open;
    next_ns = time + generation_ns;
    if (open % generations_between_sweeps == 0) sweep_marks(open);
  }
  end_trace(open);
}

void* thread_main(void*) {
  os::name_thread("gofer-trace");
  for (;;) {
    session.work.wait(-1);
    if (control.state.load(acquire) == recording) record_trace();
  }
}

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

// --- The begin. The world is stopped and the scheduler's lock is held, or there are no Ms yet.

void forget_state(Stream& s, void*) {
  s.p = nullptr;
  s.g = nullptr;
  s.in_call = false;
  s.stopped_world = false;
}

struct Listing {
  Writer& w;
  const M* caller;
};

void list_goroutine(G* g, void* arg) {
  auto& [w, caller] = *static_cast<Listing*>(arg);
  g->trace.store(0, relaxed);  // a mark of an old trace may look like one of this
  const GStatus status = g->status.load(acquire);
  if (status == GStatus::dead || status == GStatus::idle) return;
  if (caller != nullptr && g == caller->curg) return;
  if (status == GStatus::waiting || status == GStatus::copystack) {
    w.mention_old(g, GoStatus::waiting);
    return;
  }
  M* m = status == GStatus::running ? g->m() : nullptr;
  Stream* s = m != nullptr && m->curg == g ? stream_of(m) : nullptr;
  if (s == nullptr) {
    w.mention_old(g, GoStatus::runnable);
    return;
  }
  s->g = g;
  s->in_call = true;
  w.mention_old(g, GoStatus::in_call, s->m);
}

void list_all(uint64_t generation, M* caller) {
  LockGuard guard(foreign_lock);
  Writer w(foreign, generation);
  for (P* p : ps_ever()) {
    if (caller == nullptr || p != caller->p) w.mention(p, ProcStatus::idle);
  }
  Listing listing{w, caller};
  for_each_g(list_goroutine, &listing);
}

void list_caller(M* m) {
  Stream* s = m != nullptr ? stream_of(m) : nullptr;
  if (s == nullptr) return;
  s->p = m->p;
  s->g = m->curg;
  s->stated_in = 0;
}

void begin_trace(M* caller) {
  one_sided.store(taking.has_membarrier.load(relaxed), relaxed);
  visit_all(forget_state, nullptr);
  session.failure.store(0, relaxed);
  session.bytes.store(0, relaxed);
  session.number.fetch_add(1, relaxed);
  const uint64_t first = control.last_generation + 1;
  list_all(first, caller);
  list_caller(caller);
  // Whichever thread writes from now on sees what has been listed.
  session.generation.store(first, release);
  procs_changed(caller, p_table.in_use.load(relaxed));
  on.store(true, release);
}

// The part of a start that comes before the world has to stop. An errno value.
int prepare(int fd, bool owns_fd) {
  if (const int error = start_thread(); error != 0) return error;
  set_clock();
  control.fd = fd;
  control.owns_fd = owns_fd;
  control.written = 0;
  control.complete = 0;
  const ssize_t n = os::write(fd, header, sizeof header);
  if (n != sizeof header) return n < 0 ? static_cast<int>(-n) : ENOSPC;
  control.written = control.complete = sizeof header;
  return 0;
}

bool take_state(State from, State to) {
  uint32_t expected = from;
  return control.state.compare_exchange_strong(expected, to, acq_rel);
}

void begin_recording() {
  control.state.store(recording, release);
  session.work.signal();
}

}  // namespace

Buffer* next_buffer(uint64_t m, Buffer* full, uint64_t generation, uint64_t time) {
  if (full != nullptr) retire(full);
  Buffer* b = take_free();
  if (b == nullptr) b = new_buffer();
  if (b == nullptr) {
    fail(ENOBUFS);
    return nullptr;
  }
  b->generation = generation;
  b->first_time = b->last_time = time;
  b->m = m;
  b->used = 0;
  b->records = false;
  return b;
}

void retire(Buffer* b) {
  write_head(b);
  b->next = nullptr;
  {
    LockGuard guard(session.lists);
    BufferList& list = session.full[b->generation & 1];
    if (list.last != nullptr) {
      list.last->next = b;
    } else {
      list.first = b;
    }
    list.last = b;
  }
  session.bytes.fetch_add(b->used, relaxed);
  session.work.signal();
}

void fail(int error) {
  int none = 0;
  if (session.failure.compare_exchange_strong(none, error, relaxed)) session.work.signal();
}

void Writer::write_state() {
  s_.stated_in = generation_;
  if (s_.p != nullptr) {
    mention(s_.p, s_.in_call ? ProcStatus::in_call : ProcStatus::running);
  }
  if (s_.g != nullptr) mention(s_.g, s_.in_call ? GoStatus::in_call : GoStatus::running, s_.m);
}

void Writer::begin_records(Buffer* b) {
  b->records = true;
  b->data()[0] = gofer_records_version;
  b->used = 1;
}

void Writer::fail_for_count() { fail(EOVERFLOW); }

int start_recording(int fd, bool owns_fd) {
  ensure_started();
  if (!take_state(off, starting)) return EBUSY;
  if (const int error = prepare(fd, owns_fd); error != 0) {
    control.state.store(off, release);
    return error;
  }
  M* m = stop_the_world();
  {
    LockGuard guard(sched_lock);
    begin_trace(m);
  }
  start_the_world(m);
  begin_recording();
  return 0;
}

int stop_recording() {
  const uint32_t ends = control.ends.load(acquire);
  if (control.state.load(acquire) != recording) {
    // It may have ended by itself.
    const int failure = control.result.exchange(0, relaxed);
    return failure != 0 ? failure : EINVAL;
  }
  control.stop_wanted.store(true, release);
  session.work.signal();
  while (control.ends.load(acquire) == ends) os::futex_wait(&control.ends, ends);
  return control.result.exchange(0, relaxed);
}

void start_from_environment(const char* path) {
  char name[4096];
  size_t used = 0;
  for (const char* at = path; *at != '\0' && used + 16 < sizeof name; ++at) {
    if (at[0] == '%' && at[1] == 'p') {
      used += static_cast<size_t>(snprintf(name + used, 16, "%d", os::process_id()));
      ++at;
    } else {
      name[used++] = *at;
    }
  }
  name[used] = '\0';
  const int fd = os::create(name);
  int error = fd < 0 ? -fd : 0;
  if (error == 0 && take_state(off, starting)) {
    error = prepare(fd, true);
    if (error == 0) {
      LockGuard guard(sched_lock);
      begin_trace(nullptr);
    } else {
      control.state.store(off, release);
    }
  }
  if (error != 0) {
    warn("GOFER_TRACE: %s: %s", name, std::strerror(error));
    if (fd >= 0) os::close(fd);
    return;
  }
  begin_recording();
}

void finish_at_exit(int64_t limit_ns) {
  const uint32_t ends = control.ends.load(acquire);
  if (control.state.load(acquire) != recording) return;
  control.stop_wanted.store(true, release);
  session.work.signal();
  const int64_t end = os::now_ns() + limit_ns;
  for (;;) {
    const int64_t left = end - os::now_ns();
    if (left <= 0 || control.ends.load(acquire) != ends) return;
    os::futex_wait(&control.ends, ends, left);
  }
}

void forget_in_child() {
  on.store(false, relaxed);
  session.generation.store(0, relaxed);
  control.state.store(off, relaxed);
}

int own_threads() { return control.has_thread.load(relaxed) ? 1 : 0; }

}  // namespace gofer::internal::tracer
