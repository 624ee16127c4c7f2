// gofer trace check: reads a trace to its end, which applies every rule, and says what it found.
#include <cinttypes>
#include <cstdio>

#include "trace/commands.h"
#include "trace/progress.h"

namespace gofer::tool {

int with_trace(const std::string& path, const std::function<int(Reader&)>& work) {
  try {
    Reader reader(open_file(path));
    return work(reader);
  } catch (const TraceError& error) {
    fflush(stdout);
    fprintf(stderr, "gofer: %s: %s\n", path.c_str(), error.what());
    return exit_damaged;
  } catch (const FileError& error) {
    fflush(stdout);
    const std::string text = error.what();  // names the path if it cannot be opened
    fprintf(stderr, "gofer: %s%s\n", text.starts_with(path) ? "" : (path + ": ").c_str(),
            text.c_str());
    return exit_unusable;
  } catch (const OutputError& error) {
    fprintf(stderr, "gofer: %s\n", error.what());
    return exit_unusable;
  } catch (const std::bad_alloc&) {
    fprintf(stderr, "gofer: %s: out of memory\n", path.c_str());
    return exit_unusable;
  }
}

int check_command(const std::string& path) {
  return with_trace(path, [&](Reader& reader) {
    {
      Progress progress;
      Event event;
      while (reader.next(event)) progress.step(reader.position(), reader.size());
    }
    const Reader::Totals& totals = reader.totals();
    const Order& order = reader.order();
    printf("%s: valid\n", path.c_str());
    printf("format go 1.%d, %" PRIu64 " generations, %" PRIu64 " events, %.6f s\n",
           reader.version(), totals.generations, totals.events,
           static_cast<double>(totals.last_ns - totals.first_ns) / 1e9);
    printf("%zu Ps, %zu Ms, %" PRIu64 " goroutines, of which %zu are alive at the end\n",
           order.procs(), order.threads(), order.goroutines_seen(), order.live_goroutines());
    if (totals.records != 0) printf("%" PRIu64 " records of Gofer\n", totals.records);
    if (totals.samples != 0) printf("%" PRIu64 " CPU samples\n", totals.samples);
    if (totals.late != 0) {
      printf("%" PRIu64 " events come later than their clock says, by up to %" PRId64 " ns\n",
             totals.late, totals.max_late_ns);
    }
    return exit_ok;
  });
}

}  // namespace gofer::tool
