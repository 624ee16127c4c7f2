// The thread of sysmon, and its pace: how long it sleeps between two rounds. round.cc has what it
// does in a round.
//
// sysmon takes no lock of libc and none that is held outside of the runtime: it must go on always.
#include "runtime/watch/sysmon.h"

#include "os/thread.h"
#include "os/thread_state.h"
#include "runtime/poll/netpoll.h"
#include "runtime/process/process_state.h"
#include "runtime/procs/lost.h"
#include "runtime/procs/procs.h"
#include "runtime/procs/spinning.h"
#include "runtime/sched/global_queue.h"
#include "runtime/stacks/scavenge.h"
#include "runtime/threads/idle.h"
#include "runtime/threads/threads.h"
#include "runtime/trace/hooks.h"
#include "runtime/wait/coarse_clock.h"
#include "runtime/watch/round.h"
#include "runtime/watch/schedtrace.h"

namespace gofer::internal {
namespace {

constexpr int64_t mending_ns = 10 * ms;  // between two looks at the netpoller's descriptors
constexpr int64_t shortest_idle_ns = 1 * ms;
constexpr int64_t longest_idle_ns = 10 * ms;
constexpr int idle_rounds_before_deep_sleep = 3;

constinit Note told;

// Returns true if another thread woke it.
bool sleep(SysmonSleep how, int64_t ns) {
  wake_state.sysmon_sleeps.store(static_cast<uint32_t>(how), seq_cst);
  // A P that ceased to be idle before the store has not woken sysmon.
  if (how == SysmonSleep::deep && !all_idle()) ns = 0;
  const bool woken = told.wait(ns);
  wake_state.sysmon_sleeps.store(static_cast<uint32_t>(SysmonSleep::shortly), seq_cst);
  return woken;
}

// The pace between rounds. After each round, the delay to the next one doubles, from `quickest`
// (when a P was taken) to a maximum: 10 ms if no work waits, else 1 ms, which grows to 4 ms with
// rounds that find nothing to do. Something that is due earlier cuts the delay.
//
// A round that begins because work waits comes late on purpose: the goroutine in the way gets a
// grace, in which it may end by itself. The grace doubles each time that it was enough.
class Pace {
 public:
  // All Ps were idle, and one is not any more. No goroutine can have blocked or run for long yet.
  void begin_anew() {
    delay_ = pressed_ns;
    grace_ = pressed_ns;
  }

  // Sleeps until the next round.
  void rest(const RoundResult& round, int64_t round_began) {
    adapt(round);
    int64_t left = next_round_at(round, round_began) - os::now_ns();
    if (left < quickest_ns) left = quickest_ns;
    // Work that comes while none waits is a reason to look; more work is not.
    const bool lightly = !round.pressed && delay_ > pressed_ns;
    const bool woken = sleep(lightly ? SysmonSleep::lightly : SysmonSleep::shortly, left);
    given_grace_ = woken && lightly;
    if (!given_grace_) return;
    sleep(SysmonSleep::shortly, grace_);
    delay_ = pressed_ns;
  }

 private:
  static constexpr int64_t quickest_ns = 20 * us;
  static constexpr int64_t most_pressed_ns = 4 * ms;
  static constexpr int64_t unpolled_ns = 4 * ms;  // while no idle M is in the netpoller
  static constexpr int64_t most_grace_ns = 8 * ms;

  void adapt(const RoundResult& round) {
    if (round.useful()) {
      grace_ = pressed_ns;
    } else if (given_grace_ && grace_ < most_grace_ns) {
      grace_ *= 2;
    }
    if (round.took) {
      delay_ = quickest_ns;
      return;
    }
    if (round.acted || !round.pressed) {
      most_ = pressed_ns;
    } else if (delay_ >= most_ && most_ < most_pressed_ns) {
      most_ *= 2;
    }
    const int64_t most = round.pressed ? most_ : slowest_ns;
    delay_ = delay_ * 2 < most ? delay_ * 2 : most;
  }

  int64_t next_round_at(const RoundResult& round, int64_t round_began) const {
    int64_t at = round_began + delay_;
    if (polled_by_nobody() && delay_ > unpolled_ns) at = round_began + unpolled_ns;
    if (round.next_ns < at) at = round.next_ns;
    if (const int64_t timer = next_timer_ns(); timer < at) at = timer;
    if (const int64_t line = next_schedtrace_ns(); line < at) at = line;
    return at;
  }

  int64_t delay_ = pressed_ns;
  int64_t most_ = pressed_ns;  // the longest delay while work waits
  int64_t grace_ = pressed_ns;
  bool given_grace_ = false;  // before the last round
};

// The program may close the netpoller's descriptors while an M sleeps there. No other M polls
// then, so only a look can find that out.
void mend_netpoller(int64_t now) {
  static int64_t looked_ns = 0;
  if (idle_ms.poller.load(relaxed) == nullptr || now - looked_ns < mending_ns) return;
  looked_ns = now;
  GQueue ready;
  netpoll_mend(ready);
  if (ready.front() == nullptr) return;
  {
    LockGuard guard(sched_lock);
    put_global_locked(nullptr, ready, true);
  }
  wake_p();
}

int64_t until_schedtrace(int64_t now, int64_t most) {
  const int64_t left = next_schedtrace_ns() - now;
  return left < 0 ? 0 : left < most ? left : most;
}

// Every P is idle, and was in so many rounds before. Sleeps until one is not, or until the
// scavenger or the schedule's next line is due.
void rest_while_idle(int64_t now, int64_t scavenge_at, int rounds) {
  if (poll_state.in_use.load(relaxed)) want_poller();
  if (rounds >= idle_rounds_before_deep_sleep && !is_tracing_schedule()) {
    const int64_t most = scavenge_at == no_timer ? -1 : scavenge_at < now ? 0 : scavenge_at - now;
    sleep(SysmonSleep::deep, most);
    sleep(SysmonSleep::shortly, shortest_idle_ns);
  } else {
    sleep(SysmonSleep::lightly, until_schedtrace(now, longest_idle_ns));
  }
}

void* sysmon_main(void*) {
  os::name_thread("gofer-sysmon");
  os::sleep_exactly();
  os::ask_for_short_slices();
  const UrgentThread urgent;
  Pace pace;
  int idle_rounds = 0;
  int64_t last_round_ns = os::now_ns();
  for (;;) {
    if (process.exiting.load(relaxed)) os::sleep_for_ever();
    const int64_t now = os::now_ns();
    set_coarse_clock(now);
    trace_schedule(now);
    const int64_t scavenge_at = scavenge(now);
    netpoll_break_again();
    mend_netpoller(now);
    if (!retry_thread() && all_idle()) {
      // An M that computes without a P is to be given one, though no other wants it.
      if (pause_lost()) idle_rounds = 0;
      rest_while_idle(now, scavenge_at, ++idle_rounds);
      pace.begin_anew();
      continue;
    }
    idle_rounds = 0;
    const RoundResult round = run_round(now);
    if (tracer::is_on()) tracer::sysmon_round(now - last_round_ns);
    last_round_ns = now;
    pace.rest(round, now);
  }
}

}  // namespace

int start_sysmon() { return os::start_thread(sysmon_main, nullptr); }

void wake_sysmon() {
  // One of the threads that find it asleep is enough.
  if (wake_state.sysmon_sleeps.exchange(static_cast<uint32_t>(SysmonSleep::shortly), seq_cst) !=
      0) {
    told.signal();
  }
}

}  // namespace gofer::internal
