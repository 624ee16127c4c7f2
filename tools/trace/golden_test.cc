// Small traces that Go wrote, and what Go's reader counts in them: tests/trace/data.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "trace/order/reader.h"
#include "trace/summary/summary.h"

namespace gofer::tool {
namespace {

using Counts = std::map<std::string, uint64_t>;

std::string path_of(const std::string& name) { return std::string(GOFER_TRACE_DATA) + "/" + name; }

/// Lines of a number and what it counts.
Counts expected(const std::string& name) {
  std::ifstream file(path_of(name + ".counts"));
  EXPECT_TRUE(file.is_open()) << name;
  Counts counts;
  std::string line;
  while (std::getline(file, line)) {
    const size_t space = line.find(' ');
    counts[line.substr(space + 1)] = std::stoull(line.substr(0, space));
  }
  return counts;
}

std::string go_state(GoState state) {
  constexpr const char* names[] = {"Undetermined", "NotExist", "Runnable",
                                   "Running",      "Syscall",  "Waiting"};
  return names[static_cast<int>(state)];
}

/// Go's reader does not tell a P in a system call from one that runs.
std::string proc_state(ProcState state) {
  constexpr const char* names[] = {"Undetermined", "NotExist", "Running", "Idle", "Running"};
  return names[static_cast<int>(state)];
}

Counts counted(const std::string& name) {
  Reader reader(open_file(path_of(name + ".trace")));
  Counts counts;
  Event event;
  while (reader.next(event)) {
    const bool is_call =
        event.type == EventType::go_syscall_begin || event.type == EventType::go_syscall_end;
    for (const Transition& change : event.changes()) {
      if (change.is_proc) {
        if (is_call) continue;
        ++counts["Proc " + proc_state(change.proc_from()) + " " + proc_state(change.proc_to())];
        continue;
      }
      std::string key = "Go " + go_state(change.go_from()) + " " + go_state(change.go_to());
      if (event.type == EventType::go_block || event.type == EventType::go_stop) {
        key += ": " + std::string(reader.names().string(static_cast<StringId>(event.args[0])));
      }
      ++counts[key];
    }
  }
  return counts;
}

class Golden : public ::testing::TestWithParam<const char*> {};

TEST_P(Golden, ChangesOfStateAreThoseThatGoCounts) {
  EXPECT_EQ(counted(GetParam()), expected(GetParam()));
}

TEST_P(Golden, TheSummaryAgreesWithTheChangesOfState) {
  Reader reader(open_file(path_of(std::string(GetParam()) + ".trace")));
  Summary summary(reader.names(), 10);
  Event event;
  while (reader.next(event)) summary.add(event);
  summary.finish();
  Counts go = expected(GetParam());

  uint64_t goroutines = 0;
  uint64_t blocked_on_channels = 0;
  for (const Kind& kind : summary.kinds()) {
    goroutines += kind.goroutines;
    for (const auto& [key, histogram] : kind.stays) {
      const std::string_view reason = reader.names().string(key.reason);
      if (reason.starts_with("chan ")) blocked_on_channels += histogram.count();
    }
  }
  EXPECT_EQ(goroutines, reader.order().goroutines_seen());
  EXPECT_EQ(blocked_on_channels,
            go["Go Running Waiting: chan receive"] + go["Go Running Waiting: chan send"]);
  EXPECT_EQ(summary.counts().starts, go["Go Runnable Running"]);
  EXPECT_EQ(summary.counts().preempted, go["Go Running Runnable: preempted"]);
  EXPECT_EQ(summary.counts().syscalls, go["Go Running Syscall"]);
  EXPECT_EQ(summary.counts().syscalls_blocked, go["Go Syscall Runnable"]);
  EXPECT_EQ(summary.procs().size(), 2u);
  for (const auto& [id, proc] : summary.procs()) {
    int64_t total = 0;
    for (const int64_t ns : proc.ns) total += ns;
    EXPECT_EQ(total, summary.span_ns());
  }
  EXPECT_NE(to_text(summary, reader, 0).find("main.main"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Data, Golden,
                         ::testing::Values("channels", "calls", "hogs", "generations"),
                         [](const auto& info) { return std::string(info.param); });

TEST(GoldenDamage, AnyByteMayBeWrong) {
  std::ifstream file(path_of("calls.trace"), std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  const std::string good = content.str();
  ASSERT_GT(good.size(), 1000u);
  // Nothing but an error may come of it. Under the sanitizers this is a small fuzzer.
  for (size_t i = 16; i < good.size(); ++i) {
    std::vector<uint8_t> bytes(good.begin(), good.end());
    bytes[i] ^= static_cast<uint8_t>(1 + i % 255);
    try {
      Reader reader(open_bytes(bytes));
      Summary summary(reader.names(), 3);
      Event event;
      while (reader.next(event)) summary.add(event);
      summary.finish();
    } catch (const TraceError&) {
    }
  }
}

TEST(GoldenDamage, AFileThatCannotBeReadIsNamed) {
  for (const char* name : {"missing.trace", "."}) {
    try {
      (void)open_file(path_of(name));
      FAIL();
    } catch (const FileError& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos);
    }
  }
}

}  // namespace
}  // namespace gofer::tool
