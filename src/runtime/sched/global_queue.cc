// The global run queue: which of its four queues has the next turn, and which tied goroutine.
#include "runtime/sched/global_queue.h"

#include "os/thread.h"
#include "runtime/goroutines/transitions.h"
#include "runtime/process/settings.h"
#include "runtime/procs/current.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/thread_gate.h"

namespace gofer::internal {

constinit SchedLock sched_lock;
constinit GlobalQueue global_queue;

namespace {

[[gnu::tls_model("initial-exec")]] thread_local constinit bool urgent_thread = false;

void publish_queue_size() GOFER_REQUIRES(sched_lock) {
  global_queue.urgent_size.store(static_cast<uint32_t>(global_queue.urgent.count()), relaxed);
  global_queue.untried_size.store(static_cast<uint32_t>(global_queue.untried.count()), relaxed);
  global_queue.spinner_waits.store(global_queue.tied_spinning != 0 && has_unspinning_tied_locked(),
                                   relaxed);
  global_queue.most_tied_spin.store(2 * global_queue.tied_spinning > global_queue.tied.count(),
                                    relaxed);
  global_queue.tied_size.store(static_cast<uint32_t>(global_queue.tied.count()), relaxed);
  global_queue.size.store(static_cast<uint32_t>(global_count_locked()), relaxed);
}

// The urgent go first, but not for ever: after so long one of the others gets a turn, an untried
// one or an ordinary one by turns, however it leaves the queue.
constexpr int64_t longest_urgency_ns = 10'000'000;

// One FIFO in two lists: a tied goroutine comes before all that were put there after it. While they
// crowd they are taken by take_tied_locked, and others only from here.
GQueue& next_ordinary() GOFER_REQUIRES(sched_lock) {
  const G* tied = global_queue.tied.front();
  if (tied == nullptr) return global_queue.ordinary;
  if (crowded()) {
    if (global_queue.untried.front() != nullptr) return global_queue.untried;
    return global_queue.ordinary.front() != nullptr ? global_queue.ordinary : global_queue.tied;
  }
  if (global_queue.ordinary.front() == nullptr) return global_queue.tied;
  const uint64_t gone = global_queue.pushed - global_queue.ordinary.count();
  return tied->own_m()->tied_at <= gone ? global_queue.tied : global_queue.ordinary;
}

GQueue& first_queue() GOFER_REQUIRES(sched_lock) {
  if (global_queue.urgent.front() != nullptr) return global_queue.urgent;
  GQueue& ordinary = next_ordinary();
  const bool untried = global_queue.untried.front() != nullptr &&
                       (untried_have_place() || ordinary.front() == nullptr);
  return untried ? global_queue.untried : ordinary;
}

// Not a fresh one while tied ones crowd.
GQueue& last_queue() GOFER_REQUIRES(sched_lock) {
  const bool full = crowded() && global_queue.tied.front() != nullptr;
  GQueue& ordinary = full ? global_queue.tied : next_ordinary();
  if (ordinary.front() != nullptr) return ordinary;
  return global_queue.untried.front() != nullptr ? global_queue.untried : global_queue.urgent;
}

// Not empty if any is not.
GQueue& next_queue() GOFER_REQUIRES(sched_lock) {
  if (global_queue.urgent.front() == nullptr && global_queue.untried.front() == nullptr) {
    global_queue.urgent_since_ns = 0;
    return next_ordinary();
  }
  GQueue& first = first_queue();
  GQueue& last = last_queue();
  const bool urgent = &first == &global_queue.urgent || &first == &global_queue.untried;
  if (!urgent || &first == &last) {
    global_queue.urgent_since_ns = 0;
    return first;
  }
  const int64_t now = os::now_ns();
  if (global_queue.urgent_since_ns == 0) global_queue.urgent_since_ns = now;
  if (now - global_queue.urgent_since_ns < longest_urgency_ns) return first;
  const bool untried_waits =
      &first == &global_queue.urgent && global_queue.untried.front() != nullptr;
  return untried_waits && global_queue.untrieds_turn ? global_queue.untried : last;
}

void note_untied(const G* g) GOFER_REQUIRES(sched_lock) {
  if (g->own_m()->spins) --global_queue.tied_spinning;
}

G* pop_global() GOFER_REQUIRES(sched_lock) {
  GQueue& queue = next_queue();
  if (&queue != &first_queue()) {
    global_queue.urgent_since_ns = 0;
    global_queue.untrieds_turn = &queue != &global_queue.untried;
  }
  G* g = queue.pop_front();
  if (&queue == &global_queue.tied) note_untied(g);
  return g;
}

// Of those that were woken some may turn out to compute: the others do not wait behind them.
void push_urgent(G* g) {
  (g->is_short() ? global_queue.urgent : global_queue.untried).push_back(g);
}

}  // namespace

size_t global_count_locked() {
  return global_queue.urgent.count() + global_queue.untried.count() +
         global_queue.ordinary.count() + global_queue.tied.count();
}

UrgentThread::UrgentThread() { urgent_thread = true; }
UrgentThread::~UrgentThread() { urgent_thread = false; }

namespace {

void put_by_thread_locked(G* g) GOFER_REQUIRES(sched_lock) {
  if (urgent_thread) {
    push_urgent(g);
    publish_queue_size();
    return;
  }
  put_global_locked(g);
}

}  // namespace

void put_global(G* g) {
  LockGuard guard(sched_lock);
  put_by_thread_locked(g);
}

void ready_globally(G* g) {
  LockGuard guard(sched_lock);
  transition::readied(nullptr, g);
  put_by_thread_locked(g);
}

void create_globally(G* g) {
  LockGuard guard(sched_lock);
  transition::created(nullptr, g);
  put_by_thread_locked(g);
}

void put_global_locked(G* g) {
  ++global_queue.pushed;
  global_queue.ordinary.push_back(g);
  publish_queue_size();
}

void append_global_locked(GQueue& list) {
  global_queue.pushed += list.count();
  global_queue.ordinary.append(list);
  publish_queue_size();
}

void put_global_front(G* g) {
  LockGuard guard(sched_lock);
  put_global_front_locked(g);
}

void put_global_front_locked(G* g) {
  global_queue.ordinary.push_front(g);
  publish_queue_size();
}

void put_tied_locked(G* g, bool front) {
  M* m = g->own_m();
  m->tied_at = front ? 0 : global_queue.pushed;
  if (m->spins) ++global_queue.tied_spinning;
  if (front) {
    global_queue.tied.push_front(g);
    global_queue.passes_left = 0;
  } else {
    global_queue.tied.push_back(g);
  }
  publish_queue_size();
}

void put_global_locked(M* by, GQueue& list, bool urgent) {
  while (G* g = list.pop_front()) {
    transition::readied(by, g);
    if (urgent) {
      push_urgent(g);
    } else {
      ++global_queue.pushed;
      global_queue.ordinary.push_back(g);
    }
  }
  publish_queue_size();
}

G* take_global(P* p, uint32_t max) {
  const auto size = static_cast<uint32_t>(global_count_locked());
  if (size == 0) return nullptr;
  uint32_t n = size / static_cast<uint32_t>(p_table.in_use.load(relaxed)) + 1;
  constexpr uint32_t half_ring = decltype(p->queue)::capacity / 2;
  if (n > size) n = size;
  if (n > half_ring) n = half_ring;
  if (max != 0 && n > max) n = max;
  if (settings.gm) n = 1;
  G* first = pop_global();
  for (uint32_t i = 1; i < n; ++i) {
    // A locked one is best left where every P finds it: it must go to its own thread from there.
    if (next_queue().front()->own_m() != nullptr) break;
    G* g = pop_global();
    __builtin_prefetch(g->closure);  // it runs soon, and may have waited in memory for long
    p->queue.put(g);
  }
  publish_queue_size();
  return first;
}

G* take_tied_if(bool (*wanted)(G* g, void* arg), void* arg) {
  G* g = global_queue.tied.take_if(wanted, arg);
  if (g != nullptr) {
    global_queue.urgent_since_ns = 0;
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
G* choose_next_tied(const M* caller, int cpu) GOFER_REQUIRES(sched_lock) {
  const int most = p_table.in_use.load(relaxed);
  int looks = global_queue.passes_left > 0 ? most : 1;
  G* first = global_queue.tied.front();
  G* chosen = first;
  for (G* g = first; g != nullptr && looks > 0; g = g->link, --looks) {
    const M* m = g->own_m();
    if (m->last_cpu != cpu || m == caller) continue;
    chosen = g;
    break;
  }
  global_queue.passes_left = chosen == first ? most : global_queue.passes_left - 1;
  return chosen;
}

// If all took equal turns, of many goroutines that compute equally long none would end before the
// last turn, and it would look as if none ever did (thread_gate.h). Of those that were paused on
// this core, if there are some.
G* choose_oldest_tied(const M* caller, int cpu) GOFER_REQUIRES(sched_lock) {
  G* oldest = nullptr;
  bool here = false;
  for (G* g = global_queue.tied.front(); g != nullptr; g = g->link) {
    const M* m = g->own_m();
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
// with a spin lock. Those go first, in three of four turns. No goroutine got the lock after its
// owner was paused, so the owner is among those that were paused last, as a rule: the last one has
// two turns of four, the first one has the third.
G* choose_unspinning_tied(const M* caller, bool last) GOFER_REQUIRES(sched_lock) {
  G* chosen = nullptr;
  for (G* g = global_queue.tied.front(); g != nullptr; g = g->link) {
    const M* m = g->own_m();
    if (m->spins || m == caller) continue;
    chosen = g;
    if (!last) break;
  }
  return chosen;
}

}  // namespace

bool has_unspinning_tied_locked() { return global_queue.tied.count() > global_queue.tied_spinning; }

G* take_tied_locked() {
  if (global_queue.tied.front() == nullptr) return nullptr;
  const M* caller = current_m();
  const int cpu = os::current_cpu();
  G* chosen = nullptr;
  if (global_queue.tied_spinning != 0 && has_unspinning_tied_locked() &&
      global_queue.passes_left > 0 && (++global_queue.spinner_turns & 3) != 0) {
    chosen = choose_unspinning_tied(caller, (global_queue.spinner_turns & 1) != 0);
  }
  if (chosen == nullptr && crowded() && global_queue.passes_left > 0 &&
      (++global_queue.turns & 1) != 0) {
    chosen = choose_oldest_tied(caller, cpu);
  }
  if (chosen == nullptr) chosen = choose_next_tied(caller, cpu);
  return take_tied_if([](G* g, void* chosen) { return g == chosen; }, chosen);
}

G* next_global_locked() { return next_queue().front(); }

}  // namespace gofer::internal
