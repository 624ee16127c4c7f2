// sysmon, a thread that watches the Ms that have a P. See sysmon.cc.
#pragma once

#include <cstdint>

namespace gofer::internal {

/// How sysmon sleeps.
enum class SysmonSleep : uint32_t {
  shortly = 0,  // for a short time
  lightly = 1,  // until it is woken, or for some milliseconds
  deep = 2,     // until a P is no longer idle
};

/// Starts the thread of sysmon. Returns 0 or an errno value.
int start_sysmon();
void wake_sysmon();

}  // namespace gofer::internal
