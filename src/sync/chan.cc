// Channels: send, receive, close. chan.h has the invariants.
#include "sync/chan.h"

#include <gofer/chan.h>

#include <cstdlib>
#include <limits>
#include <new>
#include <stdexcept>

#include "runtime/base/debug_table.h"
#include "runtime/procs/current.h"
#include "runtime/report/panic.h"
#include "runtime/sched/switch.h"

namespace gofer::detail {

using namespace internal;

namespace {

// The nil channel: no value is ever sent or received on it.
chan_result wait_on_nil(WaitReason reason, int64_t deadline_ns) {
  if (deadline_ns == 0) return chan_result::would_block;
  Inside inside;
  Waiter w(inside.m());
  while (park(inside.m(), w, reason, no_queue_lock, {deadline_ns})) {
  }
  return chan_result::timed_out;
}

// Queues the caller and waits for a partner, the close of the channel, or the deadline.
chan_result wait_for_partner(M* m, chan_core* c, WaitQueue& queue, void* elem, WaitReason reason,
                             int64_t deadline_ns) GOFER_RELEASES(c->lock) {
  Waiter w(m);
  w.elem = elem;
  c->enqueue(queue, &w);
  if (park(m, w, reason, released_by_park(c->lock), {deadline_ns})) {
    return w.ok ? chan_result::ok : chan_result::closed;
  }
  c->lock.lock();
  queue.remove(&w);
  c->lock.unlock();
  return chan_result::timed_out;
}

// Ends a send or a receive that was tried under the lock, with the result `r`: waits if it would
// block, otherwise wakes the partner. Releases the lock and leaves the runtime.
[[gnu::always_inline]] inline chan_result end_or_wait(M* m, chan_core* c, chan_result r,
                                                      Waiter* partner, WaitQueue& queue, void* elem,
                                                      WaitReason reason, int64_t deadline_ns)
    GOFER_RELEASES(c->lock) {
  if (r == chan_result::would_block && deadline_ns != 0) {
    r = wait_for_partner(m, c, queue, elem, reason, deadline_ns);
    if (m != nullptr) leave(current_m());
    return r;
  }
  c->lock.unlock();
  if (partner != nullptr) wake(m, partner);
  if (m == nullptr) return r;
  if (deadline_ns != 0) yield_if_asked(m);
  leave(current_m());
  return r;
}

Waiter* collect_all(WaitQueue& queue, Waiter* list) {
  while (Waiter* w = queue.pop_claimed()) {
    w->ok = false;
    w->next = list;
    list = w;
  }
  return list;
}

}  // namespace

chan_core* chan_new(std::size_t capacity, const chan_ops* ops) {
  constexpr std::size_t most = std::numeric_limits<uint32_t>::max() / 2;
  if (capacity > most) throw std::length_error("gofer::chan: capacity too large");
  const std::size_t size = sizeof(chan_core) + capacity * ops->size;
  void* memory = ::operator new(size);
  auto* c = ::new (memory) chan_core;
  c->capacity = static_cast<uint32_t>(capacity);
  c->element_size = static_cast<uint32_t>(ops->size);
  c->trivial = ops->trivial;
  c->ops = ops;
  return c;
}

void chan_retain(chan_core* c) noexcept { c->refs.fetch_add(1, relaxed); }

void chan_release(chan_core* c) noexcept {
  // The only handle needs no locked operation, because no thread can copy it meanwhile.
  if (c->refs.load(acquire) != 1 && c->refs.fetch_sub(1, acq_rel) != 1) return;
  if (c->timer != nullptr) timer_chan_ends(c->timer);
  if (c->ops->discard != nullptr) chan_clear(c);  // otherwise elements need no destructor
  c->~chan_core();
  ::operator delete(c);
}

chan_result chan_send(chan_core* c, void* value, std::int64_t deadline_ns) {
  if (c == nullptr) return wait_on_nil(WaitReason::chan_send_nil, deadline_ns);
  if (deadline_ns == 0 && c->had_no_room()) return chan_result::would_block;
  M* m = enter();
  c->lock.lock();
  Waiter* partner = nullptr;
  const chan_result r = try_send_locked(c, value, partner);
  return end_or_wait(m, c, r, partner, c->senders, value, WaitReason::chan_send, deadline_ns);
}

void try_send_inside(M* m, chan_core* c, void* value) {
  Waiter* partner = nullptr;
  c->lock.lock();
  try_send_locked(c, value, partner);
  c->lock.unlock();
  if (partner != nullptr) wake(m, partner);
}

chan_result chan_recv(chan_core* c, void* place, std::int64_t deadline_ns) {
  if (c == nullptr) return wait_on_nil(WaitReason::chan_receive_nil, deadline_ns);
  if (deadline_ns == 0 && c->had_nothing()) return chan_result::would_block;
  M* m = enter();
  c->lock.lock();
  Waiter* partner = nullptr;
  const chan_result r = try_recv_locked(c, place, partner);
  return end_or_wait(m, c, r, partner, c->receivers, place, WaitReason::chan_receive, deadline_ns);
}

void chan_give_back(chan_core* c, void* node) noexcept {
  Inside inside;
  c->lock.lock();
  Waiter* w = c->receivers.pop_claimed();
  if (w != nullptr) {
    ::new (w->elem)(void*)(node);
    w->ok = true;
  } else {
    *static_cast<void**>(node) = c->given_back.load(relaxed);
    c->given_back.store(node, release);
    c->gave_back.store(true, release);
    c->has_news();
  }
  c->lock.unlock();
  if (w != nullptr) wake(inside.m(), w);
}

bool drop_trivial(chan_core* c) {
  if (chan_len(c) == 0) return false;
  c->lock.lock();
  const bool dropped = c->count.load(relaxed) != 0;
  c->first = 0;
  c->count.store(0, release);
  c->lock.unlock();
  return dropped;
}

bool chan_close(chan_core* c) {
  Inside inside;
  c->lock.lock();
  if (c->closed.load(relaxed)) {
    c->lock.unlock();
    return false;
  }
  c->closed.store(true, release);
  c->has_news();
  Waiter* list = collect_all(c->senders, collect_all(c->receivers, nullptr));
  c->lock.unlock();
  wake_list(inside.m(), reversed(list));
  return true;
}

std::size_t chan_len(const chan_core* c) noexcept {
  return c == nullptr ? 0 : c->count.load(relaxed);
}

std::size_t chan_cap(const chan_core* c) noexcept { return c == nullptr ? 0 : c->capacity; }

bool chan_closed(const chan_core* c) noexcept {
  return c != nullptr && c->closed.load(acquire) && c->count.load(acquire) == 0 &&
         c->given_back.load(relaxed) == nullptr;
}

void chan_clear(chan_core* c) noexcept {
  for (;;) {
    // An element's destructor is user code, so each element is taken out as a receiver would do it.
    alignas(std::max_align_t) std::byte place[max_inline_element];
    if (chan_recv(c, place, 0) != chan_result::ok) return;
    if (c->ops->discard != nullptr) c->ops->discard(place);
  }
}

void throw_send_on_closed() { throw channel_error("send on closed channel"); }

void throw_close_of(bool nil) {
  throw channel_error(nil ? "close of nil channel" : "close of closed channel");
}

// tools/gdb: a channel and its waiters. A channel is no standard-layout type, because its fields
// are in two classes; the compilers know the offsets all the same.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
GOFER_DEBUG_TABLE(gofer_debug_channels) = {
    GOFER_DEBUG_SIZE(chan_core),           GOFER_DEBUG_FIELD(chan_core, receivers),
    GOFER_DEBUG_FIELD(chan_core, senders), GOFER_DEBUG_FIELD(chan_core, closed),
    GOFER_DEBUG_FIELD(chan_core, count),   GOFER_DEBUG_FIELD(chan_core, capacity),
    GOFER_DEBUG_FIELD(chan_core, first),   GOFER_DEBUG_FIELD(chan_core, element_size),
    GOFER_DEBUG_FIELD(chan_core, refs),    {}};

}  // namespace gofer::detail
