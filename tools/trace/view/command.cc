// gofer trace view
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include "trace/commands.h"
#include "trace/output_file.h"
#include "trace/progress.h"
#include "trace/view/page.h"
#include "trace/view/timeline.h"

namespace gofer::tool {

int view_command(const std::string& path, std::string output) {
  if (output.empty()) output = path + ".html";
  return with_trace(path, [&](Reader& reader) {
    OutputFile file(output, path);
    PageWriter page([&](std::string_view text) { file.write(text); });
    Timeline timeline(reader.names(), [&](std::string_view block) { page.block(block); });
    const auto close = [&](const std::string& damage) {
      const std::string title = std::filesystem::path(path).filename().string();
      page.finish(timeline.finish(reader, title, damage));
      file.close();
    };
    try {
      Progress progress;
      Event event;
      while (reader.next(event)) {
        timeline.add(event);
        progress.step(reader.position(), reader.size());
      }
    } catch (const TraceError& damage) {
      close(damage.what());  // what comes before the damage is worth a look
      throw;
    }
    close("");
    printf("%s: %.1f MB; open it in a browser\n", output.c_str(),
           static_cast<double>(file.bytes()) / 1e6);
    return exit_ok;
  });
}

}  // namespace gofer::tool
