// The queue of waiters in a primitive: opaque to users, and small enough to be part of each
// primitive.
#pragma once

#include <gofer/detail/config.h>
#include <gofer/detail/word.h>

namespace gofer::internal {

struct Waiter;
struct WaitLimit;

/// Waiters in the order of their arrival, under the lock of the primitive that they wait for. The
/// bodies are in the library.
class WaitQueue {
 public:
  constexpr WaitQueue() = default;
  /// May be called without the lock: a caller that sees true also sees what was done before the
  /// queue became empty.
  bool empty() const { return head_.load(detail::order::acquire) == nullptr; }
  Waiter* front() const { return head_.load(detail::order::relaxed); }

  void push_back(Waiter* w);
  void push_front(Waiter* w);
  /// Does nothing if w is not in the queue any more.
  void remove(Waiter* w);
  /// The oldest waiter whose wait the caller may end. Waiters whose wait has ended otherwise are
  /// dropped.
  Waiter* pop_claimed();

 private:
  detail::word<Waiter*> head_{nullptr};  // atomic for callers of empty() without the lock
  Waiter* tail_ = nullptr;
};

}  // namespace gofer::internal
