#include "trace/output_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "trace/commands.h"

namespace gofer::tool {

OutputFile::OutputFile(std::string path, const std::string& trace) : path_(std::move(path)) {
  std::error_code error;
  if (std::filesystem::equivalent(trace, path_, error)) {
    throw OutputError(path_ + ": is the trace itself");
  }
  file_.reset(fopen(path_.c_str(), "we"));
  if (!file_) fail();
}

void OutputFile::write(std::string_view bytes) {
  if (fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) fail();
  bytes_ += bytes.size();
}

void OutputFile::close() {
  if (fclose(file_.release()) != 0) fail();
}

void OutputFile::fail() const { throw OutputError(path_ + ": " + strerror(errno)); }

}  // namespace gofer::tool
