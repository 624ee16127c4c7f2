#include "runtime/netpoll.h"

#include <cerrno>
#include <new>

#include "os/epoll.h"
#include "os/memory.h"
#include "os/thread.h"
#include "runtime/current.h"
#include "runtime/switch.h"
#include "sync/chan.h"
#include "sync/limit.h"

namespace gofer::internal {
namespace {

constexpr uint32_t watched_events = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLET;
constexpr uint32_t end_events = EPOLLRDHUP | EPOLLHUP | EPOLLERR | EPOLLPRI;
constexpr uint32_t in_events = EPOLLIN | end_events;
constexpr uint32_t out_events = EPOLLOUT | EPOLLHUP | EPOLLERR;
constexpr int events_at_once = 128;
constexpr uint64_t break_data = ~uint64_t{0};

constexpr size_t slab_size = 16 * 1024;
constexpr uint32_t slab_descs = slab_size / sizeof(PollDesc);
constexpr uint32_t max_slabs = 16 * 1024;

struct Records {
  Lock lock{LockRank::records};
  PollDesc* free = nullptr;
  uint32_t used = 0;
  atomic<PollDesc*> slabs[max_slabs] = {};
};
constinit Records records;

// Written once, before sched.has_poller is set.
int epoll_fd = -1;
int break_fd = -1;

// 0 or an errno value. Inside.
int start_poller() {
  LockGuard guard(records.lock);
  if (sched.has_poller.load(relaxed)) return 0;
  const int epoll = os::epoll_create();
  if (epoll < 0) return -epoll;
  const int event = os::event_create();
  int error = event < 0 ? -event : -os::epoll_add(epoll, event, EPOLLIN | EPOLLET, break_data);
  if (error != 0) {
    os::close_descriptor(epoll);
    if (event >= 0) os::close_descriptor(event);
    return error;
  }
  epoll_fd = epoll;
  break_fd = event;
  sched.has_poller.store(true, release);
  return 0;
}

PollDesc* take_record() {
  LockGuard guard(records.lock);
  if (PollDesc* desc = records.free; desc != nullptr) {
    records.free = desc->link;
    return desc;
  }
  const uint32_t slab = records.used / slab_descs;
  if (slab == max_slabs) return nullptr;
  auto* first = records.slabs[slab].load(relaxed);
  if (first == nullptr) {
    first = static_cast<PollDesc*>(os::reserve(slab_size));
    if (first == nullptr) return nullptr;
    for (uint32_t i = 0; i < slab_descs; ++i) {
      ::new (first + i) PollDesc;
      first[i].index = records.used + i;
    }
    records.slabs[slab].store(first, release);
  }
  return first + records.used++ % slab_descs;
}

// An event can name a record only after its slab was made.
PollDesc* find_record(uint32_t index) {
  return records.slabs[index / slab_descs].load(acquire) + index % slab_descs;
}

void put_record(PollDesc* desc) {
  LockGuard guard(records.lock);
  desc->link = records.free;
  records.free = desc;
}

// Takes the waiter of a side out, if the caller may end its wait. With the lock.
Waiter* take_waiter(PollSide& side) {
  Waiter* w = side.waiter;
  side.waiter = nullptr;
  return w != nullptr && claim(w) ? w : nullptr;
}

void tell(PollDesc* desc, PollSide& side, uint32_t tag, bool ends, GQueue& list) {
  side.lock.lock();
  Waiter* w = nullptr;
  if (desc->tag.load(relaxed) == tag) {
    if (ends) desc->ended.store(true, relaxed);
    w = take_waiter(side);
    if (w != nullptr) {
      w->ok = true;
    } else {
      side.ready = true;
    }
  }
  side.lock.unlock();
  if (w == nullptr) return;
  if (G* g = wake_thread_or_get(w); g != nullptr) list.push_back(g);
}

bool unlock_side(G*, void* side) {
  static_cast<PollSide*>(side)->lock.unlock();
  return true;
}

// Those who wait look for themselves what has changed.
void rouse(PollSide& side) {
  Inside inside;
  side.lock.lock();
  Waiter* w = take_waiter(side);
  if (w != nullptr) w->ok = false;
  side.lock.unlock();
  if (w != nullptr) wake(inside.m(), w);
}

}  // namespace

int poll_open(int fd, PollDesc*& desc) {
  ensure_started();
  Inside inside;
  if (!sched.has_poller.load(acquire)) {
    if (const int error = start_poller(); error != 0) return error;
    want_poller();
  }
  desc = take_record();
  if (desc == nullptr) return ENOMEM;
  const uint64_t data = uint64_t{desc->index} << 32 | desc->tag.load(relaxed);
  const int error = -os::epoll_add(epoll_fd, fd, watched_events, data);
  if (error != 0) {
    put_record(desc);
    desc = nullptr;
  }
  return error;
}

void poll_close(PollDesc* desc) {
  desc->closed.store(true, seq_cst);
  rouse(desc->in);
  rouse(desc->out);
}

void poll_free(PollDesc* desc, int fd) {
  // A duplicate of the descriptor would keep it there, and the number may soon be another's.
  os::epoll_remove(epoll_fd, fd);
  Inside inside;
  desc->in.lock.lock();
  desc->out.lock.lock_another();
  desc->tag.store(desc->tag.load(relaxed) + 1, relaxed);
  desc->ended.store(false, relaxed);
  desc->closed.store(false, relaxed);
  for (PollSide* side : {&desc->in, &desc->out}) {
    side->ready = false;
    side->deadline_ns.store(no_deadline, relaxed);
  }
  desc->out.lock.unlock_another();
  desc->in.lock.unlock();
  put_record(desc);
}

PollEnd poll_wait(PollDesc* desc, PollSide& side, detail::chan_core* done) {
  Inside inside;
  M* m = inside.m();
  if (m != nullptr) yield_if_asked(m);
  for (;;) {
    if (m != nullptr) m = current_m();
    side.lock.lock();
    const WaitLimit limit{side.deadline_ns.load(relaxed), done};
    const bool late = limit.deadline_ns != no_deadline && os::now_ns() >= limit.deadline_ns;
    const bool ready = side.ready;
    if (desc->closed.load(relaxed) || late || ready) {
      const bool closed = desc->closed.load(relaxed);
      if (!closed && !late) side.ready = false;
      side.lock.unlock();
      return closed ? PollEnd::closed : late ? PollEnd::timed_out : PollEnd::ready;
    }
    Contest contest;
    Waiter w(m);
    side.waiter = &w;
    sched.poll_waiters.fetch_add(1, relaxed);
    const bool roused = park_limited(m, w, contest, WaitReason::io_wait, unlock_side, &side, limit);
    sched.poll_waiters.fetch_sub(1, relaxed);
    if (roused && w.ok) return PollEnd::ready;
    if (roused) continue;
    side.lock.lock();
    if (side.waiter == &w) side.waiter = nullptr;
    side.lock.unlock();
    if (done != nullptr && done->closed.load(acquire)) return PollEnd::cancelled;
  }
}

void poll_set_deadline(PollSide& side, int64_t deadline_ns) {
  side.deadline_ns.store(deadline_ns, seq_cst);
  rouse(side);
}

void netpoll(int64_t timeout_ns, GQueue& list) {
  if (!sched.has_poller.load(acquire)) return;  // for epoll_fd
  epoll_event events[events_at_once];
  const int n = os::epoll_wait(epoll_fd, events, events_at_once, timeout_ns);
  bump(sched.polls);
  for (int i = 0; i < n; ++i) {
    const epoll_event& event = events[i];
    if (event.data.u64 == break_data) continue;
    PollDesc* desc = find_record(static_cast<uint32_t>(event.data.u64 >> 32));
    const auto tag = static_cast<uint32_t>(event.data.u64);
    const bool ends = (event.events & end_events) != 0;
    if ((event.events & in_events) != 0) tell(desc, desc->in, tag, ends, list);
    if ((event.events & out_events) != 0) tell(desc, desc->out, tag, ends, list);
  }
}

void netpoll_break() { os::event_signal(break_fd); }

}  // namespace gofer::internal
