// A trace of goroutines as tracks: one for each P, with a slice for each stay of a goroutine on it;
// system calls as slices within, wake-ups as arrows; and on demand one for each goroutine, with its
// states.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "trace/perfetto/track_events.h"
#include "trace/reader/event.h"
#include "trace/reader/id_map.h"
#include "trace/summary/kinds.h"

namespace gofer::tool {

/// Which goroutines have tracks of their own.
struct GoroutineTracks {
  bool all = false;
  std::set<uint64_t> ids;

  bool has(uint64_t g) const { return all || ids.contains(g); }
};

class PerfettoConverter {
 public:
  PerfettoConverter(const Names& names, GoroutineTracks tracks, TrackEvents::Sink sink);

  void add(const Event& event);
  /// Ends all slices.
  void finish();

 private:
  struct ProcTrack {
    uint64_t track = 0;
    int open = 0;  // slices, one within the other
  };
  struct GoroutineTrack {
    uint64_t track = 0;
    bool open = false;
  };

  ProcTrack& proc(uint64_t p);
  void close(ProcTrack& proc, int down_to, int64_t ns);
  std::string name_of(uint64_t g) const;
  void change_goroutine(const Event& event, const Transition& change);
  void change_proc(const Event& event, const Transition& change);
  void ready(const Event& event, uint64_t g);
  void show_state(const Event& event, const Transition& change);

  const Names& names_;
  GoroutineTracks wanted_;
  TrackEvents out_;
  Kinds kinds_;
  uint64_t procs_track_;
  uint64_t goroutines_track_ = 0;
  uint64_t no_p_track_ = 0;  // of what readies goroutines without a P
  IdMap<ProcTrack> procs_;
  IdMap<GoroutineTrack> goroutines_;
  IdMap<uint64_t> arrows_;  // to goroutines that are runnable
  uint64_t last_arrow_ = 0;
  bool begun_ = false;
  int64_t begin_ns_ = 0;
  int64_t last_ns_ = 0;
};

}  // namespace gofer::tool
