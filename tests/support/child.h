// Running one of tests/programs/ as a child process, and looking at what it said and how it ended.
//
//   const ChildResult r = run_child("deadlock", {"main_only"}, {"GOMAXPROCS=3"});
//   EXPECT_TRUE(r.exited_with(2)) << r;
//   EXPECT_TRUE(r.err.contains(...)) << r;
#pragma once

#include <chrono>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace gofer::test {

struct ChildResult {
  int exit_code = -1;      // of a child that exited, else -1
  int signal = 0;          // that ended it, else 0
  bool timed_out = false;  // it, or a descendant that kept its output open, had to be killed
  std::string out;
  std::string err;

  bool exited_with(int code) const { return !timed_out && exit_code == code; }
  bool killed_by(int number) const { return !timed_out && signal == number; }
  bool out_has(std::string_view text) const { return out.find(text) != std::string::npos; }
  bool err_has(std::string_view text) const { return err.find(text) != std::string::npos; }
};

/// Everything that a failing test needs to say about the child.
std::ostream& operator<<(std::ostream& stream, const ChildResult& result);

/// Times that `part` occurs in `text`, without overlap.
int count_of(std::string_view text, std::string_view part);

/// Runs GOFER_TEST_PROGRAMS/<program> with these arguments, in its own process group, without core
/// files, with stdin from /dev/null. `environment` ("NAME=value"; "NAME" alone removes it) is laid
/// over that of the test. Throws std::system_error when the program cannot be started.
ChildResult run_child(const std::string& program, const std::vector<std::string>& arguments = {},
                      const std::vector<std::string>& environment = {},
                      std::chrono::seconds limit = std::chrono::seconds(60));

/// "GOFER_DEBUG=..." for run_child: the settings of this test run (model=gm, perhaps) and these.
std::string with_debug(std::string_view settings);

/// The same for a sanitizer's variable: "ASAN_OPTIONS=...".
std::string with_option(const std::string& variable, std::string_view settings);

}  // namespace gofer::test
