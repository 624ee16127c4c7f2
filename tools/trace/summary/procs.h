// What each P does over time, and which goroutine it ran last.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "trace/reader/event.h"
#include "trace/summary/kinds.h"

namespace gofer::tool {

enum class ProcUse : uint8_t { running, syscall, scheduling, idle };
constexpr int proc_uses = 4;

/// A stretch of time in which a P ran one goroutine.
struct Slice {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  uint64_t g = none;
  StringId function = 0;
};

struct ProcTimes {
  int64_t ns[proc_uses] = {};  // by ProcUse
  uint64_t starts = 0;         // of goroutines

  bool only_status = false;  // nothing has happened since its status
  ProcUse use = ProcUse::idle;
  int64_t since_ns = 0;
  uint64_t g = none;  // that it runs
  StringId function = 0;
  std::deque<Slice> recent;  // the last of its slices
};

class Procs {
 public:
  /// When the trace begins. Statuses are written when a P is first mentioned, and hold since then.
  void begin(int64_t now_ns) { begin_ns_ = now_ns; }
  /// To be called after Kinds has taken the event's changes.
  void add(const Event& event, const Kinds& kinds);
  void finish(int64_t now_ns);

  const std::map<uint64_t, ProcTimes>& all() const { return procs_; }

  /// The goroutine that ran longest on P p between two times, as one slice of that length.
  Slice longest_between(uint64_t p, int64_t begin_ns, int64_t end_ns) const;

 private:
  void set(uint64_t p, ProcUse use, int64_t now_ns, uint64_t g, const Kinds& kinds);

  void introduce(const Event& event, const Transition& change);

  int64_t begin_ns_ = 0;
  std::map<uint64_t, ProcTimes> procs_;
};

}  // namespace gofer::tool
