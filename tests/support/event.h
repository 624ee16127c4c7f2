// Waiting and waking without any primitive in between.
#pragma once

#include <atomic>

#include "runtime/procs/current.h"
#include "runtime/wait/park.h"

namespace gofer::test {

/// One goroutine waits, anyone sets: park() and wake() and nothing else. There is no lock, so set()
/// may come before the waiter has parked. The word is nullptr, the waiter, or is_set().
class Event {
 public:
  void wait() {
    internal::Inside inside;
    internal::Waiter w(inside.m());
    w.begin_contest(true);
    if (word_.exchange(&w, std::memory_order_acq_rel) == nullptr) {
      internal::park(inside.m(), w, internal::WaitReason::none, internal::no_queue_lock);
    }
    word_.store(nullptr, std::memory_order_relaxed);
  }
  void set() {
    internal::Inside inside;
    internal::Waiter* waiter = word_.exchange(is_set(), std::memory_order_acq_rel);
    if (waiter != nullptr && waiter != is_set()) internal::wake(inside.m(), waiter);
  }
  /// A goroutine has parked here. Not while another one may set.
  bool has_waiter() const {
    const internal::Waiter* waiter = word_.load();
    return waiter != nullptr && waiter != is_set() &&
           waiter->contest->state.load() == internal::Contest::parked;
  }

 private:
  static internal::Waiter* is_set() { return reinterpret_cast<internal::Waiter*>(1); }
  std::atomic<internal::Waiter*> word_{nullptr};
};

}  // namespace gofer::test
