// The part of a primitive that waits: opaque to users, and small enough to lie in each of them.
#pragma once

#include <atomic>

namespace gofer::internal {

struct G;
struct Waiter;

/// Waiters in the order of their coming, under the lock of the primitive that they wait for. The
/// bodies are in the library.
class WaitQueue {
 public:
  constexpr WaitQueue() = default;
  /// Also without the lock: true is seen together with what was done before the queue became empty.
  bool empty() const { return head_.load(std::memory_order_acquire) == nullptr; }
  Waiter* front() const { return head_.load(std::memory_order_relaxed); }

  void push_back(Waiter* w);
  void push_front(Waiter* w);
  /// Nothing happens if w is in the queue no more.
  void remove(Waiter* w);
  /// The oldest whose wait the caller may end; those that were ended by others are dropped.
  Waiter* pop_claimed();

 private:
  std::atomic<Waiter*> head_{nullptr};  // atomic for who looks without the lock
  Waiter* tail_ = nullptr;
};

}  // namespace gofer::internal
