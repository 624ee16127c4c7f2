// What a trace says about a program, in numbers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trace/order/reader.h"
#include "trace/summary/kinds.h"
#include "trace/summary/procs.h"

namespace gofer::tool {

/// The time from when a goroutine became runnable until it ran.
struct Delay {
  int64_t ns = 0;
  int64_t at_ns = 0;  // when it became runnable
  uint64_t g = none;
  StringId function = 0;
  uint64_t readied_by = none;  // a goroutine
  uint64_t readied_on = none;  // the P of whatever readied it
  uint64_t started_on = none;
  /// The goroutine that ran longest meanwhile, on the P where this one was readied, and for how
  /// long. If it was readied without a P: on the P where it started.
  uint64_t kept_p = none;
  Slice keeper;
};

/// Counts of what the scheduler did. Those after `records` come from Gofer's records.
struct Counts {
  uint64_t starts = 0;
  uint64_t starts_elsewhere = 0;  // on another P than the one where the goroutine was readied
  uint64_t preempted = 0;
  uint64_t yielded = 0;  // stopped for any other reason
  uint64_t syscalls = 0;
  uint64_t syscalls_blocked = 0;  // that ended without the P they began with
  uint64_t procs_taken = 0;

  uint64_t records = 0;
  uint64_t steals = 0;
  uint64_t stolen = 0;  // goroutines
  uint64_t hand_offs = 0;
  uint64_t passes = 0;
  uint64_t pauses = 0;
  std::array<uint64_t, 4> retakes{};  // by RetakeReason
  uint64_t sysmon_rounds = 0;
  uint64_t longest_queue = 0;
  uint64_t longest_global_queue = 0;
};

class Summary {
 public:
  explicit Summary(const Names& names, size_t max_delays)
      : names_(names), max_delays_(max_delays) {}

  void add(const Event& event);
  /// To be called once, after the last event.
  void finish();

  const Names& names() const { return names_; }
  const std::vector<Kind>& kinds() const { return kinds_.kinds(); }
  const std::map<uint64_t, ProcTimes>& procs() const { return procs_.all(); }
  const std::vector<Delay>& delays() const { return delays_; }  // the longest first
  const Counts& counts() const { return counts_; }
  int64_t begin_ns() const { return begin_ns_; }
  int64_t span_ns() const { return last_ns_ - begin_ns_; }

 private:
  void count(const Event& event);
  void count_record(const Event& event);
  void started(const Event& event, const Transition& change, const GoroutineTimes& before);

  const Names& names_;
  size_t max_delays_;
  Kinds kinds_;
  Procs procs_;
  std::vector<Delay> delays_;  // until finish(): a heap, the shortest first
  Counts counts_;
  bool begun_ = false;
  int64_t begin_ns_ = 0;
  int64_t last_ns_ = 0;
};

/// For people, and for programs. `top` limits the kinds in the text; 0: all.
std::string to_text(const Summary& summary, const Reader& reader, size_t top);
std::string to_json(const Summary& summary, const Reader& reader);

}  // namespace gofer::tool
