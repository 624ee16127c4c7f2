// What the environment has chosen for the scheduler. start.cc writes the settings once, before the
// first M starts.
#pragma once

#include <cstdint>

#include "runtime/process/debug_env.h"

namespace gofer::internal {

/// Hot paths read it, so it has a cache line of its own.
struct alignas(64) Settings {
  bool gm = false;          // GOFER_DEBUG=model=gm: there are no local queues
  bool has_proc = true;     // /proc tells whether a thread sleeps
  int64_t idle_ns = 0;      // how long an idle M lives
  int64_t scavenge_ns = 0;  // between two passes of the scavenger
  DebugEnv::Traceback traceback = DebugEnv::Traceback::single;  // in fatal reports
};

[[gnu::visibility("hidden")]] extern Settings settings;

}  // namespace gofer::internal
