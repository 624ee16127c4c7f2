// A lock that is one bit of a primitive's word.
#pragma once

#include <gofer/detail/word.h>

#include <cstdint>

#include "os/thread.h"
#include "runtime/base/atomic.h"

namespace gofer::internal {

/// Sets the bit `busy`, which locks the queue of a primitive, and returns the word without the bit.
/// The bit is in the word that has the primitive's state, so that one store can release the lock
/// and change the state. After that store the thread does not touch the object, and a thread that
/// finds the state it wants may destroy the object. While the bit is set, no other thread changes
/// the word.
template <class Word>
Word lock_busy(detail::word<Word>& word, Word busy) {
  constexpr int spins = 40;
  Word now = word.load(relaxed);
  for (int tries = 0;; ++tries) {
    if ((now & busy) == 0) {
      if (word.compare_exchange_weak(now, now | busy, acquire, relaxed)) return now;
      continue;
    }
    // The bit is held for some ten nanoseconds, unless the kernel took the holder's core away.
    if (tries < spins) {
      cpu_relax();
    } else {
      os::yield_thread();
    }
    now = word.load(relaxed);
  }
}

/// Releases the lock if it is the only content of the word.
inline void unlock_busy(detail::word<uint32_t>& word) { word.store(0, release); }

}  // namespace gofer::internal
