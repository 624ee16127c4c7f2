#include "trace/summary/procs.h"

#include <algorithm>

namespace gofer::tool {
namespace {

// A delay of several time slices among very short ones is not seen as a whole.
constexpr size_t max_recent = 1024;

}  // namespace

void Procs::set(uint64_t p, ProcUse use, int64_t now_ns, uint64_t g, const Kinds& kinds) {
  if (p == none) return;
  const auto [at, is_new] = procs_.try_emplace(p);
  ProcTimes& proc = at->second;
  if (is_new) proc.since_ns = now_ns;
  proc.ns[static_cast<int>(proc.use)] += now_ns - proc.since_ns;
  if (proc.use == ProcUse::running && proc.g != none) {
    proc.recent.push_back({proc.since_ns, now_ns, proc.g, proc.function});
    if (proc.recent.size() > max_recent) proc.recent.pop_front();
  }
  proc.only_status = false;
  proc.use = use;
  proc.since_ns = now_ns;
  proc.g = use == ProcUse::running ? g : none;
  proc.function = use == ProcUse::running ? kinds.function_of(g) : 0;
}

/// A P's first status. What it runs, if anything, is the subject of a later status.
void Procs::introduce(const Event& event, const Transition& change) {
  ProcTimes& proc = procs_[change.id];
  const bool since_begin = change.proc_from() == ProcState::undetermined;
  proc.since_ns = since_begin ? begin_ns_ : event.time_ns;
  proc.only_status = true;
  proc.use = change.proc_to() == ProcState::running   ? ProcUse::scheduling
             : change.proc_to() == ProcState::syscall ? ProcUse::syscall
                                                      : ProcUse::idle;
}

void Procs::add(const Event& event, const Kinds& kinds) {
  for (const Transition& change : event.changes()) {
    if (change.from == change.to) continue;
    if (!change.is_proc) {
      if (event.p == none) continue;
      if (change.go_to() == GoState::running) {
        ProcTimes& proc = procs_[event.p];
        if (proc.only_status && change.go_from() == GoState::undetermined) {
          proc.use = ProcUse::running;  // and was when its own status was written
          proc.g = change.id;
          proc.function = kinds.function_of(change.id);
        } else {
          set(event.p, ProcUse::running, event.time_ns, change.id, kinds);
        }
        if (change.go_from() == GoState::runnable) ++proc.starts;
      } else if (change.go_from() == GoState::running) {
        set(event.p, ProcUse::scheduling, event.time_ns, none, kinds);
      }
      continue;
    }
    if (event.type == EventType::proc_status) {
      introduce(event, change);
    } else if (change.proc_to() == ProcState::running) {
      const bool runs = event.g != none && kinds.is_running(event.g);
      set(change.id, runs ? ProcUse::running : ProcUse::scheduling, event.time_ns, event.g, kinds);
    } else if (change.proc_to() == ProcState::syscall) {
      set(change.id, ProcUse::syscall, event.time_ns, none, kinds);
    } else {
      set(change.id, ProcUse::idle, event.time_ns, none, kinds);
    }
  }
}

void Procs::finish(int64_t now_ns) {
  for (auto& [id, proc] : procs_) {
    proc.ns[static_cast<int>(proc.use)] += now_ns - proc.since_ns;
    proc.since_ns = now_ns;
  }
}

Slice Procs::longest_between(uint64_t p, int64_t begin_ns, int64_t end_ns) const {
  const auto at = procs_.find(p);
  if (at == procs_.end()) return {};
  const ProcTimes& proc = at->second;
  std::map<uint64_t, Slice> by_goroutine;
  const auto add = [&](const Slice& slice) {
    const int64_t ns = std::min(slice.end_ns, end_ns) - std::max(slice.begin_ns, begin_ns);
    if (ns <= 0 || slice.g == none) return;
    Slice& sum = by_goroutine[slice.g];
    sum.g = slice.g;
    sum.function = slice.function;
    sum.end_ns += ns;
  };
  for (const Slice& slice : proc.recent) add(slice);
  if (proc.use == ProcUse::running) add({proc.since_ns, end_ns, proc.g, proc.function});
  Slice longest;
  for (const auto& [g, slice] : by_goroutine) {
    if (slice.end_ns > longest.end_ns) longest = slice;
  }
  return longest;
}

}  // namespace gofer::tool
