#include "runtime/base/lock.h"

#include "os/futex.h"
#include "os/thread.h"
#include "runtime/base/atomic.h"
#include "runtime/procs/current.h"

namespace gofer::internal {
namespace {

// About as long as sleeping and being woken costs: not more than twice the best choice is lost
// then.
constexpr int spins_before_sleep = 400;

// The ranks of the locks that the thread holds, a byte each, the last one lowest. Each change is
// one store: a goroutine that stops the world takes that lock outside of the runtime, and may be
// paused at any instruction of it; then the signal's handler takes and releases locks in between.
// Not kept across a switch by the compiler: only noinline functions use it.
thread_local constinit atomic<uint64_t> held{0};
constexpr int rank_bits = 8;
constexpr uint64_t last_rank = (1u << rank_bits) - 1;
constexpr uint64_t no_room = last_rank << (64 - rank_bits);

// A goroutine may be paused outside of the runtime, and no lock's waiters wait for one that is.
// Only stopping the world is begun there, and a goroutine that wants that lock retries instead of
// sleeping.
void require_inside(LockRank rank) {
  const M* m = current_m();
  if (m == nullptr || m->in_runtime.load(relaxed) != 0 || rank == LockRank::world) return;
  assertion_failed("a goroutine takes locks inside of the runtime only", __FILE__, __LINE__);
}

}  // namespace

void lock_slow(std::atomic<uint32_t>& word) {
  for (int i = 0; i < spins_before_sleep; ++i) {
    uint32_t free = 0;
    if (word.load(relaxed) == 0 && word.compare_exchange_strong(free, 1, acquire)) return;
    cpu_relax();
  }
  while (word.exchange(2, acquire) != 0) os::futex_wait(&word, 2);
}

// Retries after growing pauses, so the holder can retake the lock cheaply meanwhile, with all that
// it protects in its own cache. Two cores need that to get anything done together.
void ShortLock::lock_slow() {
  constexpr int first_pauses = 8;
  constexpr int most_pauses = 64;
  constexpr int spins = 40;
  constexpr int yields = 20;
  constexpr int64_t pause_ns = 50'000;
  int pauses = first_pauses;
  for (int i = 0;; ++i) {
    if (i < spins) {
      for (int k = 0; k < pauses; ++k) cpu_relax();
      if (pauses < most_pauses) pauses *= 2;
    } else if (i < spins + yields) {
      os::yield_thread();
    } else {
      os::sleep_ns(pause_ns);  // the holder may need this core and have a lower priority
    }
    if (word_.load(relaxed) == 0 && word_.exchange(1, acquire) == 0) return;
  }
}

void unlock_slow(std::atomic<uint32_t>& word) { os::futex_wake(&word); }

[[gnu::noinline]] void note_locked(LockRank rank) {
  require_inside(rank);
  const uint64_t before = held.load(relaxed);
  if ((before & no_room) != 0 || (before & last_rank) >= static_cast<uint64_t>(rank)) {
    assertion_failed(
        "locks are taken in the order of their ranks (or a signal handler calls Gofer)", __FILE__,
        __LINE__);
  }
  held.store(before << rank_bits | static_cast<uint64_t>(rank), relaxed);
}

[[gnu::noinline]] void note_unlocked(LockRank rank) {
  const uint64_t before = held.load(relaxed);
  if ((before & last_rank) != static_cast<uint64_t>(rank)) {
    assertion_failed("locks are released in the reverse order of taking", __FILE__, __LINE__);
  }
  held.store(before >> rank_bits, relaxed);
}

}  // namespace gofer::internal
