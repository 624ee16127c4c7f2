// A round of sysmon: it looks at every P once. See round.cc.
#pragma once

#include <cstdint>

#include "runtime/base/units.h"
#include "runtime/wait/timer.h"

namespace gofer::internal {

struct RoundResult {
  bool took;        // a P was taken from a thread that sleeps
  bool acted;       // that, or a goroutine was asked to give its P up
  bool pressed;     // work waited when the round began, and no P was idle
  int64_t next_ns;  // a P is worth a look at this time; no_timer: at no particular time

  /// Something was done, or will have to be done soon.
  bool useful() const { return acted || next_ns != no_timer; }
};

inline constexpr int64_t pressed_ns = 1 * ms;  // between two looks while work waits
inline constexpr int64_t slowest_ns = 10 * ms;

/// Only sysmon's thread may call these three.
RoundResult run_round(int64_t now);
/// The earliest time at which preempting a goroutine could serve a timer that is due then.
int64_t next_timer_ns();
/// A goroutine or a thread waits for a descriptor, and no idle M sleeps in the netpoller.
bool polled_by_nobody();

}  // namespace gofer::internal
