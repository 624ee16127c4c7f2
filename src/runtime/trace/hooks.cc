// What the transitions of goroutines, Ps and Ms are as events.
//
// Most of it is plain: one transition, one event. What is not:
//
//   - A goroutine that parks, yields or ends says so on its own stack, before the switch. Nobody
//     can ready it before the commit, so the event precedes whatever others do with it.
//   - A P that is taken from an M. The format has it that a running goroutine loses no P: it has to
//     be in a system call. So whoever is the first of the taker and the M itself (which enters the
//     runtime, and notices) writes into the M's stream that the goroutine is in a call and that the
//     P is gone. The taker does it before anybody else can get the P, which orders the counts of
//     the P's events.
//   - A goroutine that has lost its P goes on computing as far as it can. The trace shows a call.
//   - A goroutine that was paused, or comes back and finds no P, is runnable, and starts on the
//     same M later. A paused one that is released computes without a P: it stays runnable in the
//     trace.
//   - Threads that are no Ms create goroutines: their stream is that of an M which creates them in
//     a call, without a P, and ends that call.
//
// Rejected: ProcSteal in the taker's stream. It waits for the victim's GoSyscallBegin there, so two
// streams have to be written in one order; in the victim's own stream the order is that of the
// bytes, and the format allows it.
#include "runtime/trace/hooks.h"
#include "runtime/procs/current.h"
#include "runtime/procs/p_table.h"
#include "runtime/procs/p_word.h"
#include "runtime/procs/retake.h"
#include "runtime/procs/stop_world.h"
#include "runtime/sched/global_queue.h"
#include "runtime/threads/m.h"
#include "runtime/trace/stacks.h"
#include "runtime/trace/tables.h"
#include "runtime/trace/writer.h"
#include "runtime/watch/preempt.h"

namespace gofer::internal::tracer {

constinit atomic<bool> on{false};

// --- Goroutines.

void created(M* by, G* g) {
  const uint64_t own_stack = stack_of_entry(g);
  Stack* stack = by != nullptr ? stack_here(by) : nullptr;
  const uint64_t creator = stack == nullptr ? stack_of_creator(g) : 0;
  write_as(by, [&](Writer& w) {
    if (by == nullptr || w.stream().p == nullptr) {
      w.mention_new(g);
      w.event(Event::go_create_syscall, g->id);
      w.event(Event::go_syscall_end_blocked);
      return;
    }
    w.need_running();
    w.mention_new(g);
    mark_used(own_stack, w.generation());
    mark_used(creator, w.generation());
    w.event(Event::go_create, g->id, own_stack, stack != nullptr ? w.use(stack) : creator);
  });
}

void begins(M* m, G* g) {
  write_as(m, [&](Writer& w) { w.start_g(g); });
}

void ends(M* m) {
  write_as(m, [&](Writer& w) {
    w.need_running();
    w.event(Event::go_destroy);
    w.stream().g = nullptr;
  });
}

void parks(M* m, WaitReason reason) {
  Stack* stack = stack_here(m);
  write_as(m, [&](Writer& w) {
    w.need_running();
    w.event(Event::go_block, reason_string(reason), w.use(stack));
    w.stream().g = nullptr;
  });
}

void yields(M* m) {
  Stack* stack = stack_here(m);
  write_as(m, [&](Writer& w) {
    w.need_running();
    w.event(Event::go_stop, yield_string, w.use(stack));
    w.stream().g = nullptr;
  });
}

void readied(M* by, G* g) {
  Stack* stack = by != nullptr ? stack_here(by) : nullptr;
  write_as(by, [&](Writer& w) {
    w.mention(g, GoStatus::waiting);
    w.event(Event::go_unblock, g->id, w.count(g), w.use(stack));
  });
}

void waits_tied(M* m) {
  Stack* stack = stack_here(m);
  write_as(m, [&](Writer& w) {
    Stream& s = w.stream();
    if (s.g == nullptr) return;  // released before, and runnable all the time
    if (s.p == nullptr) {
      w.end_call_without_p();
      return;
    }
    w.need_running();
    w.event(Event::go_stop, preempted_string, w.use(stack));
    s.g = nullptr;
  });
}

void calls(M* m) {
  const InsideTrace inside(m);
  Stack* stack = stack_here(m);
  write_as(m, [&](Writer& w) {
    Stream& s = w.stream();
    if (s.p != nullptr && s.g != nullptr && !s.in_call) w.begin_call(stack);
  });
}

void call_ended(M* m) {
  write_as(m, [&](Writer& w) { w.need_running(); });
}

void noticed_loss(M* m) {
  write_as(m, [&](Writer& w) { w.lose_p(); });
}

// --- Ps.

namespace {

// The goroutine that goes on when m gets a P, unless it has yet to be resumed.
G* running_on(const M* m) {
  G* g = m->curg;
  return g != nullptr && g->status.load(relaxed) == GStatus::running ? g : nullptr;
}

void take_up(Writer& w, P* p, G* g) {
  w.start_p(p);
  if (g != nullptr) w.go_on(g);
}

}  // namespace

void acquired(M* m, P* p) {
  write_as(m, [&](Writer& w) { take_up(w, p, running_on(m)); });
}

void given_up(M* m) {
  write_as(m, [&](Writer& w) { w.stop_p(); });
}

namespace {
enum class RetakeReason : uint8_t { asleep, announced, slice, stop_the_world };
}

// An M without a stream has held no P since the trace began.
void retaken(P* p, const M* owner) {
  Stream* s = owner->stream.load(acquire);
  if (s == nullptr) return;
  begin_visit(*s);
  if (Writer w(*s); w && s->p == p) {
    w.state();
    RetakeReason why = s->in_call ? RetakeReason::announced : RetakeReason::asleep;
    if (world.stopping.load(relaxed)) why = RetakeReason::stop_the_world;
    w.lose_p();
    w.record(Record::retake, p->id, owner->id, static_cast<uint64_t>(why));
  }
  end_visit(*s);
}

// Once the word says that m has its P again, m may write events at once. So the visit begins
// before.
G* giving_back(M* m) {
  if (Stream* s = stream_of(m); s != nullptr) {
    begin_visit(*s);
  } else {
    fail(ENOMEM);
  }
  return running_on(m);
}

void gave_back(M* m, P* p, G* g, bool given) {
  Stream* s = m->stream.load(acquire);
  if (s == nullptr) return;
  if (given) {
    if (Writer w(*s); w) {
      w.state();
      take_up(w, p, g);
    }
  }
  end_visit(*s);
}

// --- Gofer's own records.

namespace {

enum class PauseMeans : uint8_t { signal, prologue };

// M that writes for the calling thread.
template <class F>
void write_here(F&& f) {
  write_as(current_m(), f);
}

}  // namespace

void became_next(P* p, G* g, G* displaced) {
  write_here([&](Writer& w) {
    w.record(Record::runnext, p->id, g->id, displaced != nullptr ? displaced->id : 0);
  });
}

void stole(M* m, P* thief, P* victim, uint32_t taken) {
  write_as(m, [&](Writer& w) {
    w.record(Record::steal, thief->id, victim->id, taken, victim->queue.size());
  });
}

void sent(M* m, P* p) {
  const M* from = current_m();
  write_here(
      [&](Writer& w) { w.record(Record::hand_off, p->id, from != nullptr ? from->id : 0, m->id); });
}

void paused(M* m, P* p, bool by_signal) {
  const PauseMeans means = by_signal ? PauseMeans::signal : PauseMeans::prologue;
  write_as(m, [&](Writer& w) {
    w.record(Record::pause, m->curg->id, m->id, p->id, static_cast<uint64_t>(means));
  });
}

void passed(M* m, P* p, M* tied) {
  if (tied == nullptr || tied->own_g == nullptr) return;
  write_as(m, [&](Writer& w) { w.record(Record::pass, p->id, m->id, tied->id, tied->own_g->id); });
}

void sysmon_round(int64_t slept_ns) {
  static uint64_t retaken = 0;
  static uint64_t paused = 0;
  write_as(nullptr, [&](Writer& w) {
    const uint64_t all_retaken = taking.retaken.load(relaxed);
    const uint64_t all_paused = preemption.paused.load(relaxed);
    w.record(Record::sysmon_round, slept_ns, all_retaken - retaken, all_paused - paused);
    retaken = all_retaken;
    paused = all_paused;
    for (P* p : all_ps()) w.record(Record::queue, p->id, p->queue.size(), 0);
    w.record(Record::global_queue, global_queue.size.load(relaxed));
  });
}

// --- The whole.

void world_stopped(M* m) {
  if (m == nullptr) return;
  Stack* stack = stack_here(m);
  write_as(m, [&](Writer& w) {
    Stream& s = w.stream();
    if (s.p == nullptr || s.g == nullptr) return;
    w.event(Event::stw_begin, stop_string, w.use(stack));
    s.stopped_world = true;
  });
}

void world_starts(M* m) {
  if (m == nullptr) return;
  write_as(m, [&](Writer& w) {
    Stream& s = w.stream();
    if (!s.stopped_world) return;
    s.stopped_world = false;
    if (s.p != nullptr && s.g != nullptr) w.event(Event::stw_end);
  });
}

void procs_changed(M* m, int procs) {
  if (m == nullptr) return;
  Stack* stack = stack_here(m);
  write_as(m, [&](Writer& w) {
    if (w.stream().p != nullptr && w.stream().g != nullptr) {
      w.event(Event::procs_change, procs, w.use(stack));
    }
  });
}

}  // namespace gofer::internal::tracer
