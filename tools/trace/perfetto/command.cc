// gofer trace perfetto
#include <cstdio>
#include <string>
#include <string_view>

#include "trace/commands.h"
#include "trace/output_file.h"
#include "trace/perfetto/convert.h"
#include "trace/progress.h"

namespace gofer::tool {

int perfetto_command(const std::string& path, const std::string& output,
                     const GoroutineTracks& tracks) {
  return with_trace(path, [&](Reader& reader) {
    OutputFile file(output, path);
    PerfettoConverter converter(reader.names(), tracks,
                                [&](std::string_view portion) { file.write(portion); });
    const auto close = [&] {
      converter.finish();
      file.close();
    };
    try {
      Progress progress;
      Event event;
      while (reader.next(event)) {
        converter.add(event);
        progress.step(reader.position(), reader.size());
      }
    } catch (const TraceError&) {
      close();  // what comes before the damage is worth a look
      throw;
    }
    close();
    printf("%s: %.1f MB; open it at ui.perfetto.dev\n", output.c_str(),
           static_cast<double>(file.bytes()) / 1e6);
    return exit_ok;
  });
}

}  // namespace gofer::tool
