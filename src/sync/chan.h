// A channel as chan.cc and select.cc see it.
//
// Invariants, under the lock:
//  - Receivers wait only while there is nothing: no element buffered, none given back, no sender
//    waiting. Senders wait only while the buffer is full (an unbuffered channel's always is). So at
//    most one of the two queues has waiters that nobody else has woken yet, a select that waits on
//    both sides of one channel aside.
//  - A closed channel has no waiters.
//  - count, closed and the heads of the queues are written under the lock only; they are atomic for
//    who looks first and locks only if there may be something (try_recv, select with a default).
//    Such a look is one moment of the channel's history: an answer "nothing" from it is
//    linearizable.
//
// Order: direct hand-over. A sender that finds a receiver waiting puts the element into its place
// and readies it, without the buffer; a receiver from a full buffer moves the oldest waiting
// sender's element to the tail. So elements leave in the order in which their sends began to wait.
#pragma once

#include <gofer/detail/chan_core.h>

#include <cstring>

#include "runtime/lock.h"
#include "runtime/waiter.h"

namespace gofer::detail {

struct alignas(16) chan_core {
  internal::ShortLock lock{internal::LockRank::primitive};
  internal::atomic<bool> closed{false};
  internal::atomic<uint32_t> refs{1};
  internal::atomic<uint32_t> count{0};
  uint32_t capacity = 0;
  uint32_t first = 0;  // the slot of the oldest element
  uint32_t element_size = 0;
  bool trivial = false;
  internal::atomic<void*> given_back{nullptr};  // nodes, the last given back first
  const chan_ops* ops = nullptr;
  internal::WaitQueue receivers;
  internal::WaitQueue senders;

  std::byte* slot(uint32_t i) {
    return reinterpret_cast<std::byte*>(this + 1) + size_t{i} * element_size;
  }
  uint32_t wrapped(uint32_t i) const { return i >= capacity ? i - capacity : i; }

  void move(void* to, void* from) {
    if (!trivial) {
      ops->move(to, from);
    } else if (element_size == sizeof(uint64_t)) {
      std::memcpy(to, from, sizeof(uint64_t));
    } else {
      std::memcpy(to, from, element_size);
    }
  }
  /// The same, and *from is gone: it lay in a slot.
  void take(void* to, void* from) {
    move(to, from);
    if (ops->destroy != nullptr) ops->destroy(from);
  }

  // A look without the lock.
  bool may_recv() const {
    using namespace internal;
    return count.load(acquire) != 0 || !senders.empty() || given_back.load(relaxed) != nullptr ||
           closed.load(acquire);
  }
  bool may_send() const {
    using namespace internal;
    return closed.load(acquire) || !receivers.empty() || count.load(relaxed) < capacity;
  }
};

/// With the lock: sends or receives if that is possible at once. `partner` is to be woken, if any,
/// after the unlock.
[[gnu::always_inline]] inline chan_result try_send_locked(chan_core* c, void* value,
                                                          internal::Waiter*& partner) {
  using namespace internal;
  if (c->closed.load(relaxed)) return chan_result::closed;
  if (Waiter* w = c->receivers.pop_claimed(); w != nullptr) {
    c->move(w->elem, value);
    w->ok = true;
    partner = w;
    return chan_result::ok;
  }
  const uint32_t count = c->count.load(relaxed);
  if (count == c->capacity) return chan_result::would_block;
  c->move(c->slot(c->wrapped(c->first + count)), value);
  c->count.store(count + 1, release);
  return chan_result::ok;
}

[[gnu::always_inline]] inline chan_result try_recv_locked(chan_core* c, void* place,
                                                          internal::Waiter*& partner) {
  using namespace internal;
  if (void* node = c->given_back.load(relaxed); node != nullptr) [[unlikely]] {
    c->given_back.store(*static_cast<void**>(node), relaxed);
    ::new (place)(void*)(node);
    return chan_result::ok;
  }
  const uint32_t count = c->count.load(relaxed);
  if (count != 0) {
    c->take(place, c->slot(c->first));
    const uint32_t tail = c->first;  // of a full buffer
    c->first = c->wrapped(c->first + 1);
    if (Waiter* w = c->senders.pop_claimed(); w != nullptr) {
      c->move(c->slot(tail), w->elem);
      w->ok = true;
      partner = w;
    } else {
      c->count.store(count - 1, release);
    }
    return chan_result::ok;
  }
  if (Waiter* w = c->senders.pop_claimed(); w != nullptr) {
    c->move(place, w->elem);
    w->ok = true;
    partner = w;
    return chan_result::ok;
  }
  return c->closed.load(relaxed) ? chan_result::closed : chan_result::would_block;
}

/// A send that does not wait, and an end of all elements, for a caller that is inside; they are
/// trivial.
void try_send_inside(internal::M* m, chan_core* c, void* value);
void drop_trivial(chan_core* c);

}  // namespace gofer::detail
