// What may end a wait before its time: a point in time, a context. And the lock that is a bit of a
// primitive's word.
#pragma once

#include <gofer/detail/chan_core.h>

#include "os/thread.h"
#include "runtime/wait/waiter.h"

namespace gofer {
class context;
}

namespace gofer::internal {

struct WaitLimit {
  int64_t deadline_ns = no_deadline;
  detail::chan_core* done = nullptr;  // of a context
  bool none() const { return deadline_ns == no_deadline && done == nullptr; }
  /// Not to wait at all.
  bool now() const { return deadline_ns == 0; }
  /// The context is done: every call with it refuses at once, even if it would not have to wait.
  bool refuses() const;
};

WaitLimit until_done(const context& ctx);

/// park_waiter with a limit. True: woken by who took w out of its queue. False: the limit came
/// first, and w may still be queued.
bool park_limited(M* m, Waiter& w, Contest& contest, WaitReason reason, UnlockFn unlock, void* arg,
                  const WaitLimit& limit);

/// The same for a wait that has a contest already, an early one if limit.done is set.
bool park_early(M* m, Waiter& w, WaitReason reason, UnlockFn unlock, void* arg,
                const WaitLimit& limit);

/// `busy` locks the queue of a primitive. It is a bit of the word in which the primitive's state
/// is, so that a single step can release both: afterwards the object is not touched, and who finds
/// the state as it wants it may destroy the object. While it is set nobody else changes the word.
/// Returns the word without the bit.
template <class Word>
Word lock_busy(std::atomic<Word>& word, Word busy) {
  constexpr int spins = 40;
  Word now = word.load(relaxed);
  for (int tries = 0;; ++tries) {
    if ((now & busy) == 0) {
      if (word.compare_exchange_weak(now, now | busy, acquire, relaxed)) return now;
      continue;
    }
    // Held for some ten nanoseconds, unless the kernel took the holder's core away.
    if (tries < spins) {
      cpu_relax();
    } else {
      os::yield_thread();
    }
    now = word.load(relaxed);
  }
}

/// Of a word that is nothing but this lock.
inline void unlock_busy(std::atomic<uint32_t>& word) { word.store(0, release); }

}  // namespace gofer::internal
