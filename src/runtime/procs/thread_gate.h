// The gate: when a P may go from a thread that keeps its goroutine to a thread that has none.
//
// A thread *keeps* its goroutine without a P if it was paused (preempt.cc), or if it sleeps in a
// call that it did not announce (retake.cc). Here alone the runtime adds threads of its own
// accord: the P goes on to a *fresh* goroutine, one that any thread may run, and that takes one
// more thread. A P that goes to a goroutine which waits *tied* to its own thread adds none. So the
// rules on this page bound the threads of a program, whatever its goroutines do. sysmon asks them
// before every pause and before every P that it takes from a sleeping thread.
//
//   - Tied goroutines have a room of 76, or of 2 per P if that is more. It shrinks to 4 + 1 per P
//     while threads fall asleep at futexes or are paused while they spin, because more paused
//     goroutines hold more locks. While the room is full (crowded()), a slice ends in a *rotation*:
//     the P goes from the goroutine that is paused to one that waits tied.
//   - A goroutine that is paused while it spins (arch::is_spinning) waits for another one, perhaps
//     for one that was paused with a spin lock. So its P goes to a tied goroutine that does not
//     spin, if there is one. While there is, sysmon looks at those that run every millisecond. If
//     most tied goroutines spin, the owner of the lock is not among them: its thread has no core.
//     One more goroutine that begins would spin as well, so the room is small then, too.
//   - Threads asleep at one futex word have a room of 8; those asleep in other calls have a room
//     of 512. While it is full, a P stays with its sleeping thread unless a goroutine waits tied
//     for it. A P whose thread sleeps at a futex always goes to a tied goroutine first: that one
//     may be the paused owner of the lock.
//   - Goroutines that have begun may wait for one that has not. Such a program shows by time: each
//     room grows while none leaves it. For tied goroutines the clock t counts processor time
//     that they used in vain, that is, since a paused goroutine last ended, parked or went to
//     sleep in a call. With t in seconds, the room grows by 300 t, up to 16, so that a fresh
//     goroutine begins soon beside a hundred that compute, and by 150 t^2, so that any number of
//     them is passed in the end. The small room grows after 0.1 s, by 1,000 (t - 0.1) up to 100:
//     locks change hands before (t stayed below 0.07 in storms of spin locks). For sleepers the
//     clock counts the time during which a P was refused and no thread came back of those that were
//     in the crowd before: their room grows by 800 a second. A thread that joined since does not
//     count, because one that goes from one short call to the next comes back all the time.
//   - A goroutine that a timer or a descriptor wakes is done soon, as a rule, and the one that was
//     paused for it goes on then. There are a few places beyond the room for that, and many for a
//     goroutine that has parked again and again (G::is_short).
//   - At the limit of threads nothing is paused and no P is taken from a sleeper, unless a thread
//     is idle or a goroutine waits tied.
//
// A pause near the end of a goroutine's work costs a thread for nothing, and perhaps a lock for
// which all others then spin. So sysmon learns from what paused goroutines do. If they are done
// within one more slice, slices are long and tied goroutines have every other turn, so that few
// are paused at all. If they compute on, fresh ones come first and slices are short.
//
// Bounds. Goroutines of a batch end one by one, because every other turn of a rotation is the
// oldest goroutine's. So t stays at a few times the length of a task. Batches of tasks of 50 ms and
// less take up to 110 threads, longer ones more. With a room of 80 that grew by 24 at first, 180
// goroutines that throw took 101.
//
// Progress. If all goroutines that have begun wait for a fresh one, none leaves its room. So the
// room grows without end, every second turn starts a fresh goroutine, and the awaited one runs
// after at most as many turns as there were goroutines before it. Others may leave the room again
// and again beside them, and set its clock back: so on each P a fresh goroutine begins after 100 ms
// times the number of Ps (200 ms at least) in any case, or after a multiple of that if more are
// tied than have room. tests/model/gate.pml checks both for tied goroutines; it leaves out
// goroutines that spin, short ones, and the rooms of sleepers.
//
// Rejected: one budget for all (it throttles plain sleepers); a clock that any progress resets
// (with a ticker beside them, the late goroutine waits for ever); a clock of wall time for pauses
// (threads grow on a machine that is just busy); rooms that stay as large as they once were
// (stalls add up).
#pragma once

#include <cstdint>

#include "runtime/procs/p_table.h"
#include "runtime/sched/global_queue.h"

namespace gofer::internal {

inline constexpr int futex_room = 8;
inline constexpr int call_room = 512;

struct alignas(64) ThreadGate {
  atomic<int> tied{0};        // runnable goroutines that wait for a P on their own threads
  atomic<int> tied_room{76};  // as many as should wait so
};

[[gnu::visibility("hidden")]] extern ThreadGate thread_gate;

/// Whether the room of tied goroutines is full. Then they go before fresh ones.
inline bool crowded() {
  return thread_gate.tied.load(relaxed) >= thread_gate.tied_room.load(relaxed);
}

/// Places beyond that room, for goroutines that are paused because another was woken while every P
/// was busy: one that is known to be short; one that is not; one that the running goroutine woke.
inline constexpr int places_for_short = 40;
inline int places_for_untried() {
  const int procs = p_table.in_use.load(relaxed);
  return procs > 4 ? procs : 4;
}
inline int places_for_next() { return places_for_untried() / 2; }

/// Whether there is a place for goroutines that were woken and are not known to be short.
inline bool untried_have_place() {
  return thread_gate.tied.load(relaxed) <
         thread_gate.tied_room.load(relaxed) + places_for_untried();
}
/// Whether there is such a place and some of them wait.
inline bool untried_may_begin() {
  return global_queue.untried_size.load(relaxed) != 0 && untried_have_place();
}
inline bool urgent_waits() {
  return global_queue.urgent_size.load(relaxed) != 0 || untried_may_begin();
}

/// The crowd of threads that sleep in calls but at no futex. The others are numbered by their word;
/// words that share a number share a room.
inline constexpr uint32_t call_crowd = 0;
inline constexpr uint32_t futex_crowds = 64;
uint32_t crowd_of(uint64_t futex);

/// The place of a thread that falls asleep in a crowd now: the crowd, and how often it has stalled.
uint32_t place_in(uint32_t crowd);
/// A thread that keeps its goroutine falls asleep at that place, or leaves it.
void join_crowd(uint32_t place);
void leave_crowd(uint32_t place);

/// A goroutine that was paused has ended, parked or gone to sleep in a call. `soon` is set if it
/// was paused once only.
void note_unpaused(bool soon);

// The rest is for sysmon.

/// Whether a thread is there for one more goroutine, or may be started. Warns once if not.
bool has_thread();
/// sysmon calls it once a round, before the functions below.
void update_gate(int64_t now_ns);
/// Whether a goroutine that computes may be paused for a fresh one.
bool may_pause(int extra_places = 0);
/// Whether a P may go from a thread that sleeps in that crowd to a fresh goroutine.
bool may_leave_asleep(uint32_t crowd, int extra_places = 0);
/// A thread was found that waits for a lock.
void note_lock(int64_t now_ns);
/// A P stays with a thread of that crowd although goroutines wait.
void note_refused(uint32_t crowd, int64_t now_ns);
/// Whether a goroutine gets a long slice although fresh ones wait. `paused` is set if it was paused
/// before.
bool deserves_long_slice(bool paused);
/// Whether goroutines that were paused then had a long slice and none was done by the end of it.
bool only_hogs();
/// A goroutine that was paused before had its slice and was not done.
void note_long_slice();
/// Tied goroutines have used that much processor time while fresh ones wait.
void note_computed(int64_t cpu_ns);

}  // namespace gofer::internal
