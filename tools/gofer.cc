// gofer: looks at what programs that use Gofer leave behind. So far: execution traces.
#include <CLI/CLI.hpp>
#include <string>

#include "trace/commands.h"

namespace {

using namespace gofer::tool;

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Looks at what programs that use Gofer leave behind.", "gofer");
  app.require_subcommand(1);
  int status = exit_ok;

  CLI::App* const trace = app.add_subcommand("trace", "execution traces, Gofer's and Go's");
  trace->require_subcommand(1);

  std::string path;
  CLI::App* const check =
      trace->add_subcommand("check",
                            "read a trace to its end and report the first rule that it breaks\n"
                            "Exit status: 0 valid, 1 damaged, 2 no trace");
  check->add_option("FILE", path, "the trace")->required();
  check->callback([&] { status = check_command(path); });

  bool json = false;
  size_t top = 10;
  CLI::App* const summary =
      trace->add_subcommand("summary", "where the time went: by function, by P, and in delays");
  summary->add_option("FILE", path, "the trace")->required();
  summary->add_flag("--json", json, "for programs");
  summary->add_option("--top", top, "how many functions and delays to show (0: all functions)")
      ->capture_default_str();
  summary->callback([&] { status = summary_command(path, json, top); });

  std::string output;
  GoroutineTracks tracks;
  CLI::App* const perfetto =
      trace->add_subcommand("perfetto", "write a file that ui.perfetto.dev can show");
  perfetto->add_option("FILE", path, "the trace")->required();
  perfetto->add_option("-o,--output", output, "the file to write")->required();
  perfetto->add_flag("--goroutines", tracks.all, "a track for each goroutine, too");
  perfetto->add_option("--goroutine", tracks.ids, "a track for this goroutine (may be repeated)");
  perfetto->callback([&] { status = perfetto_command(path, output, tracks); });

#if GOFER_TRACE_VIEW
  std::string page;
  CLI::App* const view =
      trace->add_subcommand("view", "write a page that shows the trace in a browser");
  view->add_option("FILE", path, "the trace")->required();
  view->add_option("-o,--output", page, "the page to write (without it: FILE.html)");
  view->callback([&] { status = view_command(path, page); });
#endif

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_ok : exit_unusable;
  }
  return status;
}
