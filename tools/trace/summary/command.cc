// gofer trace summary
#include <cstdio>

#include "trace/commands.h"
#include "trace/progress.h"
#include "trace/summary/summary.h"

namespace gofer::tool {

int summary_command(const std::string& path, bool json, size_t top) {
  return with_trace(path, [&](Reader& reader) {
    Summary summary(reader.names(), top == 0 ? 10 : top);
    const auto print = [&] {
      summary.finish();
      const std::string text = json ? to_json(summary, reader) : to_text(summary, reader, top);
      fwrite(text.data(), 1, text.size(), stdout);
    };
    try {
      Progress progress;
      Event event;
      while (reader.next(event)) {
        summary.add(event);
        progress.step(reader.position(), reader.size());
      }
    } catch (const TraceError&) {
      if (reader.totals().events != 0) print();  // of what comes before the damage
      throw;
    }
    print();
    return exit_ok;
  });
}

}  // namespace gofer::tool
