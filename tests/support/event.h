// Waiting and waking without any primitive in between.
#pragma once

#include <atomic>

#include "runtime/sched/queues.h"
#include "runtime/sched/sched.h"

namespace gofer::test {

/// One goroutine waits, anyone sets: park() and ready() and nothing else.
class Event {
 public:
  void wait() {
    internal::Inside inside;
    internal::park(inside.m(), internal::WaitReason::none, announce, this);
    word_.store(nullptr);
  }
  void set() {
    internal::Inside inside;
    internal::G* waiter = word_.exchange(is_set());
    if (waiter != nullptr && waiter != is_set()) internal::ready(inside.m(), waiter);
  }
  bool has_waiter() const { return word_.load() != nullptr && word_.load() != is_set(); }

 private:
  static internal::G* is_set() { return reinterpret_cast<internal::G*>(1); }
  static bool announce(internal::G* g, void* self) {
    internal::G* nobody = nullptr;
    return static_cast<Event*>(self)->word_.compare_exchange_strong(nobody, g);
  }
  std::atomic<internal::G*> word_{nullptr};
};

}  // namespace gofer::test
