// A summary for people.
#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>

#include "trace/summary/summary.h"
#include "trace/text.h"

namespace gofer::tool {
namespace {

[[gnu::format(printf, 2, 3)]] void print(std::string& out, const char* format, ...) {
  char line[512];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  out += line;
}

std::string goroutine(const Names& names, uint64_t g, StringId function) {
  std::string text = "goroutine " + std::to_string(g);
  if (function != 0) text += " " + printable(names.string(function));
  return text;
}

void print_stay(std::string& out, const std::string& name, const Histogram& h) {
  print(out, "  %-32s %10s %9" PRIu64 " %10s %10s %10s\n", printable(name).substr(0, 60).c_str(),
        duration(h.total_ns()).c_str(), h.count(), duration(h.quantile(0.5)).c_str(),
        duration(h.quantile(0.99)).c_str(), duration(h.max_ns()).c_str());
}

void print_kind(std::string& out, const Kind& kind, const Names& names) {
  out += kind.function == 0 ? "(no stack seen)" : printable(names.string(kind.function));
  print(out, ": %" PRIu64 "\n", kind.goroutines);
  const auto one = [&](const char* name, GoState state) {
    if (const Histogram* h = kind.find({state, 0})) print_stay(out, name, *h);
  };
  one("running", GoState::running);
  one("runnable", GoState::runnable);
  one("in system calls", GoState::syscall);
  std::vector<const std::pair<StayKey, Histogram>*> waits;
  for (const auto& stay : kind.stays) {
    if (stay.first.state == GoState::waiting) waits.push_back(&stay);
  }
  std::sort(waits.begin(), waits.end(),
            [](auto* a, auto* b) { return a->second.total_ns() > b->second.total_ns(); });
  for (const auto* wait : waits) {
    const StringId reason = wait->first.reason;
    print_stay(out, reason == 0 ? "blocked" : "blocked: " + std::string(names.string(reason)),
               wait->second);
  }
}

void print_kinds(std::string& out, const Summary& summary, size_t top) {
  std::vector<const Kind*> kinds;
  for (const Kind& kind : summary.kinds()) kinds.push_back(&kind);
  std::sort(kinds.begin(), kinds.end(), [](const Kind* a, const Kind* b) {
    return a->total_ns(GoState::running) > b->total_ns(GoState::running);
  });
  print(out, "\nGoroutines by function     %18s %9s %10s %10s %10s\n", "total", "times", "p50",
        "p99", "max");
  const size_t shown = top == 0 ? kinds.size() : std::min(top, kinds.size());
  for (size_t i = 0; i < shown; ++i) print_kind(out, *kinds[i], summary.names());
  if (shown < kinds.size()) {
    print(out, "and %zu more functions that ran less (--top 0 shows all)\n", kinds.size() - shown);
  }
}

void print_procs(std::string& out, const Summary& summary) {
  constexpr size_t max_shown = 64;
  print(out, "\n%-8s %9s %9s %11s %9s %12s\n", "Ps", "running", "in calls", "scheduling", "idle",
        "starts");
  size_t shown = 0;
  for (const auto& [id, proc] : summary.procs()) {
    if (++shown > max_shown) {
      print(out, "and %zu more\n", summary.procs().size() - max_shown);
      break;
    }
    const double all = std::max<double>(1, static_cast<double>(summary.span_ns())) / 100;
    print(out, "P %-6" PRIu64 " %7.1f %% %7.1f %% %9.1f %% %7.1f %% %12" PRIu64 "\n", id,
          static_cast<double>(proc.ns[static_cast<int>(ProcUse::running)]) / all,
          static_cast<double>(proc.ns[static_cast<int>(ProcUse::syscall)]) / all,
          static_cast<double>(proc.ns[static_cast<int>(ProcUse::scheduling)]) / all,
          static_cast<double>(proc.ns[static_cast<int>(ProcUse::idle)]) / all, proc.starts);
  }
}

void print_delays(std::string& out, const Summary& summary) {
  if (summary.delays().empty()) return;
  out += "\nLongest delays from runnable to running\n";
  for (const Delay& delay : summary.delays()) {
    print(out, "%10s at %s: ", duration(delay.ns).c_str(),
          duration(delay.at_ns - summary.begin_ns()).c_str());
    out += goroutine(summary.names(), delay.g, delay.function);
    if (delay.readied_by != none) {
      print(out, ", readied by goroutine %" PRIu64, delay.readied_by);
    }
    if (delay.readied_on != none) print(out, " on P %" PRIu64, delay.readied_on);
    print(out, ", ran on P %" PRIu64 "\n", delay.started_on);
    print(out, "%10s P %" PRIu64, "", delay.kept_p);
    if (delay.keeper.g == none) {
      out += " ran no goroutine meanwhile\n";
    } else {
      out += " meanwhile ran " + goroutine(summary.names(), delay.keeper.g, delay.keeper.function) +
             " for " + duration(delay.keeper.end_ns) + "\n";
    }
  }
}

void print_counts(std::string& out, const Counts& c) {
  print(out,
        "\nScheduler\n"
        "  %" PRIu64 " times a goroutine was started, %" PRIu64
        " of them on another P than where it was readied\n"
        "  %" PRIu64 " preempted, %" PRIu64
        " yielded\n"
        "  %" PRIu64 " system calls, %" PRIu64 " of which lost their P; %" PRIu64
        " times a P was taken from one\n",
        c.starts, c.starts_elsewhere, c.preempted, c.yielded, c.syscalls, c.syscalls_blocked,
        c.procs_taken);
  if (c.records == 0) return;
  print(out,
        "  %" PRIu64 " steals of %" PRIu64 " goroutines, %" PRIu64 " hand-offs, %" PRIu64
        " Ps passed to tied goroutines, %" PRIu64 " goroutines paused\n",
        c.steals, c.stolen, c.hand_offs, c.passes, c.pauses);
  print(out,
        "  Ps retaken: %" PRIu64 " from sleepers, %" PRIu64 " from announced calls, %" PRIu64
        " after a slice, %" PRIu64 " to stop the world\n",
        c.retakes[0], c.retakes[1], c.retakes[2], c.retakes[3]);
  print(out,
        "  %" PRIu64 " rounds of sysmon; longest queue of a P %" PRIu64 ", global queue %" PRIu64
        "\n",
        c.sysmon_rounds, c.longest_queue, c.longest_global_queue);
}

}  // namespace

std::string to_text(const Summary& summary, const Reader& reader, size_t top) {
  std::string out;
  uint64_t goroutines = 0;
  for (const Kind& kind : summary.kinds()) goroutines += kind.goroutines;
  print(out, "%s, %" PRIu64 " events, %" PRIu64 " goroutines of %zu functions, format go 1.%d\n",
        duration(summary.span_ns()).c_str(), reader.totals().events, goroutines,
        summary.kinds().size(), reader.version());
  print_kinds(out, summary, top);
  print_procs(out, summary);
  print_delays(out, summary);
  print_counts(out, summary.counts());
  return out;
}

}  // namespace gofer::tool
