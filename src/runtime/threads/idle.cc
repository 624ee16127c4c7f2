// Ms without a P: how they sleep, what they watch while they do, and how they are woken.
//
// Of the Ms that sleep, two have a task. The sleeper, the last one to have gone idle, wakes for the
// earliest timer. The poller sleeps in the netpoller instead of on its note, and wakes when a
// descriptor is ready; often both are the same M. Either one takes an idle P when it has work.
// While no P is idle no M sleeps in the netpoller: each packet would wake it, and it could do
// nothing but queue a goroutine behind those that run. The Ps poll by themselves when they run out
// of work, and sysmon does when they do not.
//
// There is one poller at a time, because the event that ends its sleep wakes every M that sleeps
// there. The waker signals M's note, then reads `polls`; the M sets `polls`, then reads its note
// (seq_cst on both sides), so one of them sees the other.
#include "runtime/threads/idle.h"

#include "os/thread.h"
#include "runtime/goroutines/spawn.h"
#include "runtime/poll/netpoll.h"
#include "runtime/process/settings.h"
#include "runtime/procs/procs.h"
#include "runtime/procs/spinning.h"
#include "runtime/report/deadlock.h"
#include "runtime/report/panic.h"
#include "runtime/sched/global_queue.h"
#include "runtime/sched/queues.h"
#include "runtime/threads/bound.h"
#include "runtime/threads/threads.h"
#include "runtime/threads/transitions.h"
#include "runtime/wait/coarse_clock.h"

namespace gofer::internal {

constinit IdleMs idle_ms;

namespace {

// Makes m the sleeper, and returns when it wakes. The second look finds timers that were started
// before others could see its wake-up time.
int64_t become_sleeper_locked(M* m) GOFER_REQUIRES(sched_lock) {
  idle_ms.sleeper = m;
  m->unannounced_timer_ns = no_timer;
  int64_t earliest = earliest_timer_ns();
  for (;;) {
    idle_ms.sleep_until_ns.store(earliest, seq_cst);
    const int64_t again = earliest_timer_ns();
    if (again >= earliest) return earliest;
    earliest = again;
  }
}

bool become_poller_locked(M* m) GOFER_REQUIRES(sched_lock) {
  if (!poll_state.in_use.load(relaxed) || idle_ms.poller.load(acquire) != nullptr) return false;
  if (wake_state.idle_p_count.load(relaxed) == 0) return false;
  idle_ms.poller.store(m, relaxed);
  return true;
}

// A P for timers that are due, if one is idle.
P* take_idle_p_for_timers_locked(int64_t earliest) GOFER_REQUIRES(sched_lock) {
  if (earliest == no_timer || os::now_ns() < earliest) return nullptr;
  P* p = take_idle_p();
  // All Ps are busy and will come to it. From now on a new timer wakes the sleeper again.
  if (p == nullptr) idle_ms.sleep_until_ns.store(no_timer, seq_cst);
  return p;
}

bool all_idle_locked() GOFER_REQUIRES(sched_lock) {
  return idle_ms.count + idle_bound_ms == threads.count;
}

// To sleep and be woken takes 40 us or more if the core goes to sleep, too. A poller whose waits
// are short asks for a while without sleeping; each time that this was in vain it does so more
// rarely.
class PollSpin {
 public:
  /// True if something has come: events, or m was told something.
  bool wait(M* m, int64_t timeout_ns, GQueue& ready, bool& told) {
    if (timeout_ns >= 0 && timeout_ns < longest_ns) return false;
    if (skip_ > 0) {
      --skip_;
      return false;
    }
    const int64_t end = os::now_ns() + longest_ns;
    do {
      netpoll(0, ready);
      told = m->note.take();
      if (ready.front() != nullptr || told) {
        failures_ = 0;
        return true;
      }
      for (int i = 0; i < pauses; ++i) cpu_relax();
    } while (os::now_ns() < end);
    if (failures_ < most_failures) ++failures_;
    skip_ = 1 << failures_;
    return false;
  }

 private:
  static constexpr int64_t longest_ns = 50'000;
  static constexpr int pauses = 20;
  static constexpr int most_failures = 10;
  int failures_ = 0;
  int skip_ = 0;
};
constinit PollSpin poll_spin;  // of the poller, of which there is one at a time

// The poller m sleeps. True if it was told something; the goroutines that can go on are in `ready`.
bool sleep_polling(M* m, int64_t timeout_ns, GQueue& ready) {
  m->polls.store(true, seq_cst);
  bool told = m->note.take();
  if (!told && !poll_spin.wait(m, timeout_ns, ready, told)) netpoll(timeout_ns, ready);
  m->polls.store(false, relaxed);
  idle_ms.poller.store(nullptr, release);
  if (!told) told = m->note.take();
  return told;
}

// m sleeps, in the netpoller or on its note. For a timer that is due soon it sleeps exactly; not
// all the time, because the threads and processes that a goroutine starts on m would inherit that.
// For a later one, the kernel's slack of 50 us is not worth two system calls.
bool sleep_once(M* m, bool poll, int64_t timeout_ns, bool for_timer, GQueue& ready) {
  constexpr int64_t soon_ns = 100'000'000;
  const bool exactly = for_timer && timeout_ns > 0 && timeout_ns < soon_ns;
  if (exactly) os::sleep_exactly();
  const bool told = poll ? sleep_polling(m, timeout_ns, ready) : m->note.wait(timeout_ns);
  if (exactly) os::sleep_as_usual();
  return told;
}

// Takes an idle P for m, which is idle, and queues `ready` on it. Returns false if no P is idle:
// the goroutines are the first to run then.
bool take_p_for(M* m, GQueue& ready) {
  bool all_busy = false;
  P* p = nullptr;
  {
    LockGuard guard(sched_lock);
    if (m->on_idle_list) {
      p = take_idle_p();
      all_busy = p == nullptr;
      if (all_busy) {
        put_global_locked(m, ready, true);
      } else {
        remove_idle_m_locked(m);
      }
    }
  }
  if (all_busy) {
    wake_p();
    return false;
  }
  if (p != nullptr) {
    acquire_p(m, p);
  } else {
    while (m->next_p.load(acquire) == nullptr) m->note.wait(-1);  // one is on its way
    take_given_p(m);
  }
  put_local(m, ready);
  return true;
}

// How well an idle M suits to be woken. Another M would have to become the sleeper, or the poller,
// in place of the one that is.
enum class Suits { not_at_all, as_sleeper, as_poller, well, best };

Suits suits(const M* m, int cpu) GOFER_REQUIRES(sched_lock) {
  if (m == idle_ms.sleeper) return Suits::as_sleeper;
  if (m == idle_ms.poller.load(relaxed)) return Suits::as_poller;
  return m->last_cpu == cpu ? Suits::best : Suits::well;
}

// The idle M that sleeps longest and is neither the sleeper nor the poller.
M* find_without_role_locked() GOFER_REQUIRES(sched_lock) {
  M* found = nullptr;
  for (M* m = idle_ms.list; m != nullptr; m = m->link) {
    const bool has_role = m == idle_ms.sleeper || m == idle_ms.poller.load(relaxed);
    if (!has_role && !m->note.is_said()) found = m;
  }
  return found;
}

}  // namespace

// Not far down the list there may be one that was on this core last: take_tied_locked has the
// reason. With many idle Ms it is not worth a long search.
M* take_idle_m_locked() {
  constexpr int looks = 8;
  const int cpu = os::current_cpu();
  M* chosen = nullptr;
  Suits best = Suits::not_at_all;
  int looked = 0;
  for (M* m = idle_ms.list; m != nullptr && best != Suits::best; m = m->link) {
    if (++looked > looks && best >= Suits::well) break;
    if (const Suits how = suits(m, cpu); how > best) {
      chosen = m;
      best = how;
    }
  }
  if (chosen != nullptr) remove_idle_m_locked(chosen);
  return chosen;
}

void put_idle_m_locked(M* m) {
  transition::went_idle(m);
  m->last_cpu = os::current_cpu();
  m->back_link = nullptr;
  m->link = idle_ms.list;
  if (m->link != nullptr) m->link->back_link = m;
  idle_ms.list = m;
  ++idle_ms.count;
}

void remove_idle_m_locked(M* m) {
  transition::left_idle(m);
  if (idle_ms.sleeper == m) {
    idle_ms.sleeper = nullptr;
    idle_ms.sleep_until_ns.store(no_timer, seq_cst);
  }
  if (m->back_link != nullptr) {
    m->back_link->link = m->link;
  } else {
    idle_ms.list = m->link;
  }
  if (m->link != nullptr) m->link->back_link = m->back_link;
  --idle_ms.count;
}

bool should_watch_locked() { return goroutines.runs.load(relaxed) != 0 && all_idle_locked(); }

void wake_m(M* m) {
  m->note.signal();
  if (m->polls.load(seq_cst)) netpoll_break(m);
}

bool sleep_idle(M* m, const IdleTask& first_task) {
  IdleTask task = first_task;
  const int64_t start = os::now_ns();
  int64_t look_at = start + first_deadlock_look_ns;
  int64_t look_ns = first_deadlock_look_ns;
  for (int64_t now = start;; now = os::now_ns()) {
    const bool old = now - start >= settings.idle_ns;
    int64_t wake_at = old ? no_timer : start + settings.idle_ns;
    if (task.watch && look_at < wake_at) wake_at = look_at;
    if (task.earliest_ns < wake_at) wake_at = task.earliest_ns;
    const int64_t timeout = wake_at == no_timer ? -1 : wake_at > now ? wake_at - now : 0;
    GQueue ready;
    const bool told = sleep_once(m, task.poll, timeout, wake_at == task.earliest_ns, ready);
    now = os::now_ns();
    set_coarse_clock(now);
    if (ready.front() != nullptr && take_p_for(m, ready)) return true;
    if (told && m->next_p.load(acquire) != nullptr) break;
    M* without_role = nullptr;
    {
      LockGuard guard(sched_lock);
      task = IdleTask();
      if (!m->on_idle_list) continue;  // it was chosen, and gets a P
      if (idle_ms.sleeper == m) task.earliest_ns = become_sleeper_locked(m);
      if (P* p = take_idle_p_for_timers_locked(task.earliest_ns); p != nullptr) {
        remove_idle_m_locked(m);
        acquire_p(m, p);
        return true;
      }
      if (task.earliest_ns <= now) task.earliest_ns = no_timer;
      task.poll = become_poller_locked(m);
      const bool over = now - start >= settings.idle_ns && idle_ms.count > idle_ms_reserve;
      if (over && !task.poll && idle_ms.sleeper != m) {
        remove_idle_m_locked(m);
        return false;
      }
      // m has a role. One that had it when its own time was over sleeps without a limit now.
      if (over) without_role = find_without_role_locked();
      task.watch = should_watch_locked();
    }
    if (without_role != nullptr) wake_m(without_role);  // to end, if it is not needed either
    if (task.watch && now >= look_at) {
      check_deadlock();
      look_ns = next_deadlock_look(look_ns);
      look_at = now + look_ns;
    }
  }
  take_given_p(m);
  return true;
}

bool stop_m(M* m) {
  IdleTask task;
  P* p = nullptr;
  {
    LockGuard guard(sched_lock);
    // An M that could not start a thread has left its P idle and its work in the queue, perhaps
    // after m looked there for the last time.
    if (global_count_locked() != 0 || threads.no_thread_until_ns.load(relaxed) != 0) {
      p = take_idle_p_with_work();
    }
    if (p != nullptr) {
      acquire_p(m, p);
      return true;
    }
    put_idle_m_locked(m);
    task.earliest_ns = become_sleeper_locked(m);
    p = take_idle_p_for_timers_locked(task.earliest_ns);
    if (p != nullptr) {
      remove_idle_m_locked(m);
    } else {
      task.poll = become_poller_locked(m);
      task.watch = should_watch_locked();
    }
  }
  if (p != nullptr) {
    acquire_p(m, p);
  } else if (!sleep_idle(m, task)) {
    return false;
  }
  sample_soon(m);
  run_all_timers(m);
  return true;
}

void wake_sleeper(int64_t when_ns) {
  // Without an idle P the sleeper could do nothing. An M that makes a P idle checks the timers.
  if (wake_state.idle_p_count.load(seq_cst) == 0) return;
  M* sleeper;
  {
    LockGuard guard(sched_lock);
    sleeper = idle_ms.sleeper;
    if (sleeper != nullptr && when_ns < idle_ms.sleep_until_ns.load(relaxed)) wake_m(sleeper);
  }
  if (sleeper == nullptr) wake_p();
}

void want_poller() {
  LockGuard guard(sched_lock);
  if (idle_ms.poller.load(relaxed) != nullptr || idle_ms.list == nullptr) return;
  if (wake_state.idle_p_count.load(relaxed) == 0) return;
  wake_m(idle_ms.list);
}

}  // namespace gofer::internal
