// An event as the reader delivers it: in order, with its context, and with what it changes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "trace/reader/error.h"
#include "trace/reader/event_types.h"
#include "trace/reader/names.h"

namespace gofer::tool {

enum class GoState : uint8_t { undetermined, absent, runnable, running, syscall, waiting };
/// A P in a system call is one whose M is in a system call and may lose it.
enum class ProcState : uint8_t { undetermined, absent, running, idle, syscall };

/// One change of state of one goroutine or one P.
///
/// Most events make one, and some none. GoSwitch makes three: it readies the next goroutine, stops
/// the current one, and starts the next. `undetermined` is the state before the first generation's
/// status. In later generations a status event changes nothing, and so makes a transition to the
/// same state.
struct Transition {
  bool is_proc = false;
  uint8_t from = 0;  // a GoState or a ProcState
  uint8_t to = 0;
  uint64_t id = none;

  GoState go_from() const { return static_cast<GoState>(from); }
  GoState go_to() const { return static_cast<GoState>(to); }
  ProcState proc_from() const { return static_cast<ProcState>(from); }
  ProcState proc_to() const { return static_cast<ProcState>(to); }

  static Transition go(uint64_t id, GoState from, GoState to) {
    return {false, static_cast<uint8_t>(from), static_cast<uint8_t>(to), id};
  }
  static Transition proc(uint64_t id, ProcState from, ProcState to) {
    return {true, static_cast<uint8_t>(from), static_cast<uint8_t>(to), id};
  }
};

struct Event {
  int64_t time_ns = 0;  // never decreases from event to event
  uint64_t m = none;    // whose buffer it was in
  uint64_t p = none;    // the P and the goroutine of m before the event
  uint64_t g = none;
  /// In the order of EventSpec, with the numbers of strings and stacks replaced by those of Names.
  std::array<uint64_t, max_args> args{};
  EventType type = EventType::invalid;
  uint8_t record = 0;  // of a gofer_record: its RecordKind
  uint8_t change_count = 0;
  std::array<Transition, 3> change_list{};
  /// For a P that an event takes from another M, that M. Otherwise `none`.
  uint64_t victim_m = none;

  uint64_t generation = 0;
  uint64_t offset = 0;  // in the file

  std::span<const Transition> changes() const { return {change_list.data(), change_count}; }
  void add(const Transition& change) { change_list[change_count++] = change; }

  /// The stack of g, or in a CPU sample the sampled one. 0: none.
  StackId stack() const {
    const int index = stack_arg(type);
    return index < 0 ? 0 : static_cast<StackId>(args[static_cast<size_t>(index)]);
  }
};

/// The event's name and arguments, as in "GoStart g=17 g_seq=4".
std::string describe(const Event& event);

}  // namespace gofer::tool
