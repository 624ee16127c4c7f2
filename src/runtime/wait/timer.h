// Timers of the runtime: each P has a heap of them, and Ms that look for work run them. There is no
// thread for timers.
//
// An M in find_runnable looks at the timers of its own P every time, and at those of other Ps in
// the last round of stealing. One of the Ms that sleep, the sleeper (idle.cc), wakes for the
// earliest timer of all and takes an idle P for it. A goroutine that starts a timer earlier than
// the sleeper knows wakes the sleeper: the starter stores the P's next_ns and then reads
// idle_ms.sleep_until_ns; the sleeper stores that and then reads every next_ns again (seq_cst on
// both sides), so one of them sees the other.
//
// The heap is 4-ary, an array of {when, timer}: a level is a cache line, and the timer itself is
// touched only to note its place, by which it can be taken out in the middle.
//
// Running a timer has two parts. `claim` decides whether the timer runs; it is called under the
// heap's lock, before the timer is taken out of the heap, and must not take another lock. `run`
// comes after the unlock. So once stop_timer has returned, `claim` is not called any more, and the
// caller may free the timer unless `claim` has decided to run it.
#pragma once

#include <cstdint>
#include <limits>

#include "runtime/base/atomic.h"
#include "runtime/base/lock.h"

namespace gofer::internal {

struct M;
struct P;
class TimerHeap;

struct Timer {
  int64_t when_ns = 0;
  bool (*claim)(Timer* t) = nullptr;
  void (*run)(M* m, Timer* t) = nullptr;
  void* arg = nullptr;
  Timer* next = nullptr;             // between claim and run
  atomic<TimerHeap*> heap{nullptr};  // where it waits; changed under that heap's lock
  uint32_t index = 0;
};

inline constexpr int64_t no_timer = std::numeric_limits<int64_t>::max();

class TimerHeap {
 public:
  /// The time of the earliest timer, or no_timer. Any thread may ask.
  int64_t next_ns() const { return next_ns_.load(seq_cst); }
  uint32_t count() const { return count_.load(relaxed); }
  /// How many were taken out because they were due, and were claimed.
  uint64_t fired() const { return fired_.load(relaxed); }

  /// Returns false without memory. Sets `first` to whether t is earlier than all that were there.
  bool add(Timer* t, bool* first = nullptr);
  /// Gives t, which waits here, another time. Returns false if it was not here.
  bool move(Timer* t, int64_t when_ns, bool* first = nullptr);
  /// Returns false if t was not here.
  bool remove(Timer* t);
  /// Takes out what is due and claims it. Returns the claimed timers, the earliest first, linked by
  /// `next`.
  Timer* take_due(int64_t now);
  /// Moves all timers to `to`, whose lock has the same rank: the world is stopped. Returns false
  /// without memory.
  bool move_all(TimerHeap& to);

 private:
  struct Entry {
    int64_t when_ns;
    Timer* timer;
  };

  bool grow() GOFER_REQUIRES(lock_);
  void put(uint32_t i, Entry e) GOFER_REQUIRES(lock_) {
    entries_[i] = e;
    e.timer->index = i;
  }
  void sift_up(uint32_t i, Entry e) GOFER_REQUIRES(lock_);
  void sift_down(uint32_t i, Entry e) GOFER_REQUIRES(lock_);
  void remove_at(uint32_t i) GOFER_REQUIRES(lock_);
  void publish() GOFER_REQUIRES(lock_) {
    const uint32_t n = count_.load(relaxed);
    const int64_t next = n == 0 ? no_timer : entries_[0].when_ns;
    if (next != next_ns_.load(relaxed)) next_ns_.store(next, seq_cst);
  }

  ShortLock lock_{LockRank::timers};
  atomic<uint32_t> count_{0};
  atomic<int64_t> next_ns_{no_timer};
  Entry* entries_ GOFER_GUARDED_BY(lock_) = nullptr;
  uint32_t capacity_ GOFER_GUARDED_BY(lock_) = 0;
  atomic<uint64_t> fired_{0};
};

/// Starts t, which is not started. m is nullptr in a foreign thread; any other caller is inside.
/// Returns false without memory. If `parks` is set, the calling goroutine is about to park: its M
/// may well be the one that sleeps until then, and need not tell another (M::unannounced_timer_ns).
bool start_timer(M* m, Timer* t, int64_t when_ns, bool parks = false);
/// m does not become the sleeper after all: it has found a goroutine to run, or may run only its
/// own. It tells the sleeper of a timer that it has left unannounced.
void announce_timer(M* m);
/// Gives a timer that waits another time. Returns false if it does not wait, or has been claimed.
bool move_timer(Timer* t, int64_t when_ns);
/// Returns false if t was not started, or has been claimed.
bool stop_timer(Timer* t);

/// Inside: runs the timers of p that are due. Returns true if there was one.
bool run_timers(M* m, P* p);
/// The same for all Ps, also for those that gomaxprocs has put aside.
bool run_all_timers(M* m);
/// The time of the earliest timer of all Ps.
int64_t earliest_timer_ns();

}  // namespace gofer::internal
