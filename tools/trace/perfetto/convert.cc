#include "trace/perfetto/convert.h"

#include "trace/text.h"

namespace gofer::tool {

PerfettoConverter::PerfettoConverter(const Names& names, GoroutineTracks tracks,
                                     TrackEvents::Sink sink)
    : names_(names),
      wanted_(std::move(tracks)),
      out_(std::move(sink)),
      procs_track_(out_.add_track("Ps", 0, 1)) {}

PerfettoConverter::ProcTrack& PerfettoConverter::proc(uint64_t p) {
  ProcTrack& proc = procs_[p];
  if (proc.track == 0) proc.track = out_.add_track("P " + std::to_string(p), procs_track_, p);
  return proc;
}

/// Ends the innermost slices of a P until so many are left.
void PerfettoConverter::close(ProcTrack& proc, int down_to, int64_t ns) {
  for (; proc.open > down_to; --proc.open) out_.end(proc.track, ns);
}

std::string PerfettoConverter::name_of(uint64_t g) const {
  const StringId function = kinds_.function_of(g);
  return function == 0 ? "goroutine " + std::to_string(g) : printable(names_.string(function));
}

void PerfettoConverter::add(const Event& event) {
  if (!begun_) {
    begun_ = true;
    begin_ns_ = event.time_ns;
    kinds_.begin(begin_ns_);
  }
  last_ns_ = event.time_ns;
  kinds_.name_goroutines(event, names_);
  for (const Transition& change : event.changes()) {
    if (change.is_proc) {
      change_proc(event, change);
    } else {
      change_goroutine(event, change);
    }
  }
}

void PerfettoConverter::change_goroutine(const Event& event, const Transition& change) {
  (void)kinds_.change(event, change);
  if (change.from == change.to) return;
  // A status holds since the begin of the trace.
  const bool is_first = change.go_from() == GoState::undetermined;
  const int64_t ns = is_first ? begin_ns_ : event.time_ns;
  const bool had_slice =
      change.go_from() == GoState::running || change.go_from() == GoState::syscall;
  const bool has_slice = change.go_to() == GoState::running || change.go_to() == GoState::syscall;
  if (event.p != none && (had_slice || has_slice)) {
    ProcTrack& track = proc(event.p);
    if (!had_slice) {
      close(track, 0, ns);
      uint64_t arrow = 0;
      if (const uint64_t* const found = arrows_.find(change.id)) arrow = *found;
      arrows_.erase(change.id);
      out_.begin(track.track, ns, name_of(change.id), {.arrow_to = arrow, .goroutine = change.id});
      ++track.open;
    }
    if (change.go_to() == GoState::syscall && track.open == 1) {
      out_.begin(track.track, ns, "system call", {});
      ++track.open;
    } else if (change.go_from() == GoState::syscall && change.go_to() == GoState::running) {
      close(track, 1, ns);
    } else if (!has_slice && change.go_from() == GoState::running) {
      close(track, 0, ns);
    }
  }
  if (change.go_to() == GoState::runnable && event.g != change.id && !is_first) {
    ready(event, change.id);
  }
  show_state(event, change);
  if (change.go_to() == GoState::absent) arrows_.erase(change.id);
}

void PerfettoConverter::change_proc(const Event&, const Transition& change) {
  ProcTrack& track = proc(change.id);
  if (change.proc_to() == ProcState::idle) close(track, 0, last_ns_);
}

/// An arrow from here to the slice in which g runs next.
void PerfettoConverter::ready(const Event& event, uint64_t g) {
  uint64_t track = no_p_track_;
  if (event.p != none) {
    track = proc(event.p).track;
  } else if (track == 0) {
    track = no_p_track_ = out_.add_track("without a P", procs_track_, ~uint64_t{0});
  }
  const bool created = event.type == EventType::go_create;
  arrows_[g] = ++last_arrow_;
  out_.instant(track, event.time_ns, created ? "go" : "ready",
               {.arrow_from = last_arrow_, .goroutine = g});
}

/// On the goroutine's own track, if it has one.
void PerfettoConverter::show_state(const Event& event, const Transition& change) {
  if (!wanted_.has(change.id)) return;
  GoroutineTrack& own = goroutines_[change.id];
  if (own.track == 0) {
    if (goroutines_track_ == 0) goroutines_track_ = out_.add_track("Goroutines", 0, 2);
    own.track = out_.add_track(std::to_string(change.id) + " " + name_of(change.id),
                               goroutines_track_, change.id);
  }
  if (own.open) out_.end(own.track, event.time_ns);
  own.open = change.go_to() != GoState::absent;
  if (!own.open) {
    goroutines_.erase(change.id);
    return;
  }
  std::string name;
  switch (change.go_to()) {
    case GoState::running:
      name = event.p == none ? "running" : "running on P " + std::to_string(event.p);
      break;
    case GoState::runnable:
      name = "runnable";
      break;
    case GoState::syscall:
      name = "system call";
      break;
    default: {
      name = "blocked";
      if (event.type != EventType::go_block) break;
      const std::string_view reason = names_.string(static_cast<StringId>(event.args[0]));
      if (!reason.empty()) name += ": " + printable(reason);
    }
  }
  const bool is_first = change.go_from() == GoState::undetermined;
  out_.begin(own.track, is_first ? begin_ns_ : event.time_ns, name, {});
}

void PerfettoConverter::finish() {
  procs_.each([&](uint64_t, ProcTrack& track) { close(track, 0, last_ns_); });
  goroutines_.each([&](uint64_t, GoroutineTrack& own) {
    if (own.open) out_.end(own.track, last_ns_);
  });
  out_.flush();
}

}  // namespace gofer::tool
