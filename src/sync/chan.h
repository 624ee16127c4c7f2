// A channel as chan.cc and select.cc see it.
//
// Invariants, under the lock:
//  - Receivers wait only while there is nothing to receive: no element is buffered or given back,
//    and no sender waits. Senders wait only while the buffer is full (the buffer of an unbuffered
//    channel always is). So at most one of the two queues has waiters that no waker has claimed
//    yet. The exception is a select that waits on both sides of one channel.
//  - A closed channel has no waiters.
//  - count, closed, given_back, the heads of the queues and version are written under the lock
//    only. They are atomic for callers that look first and lock only if there may be something
//    (try_recv, select with a default).
//
// Looks without the lock. A caller may answer "nothing was ready" only if there was one moment at
// which nothing was ready, in one channel or in all channels of a select. The caller reads several
// fields, one after the other. So it would miss a value that moves from a field that it has yet to
// read to one that it has read. Therefore `version` counts every step by which a field starts to
// make a send or a receive possible: a value is buffered, a place is freed, a waiter is queued, a
// node is given back, the channel is closed. The caller reads the versions, then the fields, then
// the versions again. If no version has changed, nothing was ready at the moment between the fields
// and the second reading of the versions. If a version has changed, the caller takes the locks.
//
// Why that is enough. The writer stores the field first and the version second (release), both
// under the lock, and the step counts as done with the second store. Suppose that the caller found
// nothing, and yet something was ready at every moment. Then, whenever a step U made the last ready
// channel unready, a step E that made another channel ready had been done before (E happens before
// U). Take the last one of the steps U whose result the caller saw. Its result was stored with
// release and read with acquire, so the caller's second reading of E's version, which comes later,
// sees E. Suppose that the first reading had seen E as well. Then it would have acquired E's field.
// The look at that field, which came after it, would have found the field ready, or made unready
// again by a step later than the last U. Both contradict the assumption. So the first reading did
// not see E, and the two readings differ.
//
// Order. A sender that finds a waiting receiver hands the element over: it puts the element into
// the receiver's place and readies the receiver, without the buffer. A receiver that takes an
// element from a full buffer moves the element of the oldest waiting sender to the tail. So
// elements leave in the order in which their sends began to wait.
#pragma once

#include <gofer/detail/chan_core.h>

#include <cstring>

#include "runtime/wait/park.h"

namespace gofer::detail {

struct timer_state;
/// To be called when the last handle of a timer's channel is gone, before the channel is freed.
void timer_chan_ends(timer_state* t) noexcept;

struct alignas(16) chan_core : internal::Closable {
  bool trivial = false;
  internal::atomic<bool> gave_back{false};  // a node was given back at some time
  internal::atomic<uint32_t> refs{1};
  internal::atomic<uint32_t> count{0};
  uint32_t capacity = 0;
  uint32_t first = 0;  // the slot of the oldest element
  uint32_t element_size = 0;
  internal::atomic<uint64_t> version{0};        // see above; 64 bits never wrap
  internal::atomic<void*> given_back{nullptr};  // nodes, the last given back first
  const chan_ops* ops = nullptr;
  timer_state* timer = nullptr;  // the timer that sends here; it ends with the channel
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
  /// Like move(), for an element in a slot: destroys *from.
  void take(void* to, void* from) {
    move(to, from);
    if (ops->destroy != nullptr) ops->destroy(from);
  }

  // With the lock, after the store to a field that makes a send or a receive possible.
  void has_news() { version.store(version.load(internal::relaxed) + 1, internal::release); }
  void enqueue(internal::WaitQueue& queue, internal::Waiter* w) {
    queue.push_back(w);
    has_news();
  }

  // Looks without the lock. If the result is false, each field was read at another moment; see
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
  // True if there was a moment at which nothing could be received, or no element could be sent.
  // False proves nothing. A single channel needs no version, because one field makes it ready: the
  // buffer's count, or the queue if there is no buffer. The close is for good, so it is read last.
  // Nodes that are given back would be a second field, so a channel that ever had one is left to
  // its lock.
  bool had_nothing() const {
    using namespace internal;
    return count.load(acquire) == 0 && senders.empty() && !gave_back.load(acquire) &&
           !closed.load(acquire);
  }
  bool had_no_room() const { return !may_send(); }
};

/// With the lock: sends or receives if that is possible at once. The caller has to wake `partner`,
/// if there is one, after the unlock.
[[gnu::always_inline]] inline chan_result try_send_locked(chan_core* c, void* value,
                                                          internal::Waiter*& partner)
    GOFER_REQUIRES(c->lock) {
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
                                                          internal::Waiter*& partner)
    GOFER_REQUIRES(c->lock) {
  using namespace internal;
  if (void* node = c->given_back.load(relaxed); node != nullptr) [[unlikely]] {
    c->given_back.store(*static_cast<void**>(node), release);
    ::new (place)(void*)(node);
    return chan_result::ok;
  }
  const uint32_t count = c->count.load(relaxed);
  if (count != 0) {
    c->take(place, c->slot(c->first));
    const uint32_t tail = c->first;  // if the buffer is full
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

/// For callers that are inside, and for elements that are trivial. The first sends without waiting.
/// The second drops all elements and returns whether there was one.
void try_send_inside(internal::M* m, chan_core* c, void* value);
bool drop_trivial(chan_core* c);

}  // namespace gofer::detail
