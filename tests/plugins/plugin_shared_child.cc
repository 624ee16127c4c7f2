// A program with libgofer.so that loads, runs and closes a plug-in again and again.
#include <gofer/gofer.h>

#include "plugin.h"

int load_run_close(const char* program) {
  constexpr int rounds = 300;
  for (int i = 0; i < rounds; ++i) {
    const gofer::test::Plugin plugin(program, "plugin_shared.so", RTLD_LOCAL);
    const int ran = plugin.run();
    plugin.close();
    if (ran != 8) return 1;
  }
  return 0;
}

int main(int, char** argv) {
  if (load_run_close(argv[0]) != 0) return 1;
  if (gofer::run([argv] { return load_run_close(argv[0]); }) != 0) return 1;
  std::puts("completed");
  return 0;
}
