// The rules of a trace: which event may come next, and what it changes.
//
// The events of one M are in order, but clocks of different cores cannot be trusted to order events
// of different Ms. So those events that hand something over from M to M carry sequence numbers:
// each goroutine has one count (GoStart, GoUnblock, GoSwitch) and each P has one (ProcStart,
// ProcSteal, GoSyscallBegin), which start at 0 with the status or creation in each generation. An
// event may be applied when its number is the next one and the states of its goroutine, P and M
// fit. An event that does not fit yet has to wait for events of other Ms; one that can never fit is
// a violation.
//
// The rules are those of Go's reader, and three that Go's reader leaves to its tests: an M runs at
// most one goroutine and holds at most one P, a goroutine or P is on one M at a time, and a
// goroutine ends outside of ranges. Whatever passes here is accepted there. docs/TRACING.md lists
// the rules for writers.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/order/state.h"
#include "trace/reader/event.h"

namespace gofer::tool {

/// A rule that an event breaks. The reader adds the place and makes it a TraceError.
class Violation : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Why an event cannot be applied now.
struct Obstacle {
  std::string text;
  bool forever = false;  // no event of another M can remove it
};

class Order {
 public:
  void begin_generation(uint64_t number);

  MState& thread(uint64_t m);

  /// Applies event, whose M is m: fills in its context and its changes. Returns false, and changes
  /// nothing, if other events have to come first. Throws Violation.
  bool advance(Event& event, MState& m);

  /// Why advance() has returned false.
  Obstacle obstacle(const Event& event, const MState& m) const;

  size_t live_goroutines() const { return gs_.size(); }
  size_t procs() const { return ps_.size(); }
  size_t threads() const { return ms_.size(); }
  /// Goroutines that have been seen, dead ones included.
  uint64_t goroutines_seen() const { return goroutines_seen_; }

 private:
  enum class Need : uint8_t { no, maybe, yes };
  enum class Collector : uint8_t { undetermined, off, on };

  bool is_first_generation() const { return generation_ == first_generation_; }

  // order.cc
  static void require(const MState& m, Need p, Need g);
  static GState& running_goroutine(const MState& m);
  GState& add_goroutine(uint64_t id, GoStatus status);
  void remove_goroutine(GState& g);
  static void bind(MState& m, GState& g);
  static void bind(MState& m, PState& p);
  static void unbind(GState& g);
  static void unbind(PState& p);

  // order_goroutines.cc
  bool go_create(Event& event, MState& m);
  bool go_create_syscall(Event& event, MState& m);
  bool go_start(Event& event, MState& m);
  bool go_stop(Event& event, MState& m);
  bool go_unblock(Event& event);
  bool go_switch(Event& event, MState& m);
  bool go_syscall_begin(Event& event, MState& m);
  bool go_syscall_end(Event& event, MState& m);
  bool go_syscall_end_blocked(Event& event, MState& m);
  bool go_destroy_syscall(Event& event, MState& m);
  bool go_status(Event& event, MState& m);
  void bind_in_syscall(Event& event, MState& m, GState& g);

  // order_procs.cc
  bool proc_start(Event& event, MState& m);
  bool proc_stop(Event& event, MState& m);
  bool proc_steal(Event& event, MState& m);
  bool proc_status(Event& event, MState& m);

  // order_other.cc
  bool other(Event& event, MState& m);
  bool task(const Event& event, const MState& m);
  bool region(const Event& event, const MState& m);
  bool collector(const Event& event, const MState& m);
  static void begin_range(uint8_t& ranges, Range range);
  static void end_range(uint8_t& ranges, Range range);
  void active_range(uint8_t& ranges, Range range) const;

  uint64_t generation_ = 0;
  uint64_t first_generation_ = 0;
  StateTable<GState> gs_;
  StateTable<PState> ps_;
  StateTable<MState> ms_;
  MState no_thread_;
  uint64_t goroutines_seen_ = 0;
  Collector collector_ = Collector::undetermined;
  uint64_t collector_sequence_ = 0;
  IdMap<char> tasks_;
  std::unordered_map<uint64_t, std::vector<std::pair<uint64_t, StringId>>> regions_;
};

}  // namespace gofer::tool
