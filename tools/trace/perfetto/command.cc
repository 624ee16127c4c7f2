// gofer trace perfetto
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "trace/commands.h"
#include "trace/perfetto/convert.h"
#include "trace/progress.h"

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

int perfetto_command(const std::string& path, const std::string& output,
                     const GoroutineTracks& tracks) {
  return with_trace(path, [&](Reader& reader) {
    std::error_code error;
    if (std::filesystem::equivalent(path, output, error)) {
      throw OutputError(output + ": is the trace itself");
    }
    // Not before the trace has proved to be one: an output of the same name may be of value.
    File file(fopen(output.c_str(), "we"));
    if (!file) fail(output);
    uint64_t bytes = 0;
    PerfettoConverter converter(reader.names(), tracks, [&](std::string_view portion) {
      if (fwrite(portion.data(), 1, portion.size(), file.get()) != portion.size()) fail(output);
      bytes += portion.size();
    });
    const auto close = [&] {
      converter.finish();
      if (fclose(file.release()) != 0) fail(output);
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
           static_cast<double>(bytes) / 1e6);
    return exit_ok;
  });
}

}  // namespace gofer::tool
