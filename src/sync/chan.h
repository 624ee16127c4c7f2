// A channel as chan.cc and select.cc see it.
//
// Invariants, under the lock:
//  - Receivers wait only while there is nothing: no element buffered, none given back, no sender
//    waiting. Senders wait only while the buffer is full (an unbuffered channel's always is). So at
//    most one of the two queues has waiters that nobody else has woken yet, a select that waits on
//    both sides of one channel aside.
//  - A closed channel has no waiters.
//  - count, closed, given_back, the heads of the queues and version are written under the lock
//    only; they are atomic for callers that look first and lock only if there may be something
//    (try_recv, select with a default).
//
// Looks without the lock. A caller may answer "nothing was ready" only if there was one moment at
// which nothing was, in one channel or in all channels of a select. It reads several fields, one
// after the other, so a value that moves from a field to one that was read before would be missed.
// Therefore `version` counts every step by which a field starts to make a send or a receive
// possible (a value buffered, a place freed, a waiter queued, a node given back, the close). The
// caller reads the versions, then the fields, then the versions again. If no version has changed,
// the moment between the fields and the second reading of the versions is one at which nothing was
// ready. If one has changed, the locks decide.
//
// Why that is enough. The writer stores the field first and the version second (release), both
// under the lock, and the step counts as done with the second store. Suppose that the caller found
// nothing, and yet something was ready at every moment: whenever a step U took the last opening
// away from one channel, a step E had been done before that made another one ready (E happens
// before U). Of the steps U whose result the caller saw, take the last one. It was stored with
// release and read with acquire, so the caller's second reading of E's version, which comes later,
// sees E. If the first reading had seen E as well, it would have acquired E's field, and the look
// at that field, which came after it, would have found it ready, or taken away again by a step
// later than the last U. So the first reading did not see E, and the two readings differ.
//
// Order: direct hand-over. A sender that finds a receiver waiting puts the element into its place
// and readies it, without the buffer; a receiver from a full buffer moves the oldest waiting
// sender's element to the tail. So elements leave in the order in which their sends began to wait.
#pragma once

#include <gofer/detail/chan_core.h>

#include <cstring>

#include "runtime/base/lock.h"
#include "runtime/wait/waiter.h"

namespace gofer::detail {

struct timer_state;
/// The last handle of a timer's channel is gone, and the channel goes next.
void timer_chan_ends(timer_state* t) noexcept;

struct alignas(16) chan_core {
  internal::ShortLock lock{internal::LockRank::primitive};
  internal::atomic<bool> closed{false};
  bool trivial = false;
  internal::atomic<bool> gave_back{false};  // at some time
  internal::atomic<uint32_t> refs{1};
  internal::atomic<uint32_t> count{0};
  uint32_t capacity = 0;
  uint32_t first = 0;  // the slot of the oldest element
  uint32_t element_size = 0;
  internal::atomic<uint64_t> version{0};        // see above; 64 bits do not come round
  internal::atomic<void*> given_back{nullptr};  // nodes, the last given back first
  const chan_ops* ops = nullptr;
  timer_state* timer = nullptr;  // that sends here; it goes with the channel
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

  // With the lock, after a field that makes something possible was stored.
  void has_news() { version.store(version.load(internal::relaxed) + 1, internal::release); }
  void enqueue(internal::WaitQueue& queue, internal::Waiter* w) {
    queue.push_back(w);
    has_news();
  }

  // Looks without the lock. False is the answer for different moments of different fields; see
  // above.
  bool may_recv() const {
    using namespace internal;
    return count.load(acquire) != 0 || !senders.empty() || given_back.load(acquire) != nullptr ||
           closed.load(acquire);
  }
  bool may_send() const {
    using namespace internal;
    return !receivers.empty() || count.load(acquire) < capacity || closed.load(acquire);
  }
  // There was a moment at which nothing could be received, or sent. True is final, false is not.
  // One channel needs no version. Unless it is closed, which is looked at last and for good, what
  // makes it ready is one field: the buffer's count, or without a buffer the queue. Only nodes that
  // are given back are a second one; a channel that ever had any is left to its lock.
  bool had_nothing() const {
    using namespace internal;
    return count.load(acquire) == 0 && senders.empty() && !gave_back.load(acquire) &&
           !closed.load(acquire);
  }
  bool had_no_room() const { return !may_send(); }
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
  c->has_news();
  return chan_result::ok;
}

[[gnu::always_inline]] inline chan_result try_recv_locked(chan_core* c, void* place,
                                                          internal::Waiter*& partner) {
  using namespace internal;
  if (void* node = c->given_back.load(relaxed); node != nullptr) [[unlikely]] {
    c->given_back.store(*static_cast<void**>(node), release);
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
      c->has_news();
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
/// trivial. False: there was no element.
void try_send_inside(internal::M* m, chan_core* c, void* value);
bool drop_trivial(chan_core* c);

}  // namespace gofer::detail
