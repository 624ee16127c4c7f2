// How goroutines spend their time, by kind. Goroutines are of one kind if they run the same
// function, which is the outermost one on their stacks.
//
// The function is known from the creation, from a status, or from the first event that has a stack
// of the goroutine. Until then its stays are kept apart, up to a limit.
//
// A stay that began before the trace, or goes on at its end, counts with the part that is in the
// trace.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "trace/reader/event.h"
#include "trace/reader/id_map.h"
#include "trace/summary/histogram.h"

namespace gofer::tool {

/// A state in which a goroutine may stay; if it waits, for a reason (a string of Names; 0: not
/// known).
struct StayKey {
  GoState state = GoState::undetermined;
  StringId reason = 0;
  bool operator==(const StayKey&) const = default;
};

struct Kind {
  StringId function = 0;  // 0: not known
  uint64_t goroutines = 0;
  std::vector<std::pair<StayKey, Histogram>> stays;

  const Histogram* find(StayKey key) const;
  int64_t total_ns(GoState state) const;
};

/// What is known of one goroutine.
struct GoroutineTimes {
  static constexpr uint32_t no_kind = ~uint32_t{0};

  int64_t since_ns = 0;
  StayKey stay;
  uint32_t kind = no_kind;
  uint64_t readied_by = none;  // another goroutine
  uint64_t readied_on_p = none;
};

class Kinds {
 public:
  /// When the trace begins. Statuses are written when a goroutine is first mentioned, and hold
  /// since then.
  void begin(int64_t now_ns) { begin_ns_ = now_ns; }
  /// To be called with each event, before its changes.
  void name_goroutines(const Event& event, const Names& names);
  /// A goroutine's change of state. Returns what is known of it, as it was before the change.
  GoroutineTimes change(const Event& event, const Transition& change);
  /// Ends all stays.
  void finish(int64_t now_ns);

  const std::vector<Kind>& kinds() const { return kinds_; }
  /// The function of a goroutine that is alive, or 0.
  StringId function_of(uint64_t g) const;
  bool is_running(uint64_t g) const;

 private:
  using Stay = std::pair<StayKey, int64_t>;

  void set_kind(uint64_t g, StringId function);
  void add_stay(uint64_t g, GoroutineTimes& times, int64_t now_ns);
  void give_up_naming(uint64_t g, GoroutineTimes& times);

  int64_t begin_ns_ = 0;
  std::vector<Kind> kinds_;
  std::unordered_map<StringId, uint32_t> kind_of_function_;
  IdMap<GoroutineTimes> goroutines_;
  std::unordered_map<uint64_t, std::vector<Stay>> unnamed_;
};

}  // namespace gofer::tool
