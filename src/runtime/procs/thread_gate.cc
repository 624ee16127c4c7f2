#include "runtime/procs/thread_gate.h"

#include <algorithm>

#include "os/process.h"
#include "os/thread.h"
#include "runtime/base/units.h"
#include "runtime/procs/lost.h"
#include "runtime/procs/p_table.h"
#include "runtime/report/panic.h"
#include "runtime/sched/global_queue.h"
#include "runtime/threads/idle.h"
#include "runtime/threads/threads.h"

namespace gofer::internal {

constinit ThreadGate thread_gate;

namespace {

constexpr int64_t s = 1'000 * ms;
constexpr double pauses_per_s = 300;
constexpr double most_pauses_by_s = 16;
constexpr double locks_patience_s = 0.1;
constexpr double pauses_per_s_beside_locks = 1'000;
constexpr double most_pauses_by_s_beside_locks = 100;
constexpr double pauses_per_s2 = 150;
constexpr int64_t sleepers_per_s = 800;
constexpr int tied_room = 76;
constexpr int tied_room_per_p = 2;  // if that is more
constexpr int tied_room_beside_locks = 4;
constexpr int shared_room_beside_locks = 64;  // of tied ones and sleepers together
constexpr int shared_room_per_p = 2;          // if that is more
constexpr int64_t lock_memory_ns = 50 * ms;
constexpr int64_t longest_round_ns = 4 * ms;  // more is a machine without a core for sysmon
constexpr int64_t most_help = 64;
constexpr int64_t least_help = -16;
constexpr int64_t soon_weighs = 2;
constexpr int64_t hog_weighs = 4;
constexpr int64_t longest_stall_ns = 1'000 * s;

struct Crowd {
  atomic<int32_t> asleep{0};
  atomic<uint32_t> stalls{0};    // ever
  atomic<uint32_t> returned{0};  // ever, of those that were there when the latest stall began
  // Of sysmon alone:
  uint32_t returned_seen = 0;
  int64_t refused_ns = 0;  // the last refusal
  int64_t stalled_ns = 0;  // for so long a P was refused, and no thread came back
};

constinit Crowd crowds[1 + futex_crowds];
constinit atomic<uint32_t> unpaused{0};       // times that a paused goroutine moved on
constinit atomic<uint32_t> unpaused_soon{0};  // and that one pause was all

// Of sysmon alone:
uint32_t unpaused_seen = 0;
uint32_t unpaused_soon_seen = 0;
int64_t help = 0;     // of long slices to paused goroutines: they end; below 0: they do not
int64_t vain_ns = 0;  // processor time since then
int64_t round_ns = 0;
int64_t round_length_ns = 0;
int64_t lock_ns = 0;  // when a thread was last found that waits for a lock, asleep or spinning...
bool locks = false;   // ...which is not long ago

// A place has the number of stalls above the crowd.
constexpr uint32_t crowd_bits = 8;
static_assert(futex_crowds < (1u << crowd_bits) - 1);  // no place is no_crowd
uint32_t crowd_at(uint32_t place) { return place & ((1u << crowd_bits) - 1); }

// All cores together make so many seconds of processor time a second.
int64_t cores() {
  static const int64_t online = os::online_cores();
  const int64_t procs = p_table.in_use.load(relaxed);
  return online < procs ? online : procs;
}

int shared_room() {
  const int by_procs = shared_room_per_p * p_table.in_use.load(relaxed);
  return by_procs > shared_room_beside_locks ? by_procs : shared_room_beside_locks;
}

// What has been added to the room of tied goroutines by now.
int64_t grown_room() {
  const double t = static_cast<double>(vain_ns) / static_cast<double>(cores() * s);
  const double at_first = locks ? std::clamp(pauses_per_s_beside_locks * (t - locks_patience_s),
                                             0.0, most_pauses_by_s_beside_locks)
                                : std::min(pauses_per_s * t, most_pauses_by_s);
  return static_cast<int64_t>(at_first + pauses_per_s2 * t * t);
}

}  // namespace

bool has_thread() {
  int limit;
  {
    LockGuard guard(sched_lock);
    if (idle_ms.count != 0 || threads.count < threads.limit) return true;
    limit = threads.limit;
  }
  static constinit atomic<bool> said{false};
  if (!said.exchange(true, relaxed)) {
    warn(
        "all %d threads are in use (set_max_threads): goroutines that compute or block their "
        "thread keep their processor until one is free",
        limit);
  }
  return false;
}

uint32_t crowd_of(uint64_t futex) {
  if (futex == 0) return call_crowd;
  const uint64_t mixed = (futex >> 2) * 0x9e3779b97f4a7c15u;
  return 1 + static_cast<uint32_t>(mixed >> 32) % futex_crowds;
}

uint32_t place_in(uint32_t crowd) {
  return crowds[crowd].stalls.load(relaxed) << crowd_bits | crowd;
}

void join_crowd(uint32_t place) { crowds[crowd_at(place)].asleep.fetch_add(1, relaxed); }

void leave_crowd(uint32_t place) {
  const uint32_t crowd = crowd_at(place);
  crowds[crowd].asleep.fetch_sub(1, relaxed);
  if (place_in(crowd) != place) crowds[crowd].returned.fetch_add(1, relaxed);
}

void note_unpaused(bool soon) {
  unpaused.fetch_add(1, relaxed);
  if (soon) unpaused_soon.fetch_add(1, relaxed);
}

void update_gate(int64_t now_ns) {
  round_length_ns = now_ns - round_ns < longest_round_ns ? now_ns - round_ns : longest_round_ns;
  round_ns = now_ns;
  if (global_queue.spinner_waits.load(relaxed) || global_queue.most_tied_spin.load(relaxed))
    note_lock(now_ns);
  locks = now_ns - lock_ns < lock_memory_ns && lock_ns != 0;
  const int procs = p_table.in_use.load(relaxed);
  const int usual_room = tied_room_per_p * procs > tied_room ? tied_room_per_p * procs : tied_room;
  thread_gate.tied_room.store(locks ? tied_room_beside_locks + procs : usual_room, relaxed);
  const uint32_t moved = unpaused.load(relaxed);
  if (moved != unpaused_seen || !crowded()) vain_ns = 0;
  unpaused_seen = moved;
  const uint32_t soon = unpaused_soon.load(relaxed);
  help += soon_weighs * (soon - unpaused_soon_seen);
  if (help > most_help) help = most_help;
  unpaused_soon_seen = soon;
}

bool deserves_long_slice(bool paused) { return help > 0 || (paused && help == 0); }

bool only_hogs() { return help < 0; }

void note_long_slice() { help = help > least_help + hog_weighs ? help - hog_weighs : least_help; }

bool may_pause(int extra_places) {
  const int64_t grown = grown_room();
  const int tied = thread_gate.tied.load(relaxed);
  // A tied goroutine that gets its turn may fall asleep at the same futex: that frees no thread.
  // What is woken is done soon, and has its places.
  if (extra_places == 0 && locks && tied + lost_ms.load(relaxed) >= shared_room() + grown)
    return false;
  return tied < thread_gate.tied_room.load(relaxed) + extra_places + grown && has_thread();
}

bool may_leave_asleep(uint32_t crowd, int extra_places) {
  Crowd& c = crowds[crowd];
  if (const uint32_t returned = c.returned.load(relaxed); returned != c.returned_seen) {
    c.returned_seen = returned;
    c.stalled_ns = 0;
  }
  const int room = crowd == call_crowd ? call_room : futex_room;
  const int64_t grown = c.stalled_ns / ms * sleepers_per_s / 1'000;
  return c.asleep.load(relaxed) < room + extra_places + grown && has_thread();
}

void note_lock(int64_t now_ns) { lock_ns = now_ns; }

void note_refused(uint32_t crowd, int64_t now_ns) {
  Crowd& c = crowds[crowd];
  if (c.refused_ns == now_ns) return;  // another P, in the same round
  c.refused_ns = now_ns;
  if (c.stalled_ns == 0) c.stalls.fetch_add(1, relaxed);
  if (c.stalled_ns < longest_stall_ns) c.stalled_ns += round_length_ns;
}

void note_computed(int64_t cpu_ns) {
  if (vain_ns < longest_stall_ns) vain_ns += cpu_ns;
}

}  // namespace gofer::internal
