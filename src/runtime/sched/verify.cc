// verify_scheduler: walks everything while the world stands still. Called by tests.
//
// What must hold then: every P is stopped, and is in no list; each G in a queue is runnable, or
// paused and tied, and is in one queue only; counts agree with lists; no more Ms spin than exist.
#include "runtime/sched/verify.h"

#include "runtime/goroutines/spawn.h"
#include "runtime/process/start.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/procs.h"
#include "runtime/procs/spinning.h"
#include "runtime/procs/stop_world.h"
#include "runtime/report/panic.h"
#include "runtime/sched/global_queue.h"
#include "runtime/threads/idle.h"
#include "runtime/threads/threads.h"

namespace gofer::internal {
namespace {

void require(bool condition, const char* what) {
  if (!condition) fatal_error("verify_scheduler: %s", what);
}

void count_runnable(G* g, void* total) {
  const GStatus status = g->status.load(acquire);
  require(status != GStatus::syscall, "the status syscall is stored");
  if (status != GStatus::runnable && status != GStatus::preempted) return;
  ++*static_cast<size_t*>(total);
  require(g->m() == nullptr, "a goroutine that waits for a P has an M");
}

size_t verify_p(P* p, bool own) {
  require(p->status.load(relaxed) == PStatus::gcstop, "a P is not stopped");
  require(p->stacks.count >= 0 && p->stacks.count <= StackCache::high,
          "a P's stack cache overflows");
  require(p->free_gs.count() < g_free_high + g_free_batch, "a P has too many free records");
  const PWord word(p->word.load(relaxed));
  // `retaking` by a taker that was overtaken: it will see in_runtime and put it back.
  const bool mine = word.state() == PWordState::running || word.state() == PWordState::retaking;
  const bool free = word.state() == PWordState::none || word.state() == PWordState::lost;
  require(own ? mine : free, "a stopped P has the wrong owner");
  const uint32_t n = p->queue.size();
  require(n <= decltype(p->queue)::capacity, "a run queue holds more than fits");
  return n + (p->queue.has_next() ? 1 : 0);
}

size_t verify_lists() GOFER_REQUIRES(sched_lock) {
  require(idle_ps == nullptr && wake_state.idle_p_count.load(relaxed) == 0,
          "a P is idle while the world is stopped");
  int idle = 0;
  for (M* m = idle_ms.list; m != nullptr; m = m->link) {
    ++idle;
    require(m->on_idle_list, "an idle M does not know it");
    require(idle <= threads.count, "the list of idle Ms has a loop");
  }
  require(idle == idle_ms.count, "the count of idle Ms is wrong");
  require(global_queue.size.load(relaxed) == global_count_locked(), "queue_size is wrong");
  size_t queued = 0;
  for (const GQueue* queue :
       {&global_queue.ordinary, &global_queue.urgent, &global_queue.untried, &global_queue.tied}) {
    size_t in_this = 0;
    for (G* g = queue->front(); g != nullptr; g = g->link) {
      ++in_this;
      require(in_this <= queue->count(), "a global queue has a loop");
      const GStatus status = g->status.load(relaxed);
      const bool paused = status == GStatus::preempted && queue == &global_queue.tied;
      require(status == GStatus::runnable || paused, "a queued goroutine is not runnable");
    }
    require(in_this == queue->count(), "a global queue's count is wrong");
    queued += in_this;
  }
  const int32_t spinning = wake_state.spinning_ms.load(relaxed);
  require(spinning >= 0 && spinning <= threads.count, "the count of spinning Ms is impossible");
  return queued;
}

}  // namespace

void verify_scheduler() {
  ensure_started();
  M* m = stop_the_world();
  sched_lock.lock();
  size_t queued = verify_lists();
  for (P* p : all_ps()) queued += verify_p(p, m != nullptr && m->p == p);
  size_t runnable = 0;
  for_each_g(count_runnable, &runnable);
  sched_lock.unlock();
  // A foreign thread between two lines of `go` may have a record in neither: it only adds.
  require(queued <= runnable, "a queue holds a goroutine that is not runnable");
  require(count_live() >= 0, "more goroutines ended than began");
  start_the_world(m);
}

}  // namespace gofer::internal
