// The global run queue, and the moves between it and the local ones.
#include "runtime/queues.h"

#include "os/thread.h"
#include "runtime/current.h"

namespace gofer::internal {
namespace {

[[gnu::tls_model("initial-exec")]] thread_local constinit bool urgent_thread = false;

void publish_queue_size() {
  sched.urgent_size.store(static_cast<uint32_t>(sched.urgent.count()), relaxed);
  sched.queue_size.store(static_cast<uint32_t>(global_count_locked()), relaxed);
}

// The urgent go first, but not for ever: after so long one of the others gets a turn, however it
// leaves the queue.
constexpr int64_t longest_urgency_ns = 10'000'000;

GQueue& next_queue() {
  if (sched.queue.front() == nullptr) {
    sched.urgent_since_ns = 0;
    return sched.urgent;
  }
  if (sched.urgent.front() == nullptr) return sched.queue;
  const int64_t now = os::now_ns();
  if (sched.urgent_since_ns == 0) sched.urgent_since_ns = now;
  return now - sched.urgent_since_ns < longest_urgency_ns ? sched.urgent : sched.queue;
}

G* pop_global() {
  GQueue& queue = next_queue();
  if (&queue == &sched.queue) sched.urgent_since_ns = 0;
  return queue.pop_front();
}

}  // namespace

bool put_overflow(P* p, G* g) {
  G* batch[decltype(p->queue)::capacity / 2 + 1];
  const uint32_t n = p->queue.take_half_of_full(batch);
  if (n == 0) return false;
  GQueue list;
  for (uint32_t i = 0; i < n; ++i) list.push_back(batch[i]);
  list.push_back(g);
  LockGuard guard(sched.lock);
  sched.queue.append(list);
  publish_queue_size();
  return true;
}

size_t global_count_locked() { return sched.urgent.count() + sched.queue.count(); }

void make_thread_urgent() { urgent_thread = true; }

void put_global(G* g) {
  LockGuard guard(sched.lock);
  if (urgent_thread) {
    sched.urgent.push_back(g);
    publish_queue_size();
    return;
  }
  put_global_locked(g);
}

void put_global_locked(G* g) {
  sched.queue.push_back(g);
  publish_queue_size();
}

void put_global_front(G* g) {
  LockGuard guard(sched.lock);
  put_global_front_locked(g);
}

void put_global_front_locked(G* g) {
  sched.queue.push_front(g);
  sched.passes_left = 0;
  publish_queue_size();
}

void put_global_locked(GQueue& list, bool urgent) {
  for (G* g = list.front(); g != nullptr; g = g->link) {
    set_status(g, GStatus::waiting, GStatus::runnable);
  }
  (urgent ? sched.urgent : sched.queue).append(list);
  publish_queue_size();
}

void put_local(P* p, GQueue& list) {
  const bool share = list.count() > 1;
  while (G* g = list.pop_front()) {
    set_status(g, GStatus::waiting, GStatus::runnable);
    put_local(p, g, false);
  }
  if (share) wake_p();
}

G* take_global(P* p, uint32_t max) {
  const auto size = static_cast<uint32_t>(global_count_locked());
  if (size == 0) return nullptr;
  uint32_t n = size / static_cast<uint32_t>(sched.procs.load(relaxed)) + 1;
  constexpr uint32_t half_ring = decltype(p->queue)::capacity / 2;
  if (n > size) n = size;
  if (n > half_ring) n = half_ring;
  if (max != 0 && n > max) n = max;
  if (sched.gm) n = 1;
  G* first = pop_global();
  for (uint32_t i = 1; i < n; ++i) {
    // A locked one is best left where every P finds it: it must go to its own thread from there.
    if (next_queue().front()->locked()) break;
    G* g = pop_global();
    __builtin_prefetch(g->closure);  // it runs soon, and may have waited in memory for long
    p->queue.put(g);
  }
  publish_queue_size();
  return first;
}

G* take_global_if(bool (*wanted)(G* g, void* arg), void* arg) {
  G* g = sched.urgent.take_if(wanted, arg);
  if (g == nullptr) {
    g = sched.queue.take_if(wanted, arg);
    if (g != nullptr) sched.urgent_since_ns = 0;
  }
  publish_queue_size();
  return g;
}

// The kernel wakes a thread on the core where it was last, if that one and the waker's are both
// busy. There it shares the core with another P's goroutine, while the waker's core, whose P it
// got, becomes idle: about a millisecond, until the kernel moves one of them. So threads stay on
// their cores if they can. Nobody waits long for that: it looks only at as many goroutines as there
// are Ps, from the first that is tied on, and that one is passed over only as often; not at all if
// it was put in front. The caller's own goroutine, if it was paused, is behind all others.
G* take_tied_locked() {
  const M* caller = current_m();
  const int cpu = os::current_cpu();
  const int most = sched.procs.load(relaxed);
  int looks = sched.passes_left > 0 ? most : 1;
  G* first = nullptr;
  G* chosen = nullptr;
  for (G* g = sched.queue.front(); g != nullptr && looks > 0 && chosen == nullptr; g = g->link) {
    if (g->tied()) {
      if (first == nullptr) first = g;
      const M* m = g->head->locked_m;
      if (m->last_cpu == cpu && m != caller) chosen = g;
    }
    if (first != nullptr) --looks;
  }
  if (chosen == nullptr) chosen = first;
  if (chosen == nullptr) return nullptr;
  sched.passes_left = chosen == first ? most : sched.passes_left - 1;
  return take_global_if([](G* g, void* chosen) { return g == chosen; }, chosen);
}

G* next_global_locked() { return next_queue().front(); }

void drain_local_locked(P* p) {
  bool inherits;
  while (G* g = take_local(p, inherits)) sched.queue.push_back(g);
  publish_queue_size();
}

}  // namespace gofer::internal
