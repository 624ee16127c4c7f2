// What a host sees of the plug-ins.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace gofer::test {

/// Runs goroutines of the plug-in's own code and waits for them; gives how many ran.
using PluginRun = int (*)();

/// A plug-in beside the running program.
struct Plugin {
  void* handle;

  Plugin(const char* program, const char* name, int flags) {
    const std::string path(program);
    const std::string file = path.substr(0, path.rfind('/') + 1) + name;
    handle = dlopen(file.c_str(), RTLD_NOW | flags);
    if (handle == nullptr) {
      std::fprintf(stderr, "child: %s\n", dlerror());
      std::_Exit(97);
    }
  }
  int run() const { return reinterpret_cast<PluginRun>(dlsym(handle, "plugin_run"))(); }
  void close() const { dlclose(handle); }
};

}  // namespace gofer::test
