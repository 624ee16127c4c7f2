// A round of sysmon: what is judged of each P, and what is done about it.
//
//   - An M that sleeps in a call that the runtime knows nothing of holds up its P's queue: the P
//     is taken from it (retake.cc), without a signal, and another M goes on. If the M comes back
//     and computes without a P, it is paused until it gets one.
//   - A goroutine that has run for 10 ms while others wait is preempted (preempt.cc). It is
//     preempted after 3 ms if a goroutine waits that was not paused itself and may begin: so
//     goroutines that compute for long take turns in long slices, and short ones do not wait for
//     them.
//   - When a timer is due and every P is busy, the round runs the timer itself, and preempts the
//     goroutine that has run longest, if that is 1 ms at least. What was woken runs first.
//   - When no M asks the netpoller, because every P runs one goroutine for long, the round does,
//     every 1 ms, and the goroutines that it wakes are served like those of timers.
//
// The kernel tells through /proc whether a thread sleeps (6 us). The thread's clock of processor
// time tells first whether it is worth asking (0.4 us).
//
// Every pause and every P taken from a sleeping thread may cost a thread: thread_gate.h has the
// rules for how many there may be, and the round asks it each time.
#include "runtime/watch/round.h"

#include <algorithm>
#include <utility>

#include "os/thread.h"
#include "os/thread_state.h"
#include "runtime/poll/netpoll.h"
#include "runtime/procs/lost.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/procs.h"
#include "runtime/procs/retake.h"
#include "runtime/procs/spinning.h"
#include "runtime/procs/thread_gate.h"
#include "runtime/sched/global_queue.h"
#include "runtime/threads/idle.h"
#include "runtime/threads/m_table.h"
#include "runtime/threads/threads.h"
#include "runtime/watch/preempt.h"

namespace gofer::internal {
namespace {

constexpr int64_t slice_ns = 10 * ms;
constexpr int64_t short_slice_ns = 3 * ms;  // while a goroutine waits that was not paused
constexpr int64_t wake_preempt_ns =
    1 * ms;  // a goroutine that has had less is not interrupted for a timer
constexpr int64_t futex_patience_ns = 100 * us;
constexpr uint32_t long_queue = 64;
constexpr int64_t fresh_patience_ns = 100 * ms;
constexpr int fresh_patience_step = 4;
constexpr int64_t resend_ns = 1 * ms;        // a signal may find the thread inside of the runtime
constexpr int64_t least_turn_ns = 500 * us;  // processor time; a thread without a core had no turn
constexpr int64_t probe_ns = 1 * ms;
constexpr int64_t thread_start_ns = 200 * us;
constexpr int idle_ms_wanted = 4;

// What was seen of a P: since when the same goroutine has it, by the same hold.
struct Watched {
  uint64_t word = 0;
  uint32_t tick = 0;
  uint32_t calls = 0;
  int64_t since_ns = 0;      // the slice began
  int64_t resumed_ns = 0;    // it runs without a break
  int64_t cpu_ns = 0;        // of the M's thread, at...
  int64_t cpu_at_ns = 0;     // ...this time; 0: not read yet
  int64_t first_cpu_ns = 0;  // what cpu_ns was at the first look
  int64_t flag_cpu_ns = -1;  // what it was when a checkpoint was asked to give way; -1: none was
  int64_t asked_ns = 0;      // the last preemption asked for
  int64_t probed_ns = 0;     // the last one in case that it spins
  int64_t inside_ns = 0;     // since when each look has found it inside the runtime
  int64_t vain_ns = 0;       // processor time in a first slice that is not over yet
  bool was_paused = false;
  bool asleep = false;   // and keeps its P
  int64_t futex_ns = 0;  // since when each look has found it asleep at a futex, without progress
};

Watched watched[max_procs];
uint64_t polls_seen = 0;      // visits to the netpoller until the last round...
int64_t polled_ns = 0;        // ...and when the last one was seen
int64_t fresh_ns[max_procs];  // when each P was last seen with a goroutine that was not tied

bool queue_waits(P* p) { return p->queue.size() != 0 || p->queue.has_next(); }

// Goroutines that another M could run: in the global queue, or in some ring.
uint32_t count_waiting() {
  uint32_t n = global_queue.size.load(relaxed);
  for (P* p : all_ps()) n += p->queue.size();
  return n;
}

// Goroutines that wait for a P on their own threads.
uint32_t tied() { return global_queue.tied_size.load(relaxed); }

bool no_idle_p() { return wake_state.idle_p_count.load(seq_cst) == 0; }

// As it was seen last; a P that was never held has the word 0, like one that was never seen.
bool still_held(const P* p) {
  const uint64_t word = watched[p->id].word;
  return word != 0 && p->word.load(relaxed) == word;
}

// Does the thread of m, seen before as w, sleep?
bool looks_asleep(M* m, Watched& w, int64_t now, os::ThreadState& state) {
  const int64_t cpu = os::thread_cpu_ns(m->tid);
  const bool first = w.cpu_at_ns == 0;
  const int64_t used = cpu - w.cpu_ns;
  const int64_t elapsed = now - w.cpu_at_ns;
  w.cpu_ns = cpu;
  w.cpu_at_ns = now;
  if (first) w.first_cpu_ns = cpu;
  if (first || used != 0) w.futex_ns = 0;
  if (!first && used * 4 > elapsed) return false;
  state = look_at_thread(m);
  if (state.doing == os::ThreadState::unknown) return !first && used == 0 && elapsed >= pressed_ns;
  return state.doing == os::ThreadState::asleep;
}

// The thread sleeps for a lock: if its owner is paused, the owner comes first in the queue. A
// mutex of libc has its owner's thread behind the futex word.
void favour_owner(uint64_t futex) {
  if (futex == 0 || tied() == 0) return;
  auto tid = static_cast<int>(os::peek(futex + 8));
  if (tid <= 0) return;
  LockGuard guard(sched_lock);
  G* g = take_tied_if([](G* g, void* tid) { return g->own_m()->tid == *static_cast<int*>(tid); },
                      &tid);
  if (g != nullptr) put_tied_locked(g, true);
}

// The thread of m sleeps with p, in a crowd (no_crowd: it has announced that, and may do there what
// it likes).
bool take_from_sleeping(P* p, M* m, PWord word, uint32_t crowd, const Watched& w, Pass to) {
  if (!taking.has_membarrier.load(relaxed)) {
    m->surrenders_in.store(crowd, relaxed);
    request_preempt(m, p, word, Preempt::surrender);
    return false;  // not yet
  }
  if (crowd != no_crowd) note_lost(m, w.cpu_ns, crowd);  // before it can notice
  if (!take_p(p, word)) {
    if (crowd != no_crowd) forget_lost(m);
    return false;
  }
  if (crowd == call_crowd && m->resumed.load(relaxed) != 0) note_unpaused(false);
  count_retaken(crowd);
  hand_off(p, to);
  if (to != Pass::to_tied) want_idle_ms(idle_ms_wanted);
  return true;
}

class Round {
 public:
  explicit Round(int64_t now)
      : now_(now), waiting_(count_waiting()), pressed_(waiting_ != 0 && no_idle_p()) {}

  RoundResult run() {
    update_gate(now_);
    if (no_idle_p()) run_late_timers();
    if (pressed_) want_idle_ms(1, waiting_ > tied());  // it may well be needed in the next round
    for (P* p : all_ps()) look_at(p, watched[p->id]);
    poll_network();
    serve_urgent();
    pause_lost();
    return {.took = took_, .acted = took_ || asked_, .pressed = pressed_, .next_ns = next_ns_};
  }

 private:
  void run_late_timers() {
    if (earliest_timer_ns() > now_) return;
    run_all_timers(nullptr);
    waiting_ = count_waiting();
  }

  // Every P has run the same goroutine for long enough to be interrupted. If not, but those are
  // known to compute for long, it is worth a look when they have.
  bool hogged() {
    int64_t resumed = 0;
    bool known = true;
    for (const P* p : all_ps()) {
      if (!still_held(p)) return false;
      const Watched& w = watched[p->id];
      if (w.resumed_ns > resumed) resumed = w.resumed_ns;
      known = known && w.was_paused;
    }
    if (now_ - resumed >= wake_preempt_ns) return true;
    if (known) look_again_at(resumed + wake_preempt_ns);
    return false;
  }

  // If no M does.
  void poll_network() {
    if (!polled_by_nobody()) return;
    const uint64_t polls = poll_state.visits.load(relaxed);
    if (polls != polls_seen) {
      polls_seen = polls;
      polled_ns = now_;
      return;
    }
    if (!no_idle_p()) {
      want_poller();
      return;
    }
    const bool is_hogged = hogged();
    if (is_hogged) look_again_at(now_ + pressed_ns);
    if (!is_hogged && now_ - polled_ns < slowest_ns) return;
    GQueue ready;
    netpoll(0, ready);
    polls_seen = poll_state.visits.load(relaxed);
    polled_ns = now_;
    if (ready.front() == nullptr) return;
    {
      LockGuard guard(sched_lock);
      put_global_locked(nullptr, ready, is_hogged || tied() != 0 || waiting_ > long_queue);
    }
    wake_p();
    waiting_ = count_waiting();
  }

  void look_at(P* p, Watched& w) {
    const PWord word(p->word.load(acquire));
    if (word.state() != PWordState::running) return;
    const uint32_t tick = p->schedtick.load(relaxed);
    const bool fresh = word.bits() != w.word || tick != w.tick;
    if (fresh) {
      w = Watched{.word = word.bits(), .tick = tick, .since_ns = now_, .resumed_ns = now_};
      if (p->slice_tick.load(acquire) == tick) {
        w.since_ns = p->slice_start_ns.load(relaxed);
        w.resumed_ns = p->resumed_ns.load(relaxed);
        w.was_paused = true;
      } else {
        fresh_ns[p->id] = now_;
      }
    }
    M* m = owner_of(word);
    if (m->in_runtime.load(relaxed) != 0) {
      look_inside(m, w);
      return;
    }
    w.inside_ns = 0;
    w.asleep = false;
    const bool waits = waiting_ != 0 || queue_waits(p);
    if (!fresh_work_waits(p)) fresh_ns[p->id] = now_;
    const bool fresh_may_begin = fresh_work_waits(p) && (may_pause() || fresh_overdue(p));
    const bool next_may_begin = crowded() && p->queue.has_next() && may_pause(places_for_next());
    const bool cut_short = fresh_may_begin || next_may_begin;
    const int64_t slice =
        cut_short && !deserves_long_slice(w.was_paused) ? short_slice_ns : slice_ns;
    const bool slice_over = now_ - w.since_ns >= slice;
    const uint32_t calls = p->syscalltick.load(relaxed);
    const bool same_call = !fresh && calls == w.calls;
    w.calls = calls;
    if (!(waits || slice_over)) return;
    const bool announced = in_announced_call(m, p);
    os::ThreadState state;
    const int64_t cpu_before = w.cpu_at_ns != 0 ? w.cpu_ns : -1;
    if (announced && same_call) {
      took_ |= take_from_sleeping(p, m, word, no_crowd, w, Pass::in_turn);
      return;
    }
    if (looks_asleep(m, w, now_, state)) {
      w.asleep = true;
      if (!announced && state.futex != 0) {
        if (!waits_long(w)) return;
        note_lock(now_);
      }
      look_at_sleeping(p, m, word, announced ? no_crowd : crowd_of(state.futex), state, w);
      return;
    }
    if (cpu_before >= 0 && crowded()) {
      w.vain_ns += w.cpu_ns - cpu_before;
      if (w.was_paused) note_computed(std::exchange(w.vain_ns, 0));
    }
    if (!waits) return;
    // A thread without a core cannot pause either, and would pause at its first instruction.
    const bool had_turn = w.cpu_ns < 0 || w.cpu_ns - w.first_cpu_ns >= least_turn_ns;
    if (!slice_over || !had_turn) {
      look_again_at(slice_over ? now_ + pressed_ns : w.since_ns + slice);
      if (global_queue.spinner_waits.load(relaxed)) probe(m, p, word, w);
    } else if (announced) {
      p->preempt.store(true, relaxed);  // when the call returns
    } else {
      end_slice(p, m, word, w, fresh_may_begin, next_may_begin);
    }
  }

  // Whatever sets the clocks of the gate back, a fresh goroutine begins up to ten times a second.
  bool fresh_overdue(P* p) {
    const int beyond = thread_gate.tied.load(relaxed) - thread_gate.tied_room.load(relaxed);
    const int rarely = 1 + (beyond > 0 ? beyond / fresh_patience_step : 0);
    const int procs = p_table.in_use.load(relaxed);
    const int64_t patience = fresh_patience_ns * (procs > 1 ? procs : 2) * rarely;
    return fresh_ns[p->id] != 0 && now_ - fresh_ns[p->id] >= patience && has_thread();
  }

  // Most locks are held for some microseconds: to give the P away at once costs more than to wait.
  bool waits_long(Watched& w) {
    if (w.futex_ns == 0) w.futex_ns = now_;
    if (now_ - w.futex_ns >= futex_patience_ns) return true;
    look_again_at(w.futex_ns + futex_patience_ns);
    return false;
  }

  void look_at_sleeping(P* p, M* m, PWord word, uint32_t crowd, const os::ThreadState& state,
                        Watched& w) {
    favour_owner(state.futex);
    Pass to = Pass::in_turn;
    if (crowd != no_crowd) {
      const int extra = urgent_waits() ? places_for_untried() : 0;
      if (fresh_work_waits(p) && fresh_overdue(p)) {
        fresh_ns[p->id] = now_;
      } else if (tied() != 0 && (crowd != call_crowd || crowded())) {
        to = Pass::to_tied;
      } else if (!may_leave_asleep(crowd, extra)) {
        note_refused(crowd, now_);
        if (tied() == 0) return;
        to = Pass::to_tied;
      }
    }
    took_ |= take_from_sleeping(p, m, word, crowd, w, to);
  }

  // Of the goroutines that wait for the end of a slice the next to go is a fresh one, if it may; or
  // a tied one in every other slice, while those crowd or are likely to be done soon.
  void end_slice(P* p, M* m, PWord word, Watched& w, bool fresh_may_begin, bool next_may_begin) {
    if (w.was_paused) note_long_slice();
    note_computed(std::exchange(w.vain_ns, 0));
    const bool by_turns = crowded() || !only_hogs();
    const bool fresh_turn = !by_turns || tied() == 0 || w.was_paused;
    if (!fresh_work_waits(p) || (fresh_may_begin && fresh_turn)) {
      preempt(p, m, word, w, Preempt::slice);
    } else if (next_may_begin) {
      preempt(p, m, word, w, Preempt::wake);
    } else if (tied() != 0) {
      preempt(p, m, word, w, Preempt::rotate);
    }
  }

  // Inside of the runtime no M should wait for a lock that is held outside of it. If one does all
  // the same (a page fault served by a paused thread, an allocator called by a sanitizer), its
  // owner may be paused, and the P that it waits for may be this one: the paused go on without one,
  // one by one, until an M moves.
  void look_inside(M* m, Watched& w) {
    if (w.inside_ns == 0) w.inside_ns = now_;
    if (global_queue.size.load(relaxed) == 0) return;
    look_again_at(w.inside_ns + slice_ns);
    if (now_ - w.inside_ns < slice_ns) return;
    w.inside_ns = now_;
    os::ThreadState state;
    if (looks_asleep(m, w, now_, state)) release_paused();
  }

  // More wait than those that were paused.
  bool fresh_work_waits(const P* p) const {
    const uint32_t next = p->queue.has_next() ? 1 : 0;
    return waiting_ + next > tied();
  }

  void preempt(P* p, M* m, PWord word, Watched& w, Preempt kind) {
    if (now_ - w.asked_ns < resend_ns) return;
    // Another M has to take over.
    if (kind != Preempt::rotate && !want_idle_ms(idle_ms_wanted)) {
      look_again_at(now_ + thread_start_ns);
      return;
    }
    w.asked_ns = now_;
    asked_ = true;
    if (m->checks.load(relaxed)) {
      m->checks.store(false, relaxed);
      p->preempt.store(true, relaxed);
      w.flag_cpu_ns = os::thread_cpu_ns(m->tid);
    }
    // It gives way at its next checkpoint, if it has a core and one comes soon.
    if (w.flag_cpu_ns >= 0 && os::thread_cpu_ns(m->tid) - w.flag_cpu_ns < least_turn_ns) {
      look_again_at(now_ + resend_ns);
      return;
    }
    request_preempt(m, p, word, kind);
  }

  // Some tied goroutines spin and some do not. One that does not may hold the lock, so a running
  // goroutine that spins is paused for it at once.
  void probe(M* m, P* p, PWord word, Watched& w) {
    const int64_t last = std::max({w.probed_ns, w.asked_ns, w.resumed_ns});
    if (now_ - last < probe_ns) {
      look_again_at(last + probe_ns);
      return;
    }
    look_again_at(now_ + probe_ns);
    w.probed_ns = now_;
    request_preempt(m, p, word, Preempt::if_spinning);
  }

  static int places_for_urgent() {
    return global_queue.urgent_size.load(relaxed) != 0 ? places_for_short : places_for_untried();
  }

  // Its goroutine was asked a moment ago to give way.
  bool was_just_asked(const P* p) const { return now_ - watched[p->id].asked_ns < resend_ns / 2; }

  // Of the Ps whose goroutines could be asked, the one that has run the same for longest.
  P* longest_running() const {
    P* longest = nullptr;
    for (P* p : all_ps()) {
      if (was_just_asked(p) || !still_held(p) || watched[p->id].asleep) continue;
      if (longest == nullptr || watched[p->id].resumed_ns < watched[longest->id].resumed_ns) {
        longest = p;
      }
    }
    return longest;
  }

  // For each urgent goroutine, preempts the one that has run longest, if that is long enough.
  void serve_urgent() {
    if (!urgent_waits()) return;
    auto wanted = static_cast<int>(global_queue.urgent_size.load(relaxed));
    if (untried_may_begin()) wanted += static_cast<int>(global_queue.untried_size.load(relaxed));
    if (!no_idle_p()) {
      wake_p();
      return;
    }
    for (const P* p : all_ps()) {
      if (was_just_asked(p)) --wanted;
    }
    if (wanted > 0 && !may_pause(places_for_urgent())) {
      look_again_at(now_ + pressed_ns);
      return;
    }
    for (; wanted > 0; --wanted) {
      P* p = longest_running();
      if (p == nullptr) break;
      Watched& w = watched[p->id];
      if (now_ - w.resumed_ns < wake_preempt_ns) {
        look_again_at(w.resumed_ns + wake_preempt_ns);
        return;
      }
      const PWord word(w.word);
      M* m = owner_of(word);
      w.asked_ns = 0;
      preempt(p, m, word, w, Preempt::wake);
    }
    look_again_at(now_ + resend_ns / 2);
  }

  void look_again_at(int64_t when_ns) {
    if (when_ns < next_ns_) next_ns_ = when_ns;
  }

  int64_t now_;
  uint32_t waiting_;
  bool pressed_;
  bool took_ = false;
  bool asked_ = false;
  int64_t next_ns_ = no_timer;
};

}  // namespace

bool polled_by_nobody() {
  return poll_state.waiters.load(relaxed) != 0 && idle_ms.poller.load(relaxed) == nullptr;
}

RoundResult run_round(int64_t now) { return Round(now).run(); }

int64_t next_timer_ns() {
  if (!no_idle_p()) return no_timer;
  const int64_t earliest = earliest_timer_ns();
  if (earliest == no_timer) return no_timer;
  int64_t resumed = no_timer;
  for (const P* p : all_ps()) {
    if (still_held(p)) resumed = std::min(resumed, watched[p->id].resumed_ns);
  }
  if (resumed == no_timer) return no_timer;
  const int64_t possible = resumed + wake_preempt_ns;
  return earliest > possible ? earliest : possible;
}

}  // namespace gofer::internal
