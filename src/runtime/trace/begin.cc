// The world is stopped, and the scheduler's lock is held. So no transition of a goroutine is under
// way in any thread: Ms with a P stand still, and all others change goroutines under the lock. The
// caller is then the only M with a P, each other goroutine that runs is shown as in a system call,
// and gets its P back as soon as the world goes on. The first generation lists everything that
// there is.
#include "runtime/trace/begin.h"

#include "runtime/procs/p_table.h"
#include "runtime/procs/retake.h"
#include "runtime/trace/buffers.h"
#include "runtime/trace/hooks.h"
#include "runtime/trace/session.h"
#include "runtime/trace/stream.h"
#include "runtime/trace/writer.h"

namespace gofer::internal::tracer {
namespace {

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

}  // namespace

void begin_trace(M* caller, uint64_t first) {
  one_sided.store(taking.has_membarrier.load(relaxed), relaxed);
  visit_all(forget_state, nullptr);
  session.failure.store(0, relaxed);
  buffers.bytes.store(0, relaxed);
  session.number.fetch_add(1, relaxed);
  list_all(first, caller);
  list_caller(caller);
  // Whichever thread writes from now on sees what has been listed.
  session.generation.store(first, release);
  procs_changed(caller, p_table.in_use.load(relaxed));
  on.store(true, release);
}

}  // namespace gofer::internal::tracer
