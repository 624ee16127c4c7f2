#include "runtime/trace/stream.h"

#include <new>

#include "os/clock.h"
#include "os/membarrier.h"
#include "os/memory.h"
#include "os/thread.h"
#include "runtime/threads/m.h"

namespace gofer::internal::tracer {

constinit atomic<bool> one_sided{false};
constinit Stream foreign;
constinit Lock foreign_lock{LockRank::trace_foreign};

namespace {

constinit atomic<uint32_t> visiting{0};  // a lock that begin_visit takes for end_visit

struct Streams {
  Lock lock{LockRank::trace_lists};
  atomic<Stream*> first{nullptr};  // the newest; only ever grows
  char* room = nullptr;            // for the next ones
  size_t left = 0;
};
constinit Streams streams;

// What is asked of all streams must be seen by their Ms, or what these write by the visitor.
void fence() {
  if (!one_sided.load(relaxed)) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return;
  }
  if (os::membarrier()) return;
  // The kernel has come to refuse the call. A store leaves a processor's store buffer within
  // microseconds, and its next load comes after it.
  one_sided.store(false, relaxed);
  os::sleep_ns(1'000'000);
}

void relax(int round) {
  constexpr int spins = 200;
  if (round < spins) {
    cpu_relax();
  } else {
    os::yield_thread();
  }
}

void wait_until_free(const Stream& s) {
  for (int i = 0; s.writing.load(acquire) != 0; ++i) relax(i);
}

Stream* new_stream(M* m) {
  LockGuard guard(streams.lock);
  if (Stream* s = m->stream.load(relaxed); s != nullptr) return s;
  if (streams.left < sizeof(Stream)) {
    void* page = os::reserve(os::page_size);
    if (page == nullptr) return nullptr;
    streams.room = static_cast<char*>(page);
    streams.left = os::page_size;
  }
  auto* s = ::new (streams.room) Stream;
  streams.room += sizeof(Stream);
  streams.left -= sizeof(Stream);
  s->m = m->id;
  s->next = streams.first.load(relaxed);
  streams.first.store(s, release);
  m->stream.store(s, release);
  return s;
}

}  // namespace

void wait_for_visitor(Stream& s) {
  end_writing(s);
  for (int i = 0; s.wanted.load(acquire) != 0; ++i) relax(i);
}

void begin_visit(Stream& s) {
  lock_word(visiting, LockRank::trace_visit);
  s.wanted.store(1, seq_cst);
  fence();
  wait_until_free(s);
}

void end_visit(Stream& s) {
  s.wanted.store(0, release);
  unlock_word(visiting, LockRank::trace_visit);
}

void visit_all(void (*f)(Stream& s, void* arg), void* arg) {
  lock_word(visiting, LockRank::trace_visit);
  // A stream that is added from now on is one whose M reads the generation after this.
  Stream* first;
  {
    LockGuard guard(streams.lock);
    first = streams.first.load(relaxed);
  }
  for (Stream* s = first; s != nullptr; s = s->next) s->wanted.store(1, seq_cst);
  fence();
  for (Stream* s = first; s != nullptr; s = s->next) {
    wait_until_free(*s);
    f(*s, arg);
    s->wanted.store(0, release);
  }
  unlock_word(visiting, LockRank::trace_visit);
  LockGuard guard(foreign_lock);
  f(foreign, arg);
}

Stream* stream_of(M* m) {
  Stream* s = m->stream.load(acquire);
  return s != nullptr ? s : new_stream(m);
}

}  // namespace gofer::internal::tracer
