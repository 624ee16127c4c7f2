// The subcommands of `gofer trace`. Each returns the exit status of the process.
#pragma once

#include <functional>
#include <string>

#include "trace/order/reader.h"
#include "trace/perfetto/convert.h"

namespace gofer::tool {

constexpr int exit_ok = 0;
constexpr int exit_damaged = 1;   // the file is a trace, but a damaged one
constexpr int exit_unusable = 2;  // wrong usage, no file, no trace, or no output

int check_command(const std::string& path);

/// `top` limits the functions and the delays that are shown; 0: all functions.
int summary_command(const std::string& path, bool json, size_t top);

/// Writes what Perfetto can show to `output`.
int perfetto_command(const std::string& path, const std::string& output,
                     const GoroutineTracks& tracks);

/// Writes a page that shows the trace in a browser. Without `output` the name is path's and
/// ".html". Only there if zlib was at build time.
int view_command(const std::string& path, std::string output);

/// The result cannot be written.
class OutputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Opens path, calls `work`, and turns what it throws into a message and a status.
int with_trace(const std::string& path, const std::function<int(Reader&)>& work);

}  // namespace gofer::tool
