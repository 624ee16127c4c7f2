// The file that a command writes. Errors are thrown as OutputError.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace gofer::tool {

class OutputFile {
 public:
  /// Creates the file, or makes it empty. Refuses to do so if `path` is that of the trace itself.
  /// Not to be called before the trace has proved to be one: the old file may be of value.
  OutputFile(std::string path, const std::string& trace);

  void write(std::string_view bytes);
  /// What is in the file then is complete.
  void close();

  uint64_t bytes() const { return bytes_; }

 private:
  struct Close {
    void operator()(FILE* file) const { fclose(file); }
  };

  [[noreturn]] void fail() const;

  std::string path_;
  std::unique_ptr<FILE, Close> file_;
  uint64_t bytes_ = 0;
};

}  // namespace gofer::tool
