// A program without the runtime. A plug-in brings it, and is closed while its threads are there.
#include <unistd.h>

#include "../plugins/plugin.h"

int main(int, char** argv) {
  constexpr int rounds = 20;
  for (int i = 0; i < rounds; ++i) {
    const gofer::test::Plugin plugin(argv[0], "plugin_static.so", RTLD_LOCAL);
    if (plugin.run() != 8) return 1;
    plugin.close();
    usleep(1000);  // its threads go on
  }
  std::puts("completed");
  return 0;
}
