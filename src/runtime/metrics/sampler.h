// Samples of how long goroutines wait for a P, and of how long they then run: Go's
// /sched/latencies, and the lengths of time slices.
//
// A clock is not read at every switch. Each M counts the goroutines that it makes runnable, by
// M::until_sample, and the one at which the count runs out is a sample: it is stamped, and the bit
// `sample_mark` is set in G::marks. The M that runs it tests that byte in any case, because of the
// scavenger (scavenge.cc), and finds the sample there. So a switch costs a decrement and a branch
// that is not taken.
//
// The distance between two samples follows the pace of the M: a program with few switches has each
// of them measured, and at millions a second it is one of about 1,024. A sample stands for as many
// goroutines as were counted since the last one, and has that weight in the histogram. So the
// histogram's numbers are estimates of all goroutines, whatever the pace was. The distances vary at
// random; otherwise a program whose switches repeat in a pattern would be sampled at one place of
// it. After a burst the distance is long, so an M that has slept, and took its last sample long
// ago, does not count to its end: it begins anew, and the up to 1,500 goroutines that it had
// counted have no sample.
//
// The stamp does not fit into a G. It lies in a table of slots, which is found by the address of
// the G. A slot is claimed by a compare-exchange, and freed by the M that runs the goroutine. While
// no slot is free near the goroutine's place, there is no sample. That happens if a million
// goroutines are started at once.
//
// A slice of a sampled goroutine begins when the goroutine does. It ends when the goroutine leaves
// the P: by itself, and then the switch goes over g0, because the P's budget was set to 0 for that
// purpose; or by a pause. schedule_loop gives the P the rest of its budget back, so the order in
// which goroutines run is what it would be without the sample. If the P is taken from the M, the
// slice is not recorded: its end is not known.
//
// Orders: the stamp is written before the bit, and both before the goroutine becomes runnable,
// which is a release; whatever makes the goroutine visible to the next M orders them before its
// reads. The scavenger sets and clears its own bit meanwhile, and so all changes of the byte are
// read-modify-writes. Freeing a slot is a release, and claiming it an acquire.
//
// Rejected: a stamp at each switch (28 ns for the clock, where a switch takes 14); a fixed distance
// (one of 1,000 says nothing about a program with ten switches a second); a bit of the goroutine's
// status (every comparison of a status would have to leave it out).
#pragma once

#include <cstdint>

namespace gofer::internal {

struct G;
struct M;
struct P;

/// The bits of G::marks. While one is set, the M that is about to run the goroutine takes the slow
/// path, run_marked.
inline constexpr uint8_t trim_mark = 1;    // it must not run just now: scavenge.cc
inline constexpr uint8_t sample_mark = 2;  // it was stamped when it became runnable

/// Where an M is in its count.
struct Sampling {
  uint32_t distance = 1;  // between samples, about
  uint32_t counted = 1;   // from the last sample to the next one: the weight of the next one
  int64_t last_ns = 0;    // when the last sample was taken
};

/// The slice of a sampled goroutine that an M runs.
struct SampledSlice {
  static constexpr int32_t keep = INT32_MIN;

  const P* p = nullptr;
  int64_t begin_ns = 0;  // 0: there is none
  uint64_t hold = 0;     // M::p_word then: by this hold of p alone the end is known
  uint32_t weight = 0;
  int32_t budget = keep;  // what the P gets back; keep: nothing
};

/// g, which is about to become runnable, is the sample of m. Returns m, so that the caller of this
/// rare path need not keep it.
[[gnu::cold]] M* sample(M* m, G* g);
/// m, which has slept, goes on: what comes first is the sample, if the last one was long ago.
void sample_soon(M* m);
/// g is about to become runnable by a thread without a P, under the scheduler's lock.
void count_for_thread(G* g);
/// The sampled goroutine g is about to run on m: its time is recorded, and its slice begins.
void sampled_runs(M* m, G* g);
/// The sampled goroutine that m runs has left, or is about to.
void sampled_slice_ends(M* m);

}  // namespace gofer::internal
