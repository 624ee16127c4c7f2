// The rules for events of goroutines.
#include "trace/order/order.h"

namespace gofer::tool {
namespace {

GoState state_of(GoStatus status) {
  switch (status) {
    case GoStatus::runnable:
      return GoState::runnable;
    case GoStatus::running:
      return GoState::running;
    case GoStatus::syscall:
      return GoState::syscall;
    case GoStatus::waiting:
      return GoState::waiting;
    case GoStatus::bad:
      break;
  }
  return GoState::undetermined;
}

std::string name(const GState& g) { return "goroutine " + std::to_string(g.id); }

/// Throws Violation unless g is in a system call.
void require_syscall(const GState& g) {
  if (g.status != GoStatus::syscall) {
    throw Violation(name(g) + " must be in a system call, and is " +
                    std::string(to_string(g.status)));
  }
}

}  // namespace

// A goroutine is created on a P: by a goroutine, or by none (a timer, the netpoller).
bool Order::go_create(Event& event, MState& m) {
  require(m, Need::yes, Need::maybe);
  if (m.g != nullptr) (void)running_goroutine(m);
  const bool blocked = event.type == EventType::go_create_blocked;
  add_goroutine(event.args[0], blocked ? GoStatus::waiting : GoStatus::runnable);
  event.add(Transition::go(event.args[0], GoState::absent,
                           blocked ? GoState::waiting : GoState::runnable));
  return true;
}

// A foreign thread becomes an M, with a goroutine that is in a call out of the runtime.
bool Order::go_create_syscall(Event& event, MState& m) {
  require(m, Need::maybe, Need::no);
  bind(m, add_goroutine(event.args[0], GoStatus::syscall));
  event.add(Transition::go(event.args[0], GoState::absent, GoState::syscall));
  return true;
}

bool Order::go_start(Event& event, MState& m) {
  GState* const g = gs_.find(event.args[0]);
  if (g == nullptr || g->status != GoStatus::runnable ||
      !g->sequence.is_next(generation_, event.args[1])) {
    return false;
  }
  require(m, Need::yes, Need::no);
  ++g->sequence.number;
  g->status = GoStatus::running;
  bind(m, *g);
  event.add(Transition::go(g->id, GoState::runnable, GoState::running));
  return true;
}

// GoDestroy, GoStop, GoBlock: the running goroutine leaves its M.
bool Order::go_stop(Event& event, MState& m) {
  GState& g = running_goroutine(m);
  GoState to = GoState::absent;
  if (event.type == EventType::go_stop) {
    to = GoState::runnable;
    g.status = GoStatus::runnable;
  } else if (event.type == EventType::go_block) {
    to = GoState::waiting;
    g.status = GoStatus::waiting;
  }
  event.add(Transition::go(g.id, GoState::running, to));
  if (to == GoState::absent) {
    remove_goroutine(g);
  } else {
    unbind(g);
  }
  return true;
}

// Anything may ready a goroutine, without a P or an M too.
bool Order::go_unblock(Event& event) {
  GState* const g = gs_.find(event.args[0]);
  if (g == nullptr || g->status != GoStatus::waiting ||
      !g->sequence.is_next(generation_, event.args[1])) {
    return false;
  }
  ++g->sequence.number;
  g->status = GoStatus::runnable;
  event.add(Transition::go(g->id, GoState::waiting, GoState::runnable));
  return true;
}

// One goroutine gives its M directly to a waiting one.
bool Order::go_switch(Event& event, MState& m) {
  GState& g = running_goroutine(m);
  GState* const next = gs_.find(event.args[0]);
  if (next == nullptr || next->status != GoStatus::waiting ||
      !next->sequence.is_next(generation_, event.args[1])) {
    return false;
  }
  const bool ends = event.type == EventType::go_switch_destroy;
  event.add(Transition::go(next->id, GoState::waiting, GoState::runnable));
  event.add(Transition::go(g.id, GoState::running, ends ? GoState::absent : GoState::waiting));
  event.add(Transition::go(next->id, GoState::runnable, GoState::running));
  if (ends) {
    remove_goroutine(g);
  } else {
    g.status = GoStatus::waiting;
    unbind(g);
  }
  ++next->sequence.number;
  next->status = GoStatus::running;
  bind(m, *next);
  return true;
}

// The number is one of the P: it says which of the P's calls a later ProcSteal ends.
bool Order::go_syscall_begin(Event& event, MState& m) {
  GState& g = running_goroutine(m);
  PState& p = *m.p;
  if (!p.sequence.is_next(generation_, event.args[0])) {
    throw Violation(
        "p_seq must be " + std::to_string(p.sequence.number + 1) + " for P " +
        std::to_string(p.id) +
        (p.sequence.generation == generation_ ? "" : ", which has no status in this generation"));
  }
  ++p.sequence.number;
  g.status = GoStatus::syscall;
  p.status = ProcStatus::syscall;
  event.add(Transition::go(g.id, GoState::running, GoState::syscall));
  event.add(Transition::proc(p.id, ProcState::running, ProcState::syscall));
  return true;
}

// The call returned, and the M still has its P.
bool Order::go_syscall_end(Event& event, MState& m) {
  require(m, Need::yes, Need::yes);
  GState& g = *m.g;
  PState& p = *m.p;
  require_syscall(g);
  if (p.status != ProcStatus::syscall) {
    throw Violation("P " + std::to_string(p.id) + " must be in a system call, and is " +
                    std::string(to_string(p.status)));
  }
  g.status = GoStatus::running;
  p.status = ProcStatus::running;
  event.add(Transition::go(g.id, GoState::syscall, GoState::running));
  event.add(Transition::proc(p.id, ProcState::syscall, ProcState::running));
  return true;
}

// The call returned, and the M has lost its P, or given it up. It may have another P by now.
bool Order::go_syscall_end_blocked(Event& event, MState& m) {
  if (m.p != nullptr && m.p->status == ProcStatus::syscall) return false;  // the loss comes first
  require(m, Need::maybe, Need::yes);
  GState& g = *m.g;
  require_syscall(g);
  g.status = GoStatus::runnable;
  unbind(g);
  event.add(Transition::go(g.id, GoState::syscall, GoState::runnable));
  return true;
}

// A foreign thread's goroutine ends. The thread may keep its P, but as nobody's: it is abandoned,
// because the thread's id may soon be that of another thread.
bool Order::go_destroy_syscall(Event& event, MState& m) {
  require(m, Need::maybe, Need::yes);
  GState& g = *m.g;
  require_syscall(g);
  event.add(Transition::go(g.id, GoState::syscall, GoState::absent));
  if (m.p != nullptr) {
    PState& p = *m.p;
    if (p.status != ProcStatus::syscall) {
      throw Violation("P " + std::to_string(p.id) + " must be in a system call, and is " +
                      std::string(to_string(p.status)));
    }
    p.status = ProcStatus::syscall_abandoned;
    unbind(p);
    event.add(Transition::proc(p.id, ProcState::syscall, ProcState::idle));
    event.victim_m = m.id;
  }
  remove_goroutine(g);
  return true;
}

// In the first generation it introduces the goroutine. In later ones it repeats what is known.
bool Order::go_status(Event& event, MState& m) {
  const uint64_t id = event.args[0];
  const auto status = static_cast<GoStatus>(event.args[2]);
  if (event.args[2] < 1 || event.args[2] > 4) {
    throw Violation("there is no goroutine status " + std::to_string(event.args[2]));
  }
  GState* g = gs_.find(id);
  const bool is_new = g == nullptr;
  if (!is_new) {
    if (g->status != status) {
      throw Violation(name(*g) + " is " + std::string(to_string(g->status)) +
                      " after the events before");
    }
    g->sequence.restart(generation_);
  } else if (is_first_generation()) {
    g = &add_goroutine(id, status);
  } else {
    throw Violation("goroutine " + std::to_string(id) +
                    " is new: after the first generation only a creation introduces one");
  }
  if (status == GoStatus::running) {
    bind(m, *g);
  } else if (status == GoStatus::syscall) {
    bind_in_syscall(event, m, *g);
  }
  const GoState state = state_of(status);
  event.add(Transition::go(id, is_new ? GoState::undetermined : state, state));
  return true;
}

// The status of a goroutine in a system call names the M of the call, which may be asleep for all
// of the generation, so another M writes the status.
void Order::bind_in_syscall(Event& event, MState& m, GState& g) {
  const uint64_t on = event.args[1];
  if (on == none) throw Violation(name(g) + " is in a system call without an M");
  const bool own = on == m.id;
  MState& named = own ? m : thread(on);
  // Even a call that has lasted since before the trace was announced in the first generation.
  const bool must_have_it = own ? !is_first_generation() : named.seen;
  if (must_have_it && named.g != &g) {
    throw Violation("M " + std::to_string(on) + " must have " + name(g) + ", and has " +
                    (named.g == nullptr ? "none" : name(*named.g)));
  }
  named.seen = true;
  if (!own) {
    event.m = on;
    event.p = none;
    event.g = named.g == nullptr ? none : named.g->id;
  }
  bind(named, g);
}

}  // namespace gofer::tool
