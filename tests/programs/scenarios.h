// The main function of a child program: its first argument chooses what it does.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

/// Writes "name=<this line>" to stdout: where the test expects the trace to point to.
#define GOFER_SAY_LINE(name) (std::printf("%s=%d\n", name, __LINE__), std::fflush(stdout))

namespace gofer::test {

struct Scenario {
  const char* name;
  int (*run)();
};

inline const char* scenario_argument = "";  // the second argument, for scenarios that want one

inline int run_scenario(int argc, char** argv, std::initializer_list<Scenario> scenarios) {
  if (argc > 2) scenario_argument = argv[2];
  for (const Scenario& s : scenarios) {
    if (argc > 1 && std::strcmp(argv[1], s.name) == 0) return s.run();
  }
  std::fprintf(stderr, "unknown scenario: %s\n", argc > 1 ? argv[1] : "(none)");
  return 99;
}

/// A line on stdout that is there even if the process dies next.
inline void say(const char* text) {
  std::puts(text);
  std::fflush(stdout);
}

/// Ends the program with a code of its own if what it took for granted is not so.
inline void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "child: not so: %s\n", what);
  std::_Exit(98);
}

}  // namespace gofer::test
