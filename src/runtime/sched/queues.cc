// The global run queue, and the moves between it and the local ones.
#include "runtime/sched/queues.h"

#include "os/thread.h"
#include "runtime/procs/current.h"
#include "runtime/procs/thread_gate.h"

namespace gofer::internal {
namespace {

[[gnu::tls_model("initial-exec")]] thread_local constinit bool urgent_thread = false;

void publish_queue_size() GOFER_REQUIRES(sched.lock) {
  sched.urgent_size.store(static_cast<uint32_t>(sched.urgent.count()), relaxed);
  sched.untried_size.store(static_cast<uint32_t>(sched.untried.count()), relaxed);
  sched.spinner_waits.store(sched.tied_spinning != 0 && has_unspinning_tied_locked(), relaxed);
  sched.most_tied_spin.store(2 * sched.tied_spinning > sched.tied_queue.count(), relaxed);
  sched.tied_size.store(static_cast<uint32_t>(sched.tied_queue.count()), relaxed);
  sched.queue_size.store(static_cast<uint32_t>(global_count_locked()), relaxed);
}

// The urgent go first, but not for ever: after so long one of the others gets a turn, an untried
// one or an ordinary one by turns, however it leaves the queue.
constexpr int64_t longest_urgency_ns = 10'000'000;

// One FIFO in two lists: a tied goroutine comes before all that were put there after it. While they
// crowd they are taken by take_tied_locked, and others only from here.
GQueue& next_ordinary() GOFER_REQUIRES(sched.lock) {
  const G* tied = sched.tied_queue.front();
  if (tied == nullptr) return sched.queue;
  if (crowded()) {
    if (sched.untried.front() != nullptr) return sched.untried;
    return sched.queue.front() != nullptr ? sched.queue : sched.tied_queue;
  }
  if (sched.queue.front() == nullptr) return sched.tied_queue;
  const uint64_t gone = sched.queue_pushed - sched.queue.count();
  return tied->head->own_m->tied_at <= gone ? sched.tied_queue : sched.queue;
}

GQueue& first_queue() GOFER_REQUIRES(sched.lock) {
  if (sched.urgent.front() != nullptr) return sched.urgent;
  GQueue& ordinary = next_ordinary();
  const bool untried =
      sched.untried.front() != nullptr && (untried_have_place() || ordinary.front() == nullptr);
  return untried ? sched.untried : ordinary;
}

// Not a fresh one while tied ones crowd.
GQueue& last_queue() GOFER_REQUIRES(sched.lock) {
  const bool full = crowded() && sched.tied_queue.front() != nullptr;
  GQueue& ordinary = full ? sched.tied_queue : next_ordinary();
  if (ordinary.front() != nullptr) return ordinary;
  return sched.untried.front() != nullptr ? sched.untried : sched.urgent;
}

// Not empty if any is not.
GQueue& next_queue() GOFER_REQUIRES(sched.lock) {
  if (sched.urgent.front() == nullptr && sched.untried.front() == nullptr) {
    sched.urgent_since_ns = 0;
    return next_ordinary();
  }
  GQueue& first = first_queue();
  GQueue& last = last_queue();
  const bool urgent = &first == &sched.urgent || &first == &sched.untried;
  if (!urgent || &first == &last) {
    sched.urgent_since_ns = 0;
    return first;
  }
  const int64_t now = os::now_ns();
  if (sched.urgent_since_ns == 0) sched.urgent_since_ns = now;
  if (now - sched.urgent_since_ns < longest_urgency_ns) return first;
  const bool untried_waits = &first == &sched.urgent && sched.untried.front() != nullptr;
  return untried_waits && sched.untrieds_turn ? sched.untried : last;
}

void note_untied(const G* g) GOFER_REQUIRES(sched.lock) {
  if (g->head->own_m->spins) --sched.tied_spinning;
}

G* pop_global() GOFER_REQUIRES(sched.lock) {
  GQueue& queue = next_queue();
  if (&queue != &first_queue()) {
    sched.urgent_since_ns = 0;
    sched.untrieds_turn = &queue != &sched.untried;
  }
  G* g = queue.pop_front();
  if (&queue == &sched.tied_queue) note_untied(g);
  return g;
}

// Of those that were woken some may turn out to compute: the others do not wait behind them.
void push_urgent(G* g) { (g->is_short() ? sched.urgent : sched.untried).push_back(g); }

}  // namespace

bool put_overflow(P* p, G* g) {
  G* batch[decltype(p->queue)::capacity / 2 + 1];
  const uint32_t n = p->queue.take_half_of_full(batch);
  if (n == 0) return false;
  GQueue list;
  for (uint32_t i = 0; i < n; ++i) list.push_back(batch[i]);
  list.push_back(g);
  LockGuard guard(sched.lock);
  sched.queue_pushed += list.count();
  sched.queue.append(list);
  publish_queue_size();
  return true;
}

size_t global_count_locked() {
  return sched.urgent.count() + sched.untried.count() + sched.queue.count() +
         sched.tied_queue.count();
}

UrgentThread::UrgentThread() { urgent_thread = true; }
UrgentThread::~UrgentThread() { urgent_thread = false; }

namespace {

void put_by_thread_locked(G* g) GOFER_REQUIRES(sched.lock) {
  if (urgent_thread) {
    push_urgent(g);
    publish_queue_size();
    return;
  }
  put_global_locked(g);
}

}  // namespace

void put_global(G* g) {
  LockGuard guard(sched.lock);
  put_by_thread_locked(g);
}

void ready_globally(G* g) {
  LockGuard guard(sched.lock);
  transition::readied(nullptr, g);
  put_by_thread_locked(g);
}

void create_globally(G* g) {
  LockGuard guard(sched.lock);
  transition::created(nullptr, g);
  put_by_thread_locked(g);
}

void put_global_locked(G* g) {
  ++sched.queue_pushed;
  sched.queue.push_back(g);
  publish_queue_size();
}

void put_global_front(G* g) {
  LockGuard guard(sched.lock);
  put_global_front_locked(g);
}

void put_global_front_locked(G* g) {
  sched.queue.push_front(g);
  publish_queue_size();
}

void put_tied_locked(G* g, bool front) {
  M* m = g->head->own_m;
  m->tied_at = front ? 0 : sched.queue_pushed;
  if (m->spins) ++sched.tied_spinning;
  if (front) {
    sched.tied_queue.push_front(g);
    sched.passes_left = 0;
  } else {
    sched.tied_queue.push_back(g);
  }
  publish_queue_size();
}

void put_global_locked(M* by, GQueue& list, bool urgent) {
  while (G* g = list.pop_front()) {
    transition::readied(by, g);
    if (urgent) {
      push_urgent(g);
    } else {
      ++sched.queue_pushed;
      sched.queue.push_back(g);
    }
  }
  publish_queue_size();
}

void put_local(M* m, GQueue& list) {
  const bool share = list.count() > 1;
  while (G* g = list.pop_front()) {
    transition::readied(m, g);
    put_local(m->p, g, false);
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
    if (next_queue().front()->has_own_m()) break;
    G* g = pop_global();
    __builtin_prefetch(g->closure);  // it runs soon, and may have waited in memory for long
    p->queue.put(g);
  }
  publish_queue_size();
  return first;
}

G* take_tied_if(bool (*wanted)(G* g, void* arg), void* arg) {
  G* g = sched.tied_queue.take_if(wanted, arg);
  if (g != nullptr) {
    sched.urgent_since_ns = 0;
    note_untied(g);
  }
  publish_queue_size();
  return g;
}

namespace {

// The kernel wakes a thread on the core where it was last, if that one and the waker's are both
// busy. There it shares the core with another P's goroutine, while the waker's core, whose P it
// got, becomes idle: about a millisecond, until the kernel moves one of them. So threads stay on
// their cores if they can. The first in the queue does not wait long for that: only as many
// goroutines as there are Ps are looked at, and the first is passed over only as often; not at all
// if it was put in front. The caller's own goroutine, if it was paused, is behind all others.
G* choose_next_tied(const M* caller, int cpu) GOFER_REQUIRES(sched.lock) {
  const int most = sched.procs.load(relaxed);
  int looks = sched.passes_left > 0 ? most : 1;
  G* first = sched.tied_queue.front();
  G* chosen = first;
  for (G* g = first; g != nullptr && looks > 0; g = g->link, --looks) {
    const M* m = g->head->own_m;
    if (m->last_cpu != cpu || m == caller) continue;
    chosen = g;
    break;
  }
  sched.passes_left = chosen == first ? most : sched.passes_left - 1;
  return chosen;
}

// If all took equal turns, of many goroutines that compute equally long none would end before the
// last turn, and it would look as if none ever did (thread_gate.h). Of those that were paused on
// this core, if there are some.
G* choose_oldest_tied(const M* caller, int cpu) GOFER_REQUIRES(sched.lock) {
  G* oldest = nullptr;
  bool here = false;
  for (G* g = sched.tied_queue.front(); g != nullptr; g = g->link) {
    const M* m = g->head->own_m;
    if (m == caller || (here && m->last_cpu != cpu)) continue;
    if (!here && m->last_cpu == cpu) {
      here = true;
      oldest = g;
    } else if (oldest == nullptr || g->id < oldest->id) {
      oldest = g;
    }
  }
  return oldest;
}

// A goroutine that was paused while it spun waits for another one, perhaps for one that was paused
// with a spin lock. Those go first, in three of four turns. Nobody got the lock after its owner was
// paused, so the owner is among those that were paused last, as a rule: the last one has two turns
// of four, the first one has the third.
G* choose_unspinning_tied(const M* caller, bool last) GOFER_REQUIRES(sched.lock) {
  G* chosen = nullptr;
  for (G* g = sched.tied_queue.front(); g != nullptr; g = g->link) {
    const M* m = g->head->own_m;
    if (m->spins || m == caller) continue;
    chosen = g;
    if (!last) break;
  }
  return chosen;
}

}  // namespace

bool has_unspinning_tied_locked() { return sched.tied_queue.count() > sched.tied_spinning; }

G* take_tied_locked() {
  if (sched.tied_queue.front() == nullptr) return nullptr;
  const M* caller = current_m();
  const int cpu = os::current_cpu();
  G* chosen = nullptr;
  if (sched.tied_spinning != 0 && has_unspinning_tied_locked() && sched.passes_left > 0 &&
      (++sched.spinner_turns & 3) != 0) {
    chosen = choose_unspinning_tied(caller, (sched.spinner_turns & 1) != 0);
  }
  if (chosen == nullptr && crowded() && sched.passes_left > 0 && (++sched.turns & 1) != 0) {
    chosen = choose_oldest_tied(caller, cpu);
  }
  if (chosen == nullptr) chosen = choose_next_tied(caller, cpu);
  return take_tied_if([](G* g, void* chosen) { return g == chosen; }, chosen);
}

G* next_global_locked() { return next_queue().front(); }

void drain_local_locked(P* p) {
  bool inherits;
  while (G* g = take_local(p, inherits)) put_global_locked(g);
}

}  // namespace gofer::internal
