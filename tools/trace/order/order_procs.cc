// The rules for events of Ps.
#include "trace/order/order.h"

namespace gofer::tool {
namespace {

std::string name(const PState& p) { return "P " + std::to_string(p.id); }

ProcState state_of(ProcStatus status) {
  switch (status) {
    case ProcStatus::running:
      return ProcState::running;
    case ProcStatus::syscall:
      return ProcState::syscall;
    default:
      return ProcState::idle;  // of an abandoned P nobody knows the M
  }
}

}  // namespace

bool Order::proc_start(Event& event, MState& m) {
  PState* const p = ps_.find(event.args[0]);
  // An M in a system call that still has a P must lose it first.
  if (p == nullptr || p->status != ProcStatus::idle || m.p != nullptr ||
      !p->sequence.is_next(generation_, event.args[1])) {
    return false;
  }
  require(m, Need::no, Need::maybe);
  ++p->sequence.number;
  p->status = ProcStatus::running;
  bind(m, *p);
  event.add(Transition::proc(p->id, ProcState::idle, ProcState::running));
  return true;
}

// An M gives up its own P. It is the only one that could, so there is no number.
bool Order::proc_stop(Event& event, MState& m) {
  require(m, Need::yes, Need::maybe);
  PState& p = *m.p;
  event.add(Transition::proc(p.id, state_of(p.status), ProcState::idle));
  p.status = ProcStatus::idle;
  unbind(p);
  return true;
}

// An M takes a P from another M, which is in a system call, or its own P back from itself.
bool Order::proc_steal(Event& event, MState& m) {
  PState* const p = ps_.find(event.args[0]);
  if (p == nullptr || !p->sequence.is_next(generation_, event.args[1]) ||
      (p->status != ProcStatus::syscall && p->status != ProcStatus::syscall_abandoned)) {
    return false;
  }
  require(m, Need::maybe, Need::maybe);
  ++p->sequence.number;
  const ProcStatus before = p->status;
  p->status = ProcStatus::idle;
  if (before == ProcStatus::syscall_abandoned) {  // whoever had it may be gone
    event.add(Transition::proc(p->id, ProcState::idle, ProcState::idle));
    return true;
  }
  const uint64_t victim = event.args[2];
  if (p->m == nullptr || p->m->id != victim) {
    throw Violation(name(*p) + " is held by " +
                    (p->m == nullptr ? "no M" : "M " + std::to_string(p->m->id)) + ", not by M " +
                    std::to_string(victim));
  }
  event.victim_m = victim;
  event.add(Transition::proc(p->id, ProcState::syscall, ProcState::idle));
  unbind(*p);
  return true;
}

bool Order::proc_status(Event& event, MState& m) {
  const uint64_t id = event.args[0];
  const auto status = static_cast<ProcStatus>(event.args[1]);
  if (event.args[1] < 1 || event.args[1] > 4) {
    throw Violation("there is no P status " + std::to_string(event.args[1]));
  }
  if (id == none) throw Violation("a P with an id of 2^64-1");
  PState* p = ps_.find(id);
  if (p == nullptr) {
    p = &ps_.add(id);
    p->status = status;
    event.add(Transition::proc(
        id, is_first_generation() ? ProcState::undetermined : ProcState::absent, state_of(status)));
  } else if (status == ProcStatus::syscall_abandoned && p->status == ProcStatus::syscall) {
    // A thief speaks, and knows less than the events before: the P is with its M until the steal.
    if (p->m != nullptr) {
      event.m = p->m->id;
      event.p = id;
      event.g = p->m->g == nullptr ? none : p->m->g->id;
    }
    event.add(Transition::proc(id, ProcState::syscall, ProcState::syscall));
  } else if (p->status != status) {
    throw Violation(name(*p) + " is " + std::string(to_string(p->status)) +
                    " after the events before");
  } else {
    event.add(Transition::proc(id, state_of(status), state_of(status)));
  }
  p->sequence.restart(generation_);
  if (status == ProcStatus::running || status == ProcStatus::syscall) bind(m, *p);
  return true;
}

}  // namespace gofer::tool
