// Recording a trace in a test, and what is in it. Reading applies every rule of docs/TRACING.md.
#pragma once

#include <gofer/trace.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "trace/order/reader.h"

namespace gofer::test {

struct TraceContents {
  bool valid = false;
  std::string error;
  uint64_t generations = 0;
  std::map<std::string, uint64_t> events;   // by name
  std::map<std::string, uint64_t> blocks;   // by reason
  std::map<std::string, uint64_t> stops;    // by reason
  std::map<uint64_t, uint64_t> records;     // by kind
  std::map<std::string, uint64_t> created;  // by function
  std::set<std::string> texts;              // of marks
  // By event, or reason to block: the functions from the innermost to that of the goroutine, each
  // with a space before and behind it.
  std::map<std::string, std::set<std::string>> stacks;
  uint64_t count(const std::string& event) const {
    const auto found = events.find(event);
    return found != events.end() ? found->second : 0;
  }
};

inline TraceContents read_trace(const std::string& path) {
  using namespace tool;
  TraceContents contents;
  try {
    Reader reader(open_file(path));
    const auto text = [&](uint64_t id) {
      return std::string(reader.names().string(static_cast<StringId>(id)));
    };
    const auto functions = [&](tool::StackId id) {
      std::string all = " ";
      for (size_t i = 0; id != 0 && i < reader.names().depth(id); ++i) {
        all += text(reader.names().frame(id, i).function) + " ";
      }
      return all;
    };
    tool::Event event;
    while (reader.next(event)) {
      if (event.type == EventType::gofer_record) {
        ++contents.records[event.record];
        continue;
      }
      ++contents.events[std::string(event_spec(event.type).name)];
      if (event.stack() != 0) {
        const std::string name(event.type == EventType::go_block ? text(event.args[0])
                                                                 : event_spec(event.type).name);
        contents.stacks[name].insert(functions(event.stack()));
      }
      if (event.type == EventType::go_block) ++contents.blocks[text(event.args[0])];
      if (event.type == EventType::go_stop) ++contents.stops[text(event.args[0])];
      if (event.type == EventType::user_task_begin) contents.texts.insert(text(event.args[2]));
      if (event.type == EventType::user_region_begin) contents.texts.insert(text(event.args[1]));
      if (event.type == EventType::user_log) {
        contents.texts.insert(text(event.args[1]) + ": " + text(event.args[2]));
      }
      if (event.type == EventType::go_create) {
        const auto stack = static_cast<StackId>(event.args[1]);
        ++contents.created[text(reader.names().outermost(stack))];
      }
    }
    contents.generations = reader.totals().generations;
    contents.valid = true;
  } catch (const std::exception& error) {
    contents.error = error.what();
  }
  return contents;
}

/// A name that no file has. The file is removed at the end, unless the test has failed.
class TraceFile {
 public:
  TraceFile() {
    static std::atomic<int> last{0};
    path_ = std::filesystem::temp_directory_path() /
            ("gofer-trace-" + std::to_string(getpid()) + "-" + std::to_string(++last));
  }
  ~TraceFile() {
    if (!testing::Test::HasFailure()) std::filesystem::remove(path_);
  }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  const char* path() const { return path_.c_str(); }

  TraceContents read() const {
    TraceContents contents = read_trace(path_);
    EXPECT_TRUE(contents.valid) << path_ << ": " << contents.error;
    return contents;
  }

 private:
  std::string path_;
};

/// Where Go is installed: its own reader finds no mistake.
inline bool has_go() { return access("/usr/local/go/bin/go", X_OK) == 0; }
inline bool is_accepted_by_go(const std::string& path) {
  const std::string command = "/usr/local/go/bin/go tool trace -d=parsed " + path + " >/dev/null";
  return std::system(command.c_str()) == 0;
}

/// Records what f does.
template <class F>
TraceContents traced(F&& f) {
  const TraceFile file;
  trace::start(file.path());
  f();
  trace::stop();
  return file.read();
}

}  // namespace gofer::test
