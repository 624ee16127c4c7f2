// Ms that have lost their P and have not noticed. See lost.cc.
#pragma once

#include <cstdint>

#include "os/thread_state.h"
#include "runtime/base/atomic.h"
#include "runtime/threads/m.h"

namespace gofer::internal {

/// How many Ms have M::lost_in set.
[[gnu::visibility("hidden")]] extern atomic<int> lost_ms;

/// m sleeps in a crowd (thread_gate.h) and loses its P, or has just lost it, without noticing. If m
/// computes on, sysmon pauses it. cpu_ns is its processor time now, or -1.
void note_lost(M* m, int64_t cpu_ns, uint32_t crowd);
void forget_lost(M* m);
/// Pauses those of them that compute on. sysmon calls it once a round. Returns true if it has found
/// one that runs.
bool pause_lost();

/// What the kernel tells about the thread of m.
os::ThreadState look_at_thread(const M* m);

}  // namespace gofer::internal
