// Starting a goroutine from within the scheduler.
#pragma once

namespace gofer::internal {

struct M;

/// On g0 with a P, or inside: a goroutine whose whole life is entry(closure), where the closure
/// holds the pointer `arg`. False: no memory for one more.
bool start_from_scheduler(M* m, void (*entry)(void* closure), void* arg);

}  // namespace gofer::internal
