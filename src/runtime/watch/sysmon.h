// sysmon, a thread that watches the Ms that have a P. See sysmon.cc.
//
// A round of sysmon costs about 25 us, most of it for waking up. So sysmon sleeps while it has
// nothing to do: while a P is idle there is nothing to take. A submitter of work that finds every P
// busy wakes sysmon if it sleeps (wake_p). While all Ps are idle, sysmon sleeps until one is not.
// While work waits, it looks every 1 to 4 ms. After it has found a blocked thread it looks again
// from 20 us on, because where one thread blocks, others do.
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
