// The tracer as the scheduler sees it: one byte to test, and a function for each transition.
//
// The transitions of goroutines, Ps and Ms (transitions.h) call these functions while the byte is
// set. hooks.cc turns the calls into events. All functions are cold: with tracing off a transition
// costs the test of the byte and a jump that is not taken.
#pragma once

#include <cstdint>

#include "runtime/base/atomic.h"

namespace gofer::internal {

struct G;
struct M;
struct P;
enum class WaitReason : uint8_t;
enum class PWordState : uint64_t;

namespace tracer {

/// A trace is being recorded. Set while the world stands still and the scheduler's lock is held.
extern constinit atomic<bool> on __attribute__((visibility("hidden")));

/// Whether a transition is to be recorded.
inline bool is_on() { return arch::is_set(on); }

// Of goroutines: goroutines/transitions.h has what they mean. Inside, on the thread of m or `by`.
[[gnu::noinline]] void created(M* by, G* g);
[[gnu::noinline]] void begins(M* m, G* g);
[[gnu::noinline]] void ends(M* m);
[[gnu::noinline]] void parks(M* m, WaitReason reason);
[[gnu::noinline]] void yields(M* m);
[[gnu::noinline]] void readied(M* by, G* g);
/// Without a P m's goroutine goes on only when it gets one: it was paused, or has come back.
[[gnu::noinline]] void waits_tied(M* m);
/// These two may be called outside of the runtime.
[[gnu::noinline]] void calls(M* m);
[[gnu::noinline]] void call_ended(M* m);
[[gnu::noinline]] void noticed_loss(M* m);

// Of Ps: procs/transitions.h.
[[gnu::noinline]] void acquired(M* m, P* p);
[[gnu::noinline]] void given_up(M* m);
/// By the taker.
[[gnu::noinline]] void retaken(P* p, const M* owner);
/// By the M that starts the world. m cannot write events between the two; `given`: m has p again.
/// The first one returns the goroutine that goes on then: once m has p, it may run another one.
[[gnu::noinline]] G* giving_back(M* m);
[[gnu::noinline]] void gave_back(M* m, P* p, G* g, bool given);

// Of the whole. By the M that has stopped the world.
[[gnu::noinline]] void world_stopped(M* m);
[[gnu::noinline]] void world_starts(M* m);
[[gnu::noinline]] void procs_changed(M* m, int procs);

// Gofer's own records: what the format of Go has no event for.
/// g becomes runnext of p, which m has, in place of `displaced`.
[[gnu::noinline]] void became_next(P* p, G* g, G* displaced);
[[gnu::noinline]] void stole(M* m, P* thief, P* victim, uint32_t taken);
/// p is on its way to m.
[[gnu::noinline]] void sent(M* m, P* p);
/// m pauses with its goroutine, and p goes to another M: directly to `tied`, if it is not nullptr.
[[gnu::noinline]] void paused(M* m, P* p, bool by_signal);
[[gnu::noinline]] void passed(M* m, P* p, M* tied);
/// The lengths of all queues, too.
[[gnu::noinline]] void sysmon_round(int64_t slept_ns);

}  // namespace tracer
}  // namespace gofer::internal
