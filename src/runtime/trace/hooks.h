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

#define GOFER_TRACER_COLD [[gnu::cold, gnu::noinline]]

// Of goroutines: goroutines/transitions.h has what they mean. Inside, on the thread of m or `by`.
GOFER_TRACER_COLD void created(M* by, G* g);
GOFER_TRACER_COLD void begins(M* m, G* g);
GOFER_TRACER_COLD void ends(M* m);
GOFER_TRACER_COLD void parks(M* m, WaitReason reason);
GOFER_TRACER_COLD void yields(M* m);
GOFER_TRACER_COLD void readied(M* by, G* g);
/// Without a P m's goroutine goes on only when it gets one: it was paused, or has come back.
GOFER_TRACER_COLD void waits_tied(M* m);
/// These two may be called outside of the runtime.
GOFER_TRACER_COLD void calls(M* m);
GOFER_TRACER_COLD void call_ended(M* m);
GOFER_TRACER_COLD void noticed_loss(M* m);

// Of Ps: procs/transitions.h.
GOFER_TRACER_COLD void acquired(M* m, P* p);
GOFER_TRACER_COLD void given_up(M* m);
/// By the taker.
GOFER_TRACER_COLD void retaken(P* p, const M* owner);
/// By the M that starts the world. m cannot write events between the two; `given`: m has p again.
GOFER_TRACER_COLD void giving_back(M* m);
GOFER_TRACER_COLD void gave_back(M* m, P* p, bool given);

// Of the whole. By the M that has stopped the world.
GOFER_TRACER_COLD void world_stopped(M* m);
GOFER_TRACER_COLD void world_starts(M* m);
GOFER_TRACER_COLD void procs_changed(M* m, int procs);

// Gofer's own records: what the format of Go has no event for.
/// g becomes runnext of p, which m has, in place of `displaced`.
GOFER_TRACER_COLD void became_next(P* p, G* g, G* displaced);
GOFER_TRACER_COLD void stole(M* m, P* thief, P* victim, uint32_t taken);
/// p is on its way to m.
GOFER_TRACER_COLD void sent(M* m, P* p);
/// m pauses with its goroutine, and p goes to another M: directly to `tied`, if it is not nullptr.
GOFER_TRACER_COLD void paused(M* m, P* p, bool by_signal);
GOFER_TRACER_COLD void passed(M* m, P* p, M* tied);
/// The lengths of all queues, too.
GOFER_TRACER_COLD void sysmon_round(int64_t slept_ns);

#undef GOFER_TRACER_COLD

}  // namespace tracer
}  // namespace gofer::internal
