// Why an event waits: the text of the message if it waits in vain.
#include "trace/order/order.h"

namespace gofer::tool {
namespace {

/// What keeps an event with this number from being the next of a goroutine or a P.
Obstacle number_obstacle(const std::string& who, const std::string& field, const Sequence& sequence,
                         uint64_t generation, uint64_t number) {
  if (sequence.generation != generation) {
    return {who + " has neither a status nor a creation in this generation", false};
  }
  if (number == sequence.number + 1) return {};
  return {field + " must be " + std::to_string(sequence.number + 1) + " for " + who,
          number <= sequence.number};
}

}  // namespace

Obstacle Order::obstacle(const Event& event, const MState& m) const {
  using enum EventType;
  const uint64_t id = event.args[0];
  switch (event.type) {
    case EventType::go_start:
    case EventType::go_unblock:
    case EventType::go_switch:
    case go_switch_destroy: {
      const std::string who = "goroutine " + std::to_string(id);
      const GState* const g = gs_.find(id);
      if (g == nullptr) return {who + " does not exist", false};
      Obstacle result = number_obstacle(who, "g_seq", g->sequence, generation_, event.args[1]);
      if (!result.text.empty()) return result;
      const auto wanted =
          event.type == EventType::go_start ? GoStatus::runnable : GoStatus::waiting;
      return {who + " must be " + std::string(to_string(wanted)) + ", and is " +
                  std::string(to_string(g->status)),
              false};
    }
    case EventType::proc_start:
    case EventType::proc_steal: {
      const std::string who = "P " + std::to_string(id);
      const PState* const p = ps_.find(id);
      if (p == nullptr) return {who + " has no status yet", false};
      Obstacle result = number_obstacle(who, "p_seq", p->sequence, generation_, event.args[1]);
      if (!result.text.empty()) return result;
      if (event.type == EventType::proc_start && m.p != nullptr) {
        return {"its M holds P " + std::to_string(m.p->id) + " already", false};
      }
      const auto wanted =
          event.type == EventType::proc_start ? ProcStatus::idle : ProcStatus::syscall;
      return {who + " must be " + std::string(to_string(wanted)) + ", and is " +
                  std::string(to_string(p->status)),
              false};
    }
    case EventType::go_syscall_end_blocked:
      return {"its M holds P " + (m.p == nullptr ? "?" : std::to_string(m.p->id)) +
                  " in the system call, so a ProcStop or ProcSteal must come first",
              false};
    default:
      return {"gc_seq must be " + std::to_string(collector_sequence_ + 1),
              id <= collector_sequence_};
  }
}

}  // namespace gofer::tool
