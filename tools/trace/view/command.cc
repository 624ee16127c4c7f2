// gofer trace view
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "trace/commands.h"
#include "trace/progress.h"
#include "trace/view/page.h"
#include "trace/view/timeline.h"

namespace gofer::tool {
namespace {

struct CloseFile {
  void operator()(FILE* file) const { fclose(file); }
};
using File = std::unique_ptr<FILE, CloseFile>;

[[noreturn]] void fail(const std::string& path) {
  throw OutputError(path + ": " + strerror(errno));
}

}  // namespace

int view_command(const std::string& path, std::string output) {
  if (output.empty()) output = path + ".html";
  return with_trace(path, [&](Reader& reader) {
    std::error_code error;
    if (std::filesystem::equivalent(path, output, error)) {
      throw OutputError(output + ": is the trace itself");
    }
    File file(fopen(output.c_str(), "we"));
    if (!file) fail(output);
    uint64_t bytes = 0;
    PageWriter page([&](std::string_view text) {
      if (fwrite(text.data(), 1, text.size(), file.get()) != text.size()) fail(output);
      bytes += text.size();
    });
    Timeline timeline(reader.names(), [&](std::string_view block) { page.block(block); });
    const auto close = [&](const std::string& damage) {
      const std::string title = std::filesystem::path(path).filename().string();
      page.finish(timeline.finish(reader, title, damage));
      if (fclose(file.release()) != 0) fail(output);
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
    printf("%s: %.1f MB; open it in a browser\n", output.c_str(), static_cast<double>(bytes) / 1e6);
    return exit_ok;
  });
}

}  // namespace gofer::tool
