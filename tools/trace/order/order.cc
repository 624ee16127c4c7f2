// Which rule an event is subject to, and what several rules share.
#include "trace/order/order.h"

namespace gofer::tool {

void Order::begin_generation(uint64_t number) {
  if (first_generation_ == 0) first_generation_ = number;
  generation_ = number;
}

MState& Order::thread(uint64_t m) {
  if (m == none) return no_thread_;
  MState* const found = ms_.find(m);
  return found != nullptr ? *found : ms_.add(m);
}

bool Order::advance(Event& event, MState& m) {
  using T = EventType;
  m.seen = true;
  event.p = m.p == nullptr ? none : m.p->id;
  event.g = m.g == nullptr ? none : m.g->id;
  switch (event.type) {
    case T::proc_start:
      return proc_start(event, m);
    case T::proc_stop:
      return proc_stop(event, m);
    case T::proc_steal:
      return proc_steal(event, m);
    case T::proc_status:
      return proc_status(event, m);
    case T::go_create:
    case T::go_create_blocked:
      return go_create(event, m);
    case T::go_create_syscall:
      return go_create_syscall(event, m);
    case T::go_start:
      return go_start(event, m);
    case T::go_destroy:
    case T::go_block:
    case T::go_stop:
      return go_stop(event, m);
    case T::go_unblock:
      return go_unblock(event);
    case T::go_switch_destroy:
    case T::go_switch:
      return go_switch(event, m);
    case T::go_syscall_begin:
      return go_syscall_begin(event, m);
    case T::go_syscall_end:
      return go_syscall_end(event, m);
    case T::go_syscall_end_blocked:
      return go_syscall_end_blocked(event, m);
    case T::go_destroy_syscall:
      return go_destroy_syscall(event, m);
    case T::go_status_stack:
    case T::go_status:
      return go_status(event, m);
    default:
      return other(event, m);
  }
}

void Order::require(const MState& m, Need p, Need g) {
  if (m.id == none) throw Violation("needs an M, and its batch has none");
  if (p == Need::yes && m.p == nullptr) throw Violation("needs a P, and its M holds none");
  if (p == Need::no && m.p != nullptr) {
    throw Violation("its M must hold no P, and holds P " + std::to_string(m.p->id));
  }
  if (g == Need::yes && m.g == nullptr) throw Violation("needs a goroutine, and its M has none");
  if (g == Need::no && m.g != nullptr) {
    throw Violation("its M must have no goroutine, and has goroutine " + std::to_string(m.g->id));
  }
}

GState& Order::running_goroutine(const MState& m) {
  require(m, Need::yes, Need::yes);
  if (m.g->status != GoStatus::running) {
    throw Violation("goroutine " + std::to_string(m.g->id) + " must be running, and is " +
                    std::string(to_string(m.g->status)));
  }
  return *m.g;
}

GState& Order::add_goroutine(uint64_t id, GoStatus status) {
  if (id == none) throw Violation("a goroutine with an id of 2^64-1");
  if (gs_.find(id) != nullptr) {
    throw Violation("goroutine " + std::to_string(id) + " exists already");
  }
  GState& g = gs_.add(id);
  g.status = status;
  g.sequence.restart(generation_);
  ++goroutines_seen_;
  return g;
}

void Order::remove_goroutine(GState& g) {
  if (g.ranges != 0) {
    throw Violation("goroutine " + std::to_string(g.id) +
                    " ends in a stopped world or a mark assist");
  }
  if (g.has_regions) regions_.erase(g.id);
  unbind(g);
  gs_.remove(g);
}

void Order::bind(MState& m, GState& g) {
  if (m.id == none) throw Violation("needs an M, and its batch has none");
  if (m.g != nullptr && m.g != &g) {
    throw Violation("M " + std::to_string(m.id) + " has goroutine " + std::to_string(m.g->id) +
                    ", so it cannot have goroutine " + std::to_string(g.id));
  }
  if (g.m != nullptr && g.m != &m) {
    throw Violation("goroutine " + std::to_string(g.id) + " is on M " + std::to_string(g.m->id) +
                    ", so it cannot be on M " + std::to_string(m.id));
  }
  m.g = &g;
  g.m = &m;
}

void Order::bind(MState& m, PState& p) {
  if (m.id == none) throw Violation("needs an M, and its batch has none");
  if (m.p != nullptr && m.p != &p) {
    throw Violation("M " + std::to_string(m.id) + " holds P " + std::to_string(m.p->id) +
                    ", so it cannot hold P " + std::to_string(p.id));
  }
  if (p.m != nullptr && p.m != &m) {
    throw Violation("P " + std::to_string(p.id) + " is held by M " + std::to_string(p.m->id) +
                    ", so it cannot be held by M " + std::to_string(m.id));
  }
  m.p = &p;
  p.m = &m;
}

void Order::unbind(GState& g) {
  if (g.m != nullptr) g.m->g = nullptr;
  g.m = nullptr;
}

void Order::unbind(PState& p) {
  if (p.m != nullptr) p.m->p = nullptr;
  p.m = nullptr;
}

}  // namespace gofer::tool
