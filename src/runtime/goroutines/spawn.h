// Starting a goroutine from within the scheduler.
#pragma once

namespace gofer::internal {

struct G;
struct M;

inline constexpr int id_batch = 16;  // a P takes so many ids at a time

/// On g0 with a P, or inside: the record of a goroutine to be started from there; nullptr: no
/// memory for one more. It is to be started, or given to put_free_g.
G* take_g_from_scheduler(M* m);
/// A goroutine whose whole life is entry(closure), where the closure holds the pointer `arg`.
void start_from_scheduler(M* m, G* g, void (*entry)(void* closure), void* arg);

}  // namespace gofer::internal
