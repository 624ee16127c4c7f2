#include "runtime/poll/netpoll.h"

#include <cerrno>
#include <new>

#include "os/file.h"
#include "os/memory.h"
#include "os/poller.h"
#include "os/thread.h"
#include "runtime/process/start.h"
#include "runtime/procs/current.h"
#include "runtime/report/panic.h"
#include "runtime/sched/g_queue.h"
#include "runtime/sched/queues.h"
#include "runtime/sched/switch.h"
#include "runtime/threads/idle.h"
#include "runtime/wait/park.h"
#include "runtime/watch/preempt.h"
#include "runtime/watch/sysmon.h"

namespace gofer::internal {

constinit PollState poll_state;

namespace {

constexpr int events_at_once = 128;
constexpr int64_t deaf_ns = 10'000'000;            // the timeout of a poller known to be deaf
constexpr int64_t unsignalled_ns = 1'000'000'000;  // and while no signal could wake a deaf one

constexpr size_t slab_size = 16 * 1024;
constexpr uint32_t slab_descs = slab_size / sizeof(PollDesc);
constexpr uint32_t max_slabs = 16 * 1024;

struct Records {
  Lock lock{LockRank::records};
  PollDesc* free GOFER_GUARDED_BY(lock) = nullptr;
  uint32_t used GOFER_GUARDED_BY(lock) = 0;
  atomic<PollDesc*> slabs[max_slabs] = {};
};
constinit Records records;

// The poller in use: its queue in the lower half, above it a number that is another one for each
// poller. Written under the lock of the records, first before poll_state.in_use.
constinit atomic<uint64_t> instance{0};
constinit atomic<int> bell{-1};         // of that poller
constinit atomic<bool> is_deaf{false};  // the bell has failed to wake an M
constinit atomic<int> failure{0};       // why events cannot be had: an errno value, or 0

os::Poller poller_of(uint64_t used) {
  return {static_cast<int>(static_cast<uint32_t>(used)), bell.load(relaxed)};
}

// Returns 0 or an errno value.
int open_instance_locked() GOFER_REQUIRES(records.lock) {
  os::Poller opened;
  if (const int error = os::poller_open(opened); error != 0) return error;
  bell.store(opened.bell, relaxed);
  is_deaf.store(false, relaxed);
  const uint64_t number = (instance.load(relaxed) >> 32) + 1;
  instance.store(number << 32 | static_cast<uint32_t>(opened.queue), seq_cst);
  return 0;
}

// The kernel has no room now, as opposed to a call that it refuses.
bool is_momentary(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOSPC;
}

void say_once(const char* what, int error) {
  static constinit atomic<bool> said{false};
  if (said.exchange(true, relaxed)) return;
  warn("%s with errno %d: goroutines cannot wait for descriptors", what, error);
}

// 0 or an errno value. Inside.
int start_poller() {
  int error = 0;
  {
    LockGuard guard(records.lock);
    if (poll_state.in_use.load(relaxed)) return 0;
    error = open_instance_locked();
    if (error == 0) poll_state.in_use.store(true, release);
  }
  if (error == EPERM || error == ENOSYS || error == EACCES) {
    say_once(os::poller_open_fails, error);
  }
  return error;
}

PollDesc* take_record() {
  LockGuard guard(records.lock);
  if (PollDesc* desc = records.free; desc != nullptr) {
    records.free = desc->link;
    bump(poll_state.watched);
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
  bump(poll_state.watched);
  return first + records.used++ % slab_descs;
}

PollDesc* find_record(uint32_t index) {
  const uint32_t slab = index / slab_descs;
  PollDesc* first = slab < max_slabs ? records.slabs[slab].load(acquire) : nullptr;
  return first == nullptr ? nullptr : first + index % slab_descs;
}

// What comes with an event: the record and its tag. The highest bit tells it from what a program
// puts into an instance of its own, a descriptor or a pointer.
constexpr uint64_t of_ours = uint64_t{1} << 63;

uint64_t data_of(const PollDesc* desc) {
  return of_ours | uint64_t{desc->index} << 32 | desc->tag.load(relaxed);
}

// An event can name a record only after its slab was made. nullptr: the event is not of ours.
PollDesc* record_of(uint64_t data) {
  if ((data & of_ours) == 0) return nullptr;
  return find_record(static_cast<uint32_t>((data ^ of_ours) >> 32));
}

void put_record(PollDesc* desc) {
  LockGuard guard(records.lock);
  desc->link = records.free;
  records.free = desc;
  bump(poll_state.watched, -1);
}

// Takes the waiter of a side out, if the caller may end its wait.
Waiter* take_waiter(PollSide& side) GOFER_REQUIRES(side.lock) {
  Waiter* w = side.waiter;
  side.waiter = nullptr;
  return w != nullptr && claim(w) ? w : nullptr;
}

// Returns whether there was a waiter.
bool tell(PollDesc* desc, PollSide& side, uint32_t tag, bool ends, GQueue& list) {
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
  if (w == nullptr) return false;
  if (G* g = wake_thread_or_get(w); g != nullptr) list.push_back(g);
  return true;
}

// A waiter that is roused looks for itself what has changed.
void rouse(PollSide& side) {
  Inside inside;
  side.lock.lock();
  Waiter* w = take_waiter(side);
  if (w != nullptr) w->ok = false;
  side.lock.unlock();
  if (w != nullptr) wake(inside.m(), w);
}

// Calls f for each record that there is.
template <class F>
void for_each_record(F f) {
  uint32_t used;
  {
    LockGuard guard(records.lock);
    used = records.used;
  }
  for (uint32_t i = 0; i < used; ++i) f(find_record(i));
}

// Events cannot be had any more. Needs the lock of the records.
void fail_locked(int error) {
  failure.store(error, seq_cst);
  poll_state.in_use.store(false, seq_cst);
}

// After fail_locked: every wait for a descriptor fails.
void end_waits(const char* what, int error, GQueue& list) {
  say_once(what, error);
  for_each_record([&](PollDesc* desc) {
    for (PollSide* side : {&desc->in, &desc->out}) {
      side->lock.lock();
      Waiter* w = take_waiter(*side);
      if (w != nullptr) w->ok = false;
      side->lock.unlock();
      if (w == nullptr) continue;
      if (G* g = wake_thread_or_get(w); g != nullptr) list.push_back(g);
    }
  });
}

// The program has closed the descriptor: all waits for it fail.
void lose(PollDesc* desc, uint32_t tag, GQueue& list) {
  for (PollSide* side : {&desc->in, &desc->out}) {
    side->lock.lock();
    Waiter* w = nullptr;
    if (desc->tag.load(relaxed) == tag) {
      desc->lost.store(true, relaxed);
      w = take_waiter(*side);
      if (w != nullptr) w->ok = false;
    }
    side->lock.unlock();
    if (w == nullptr) continue;
    if (G* g = wake_thread_or_get(w); g != nullptr) list.push_back(g);
  }
}

// The new instance watches what the old one did. Under the side's lock, so that poll_free, which
// takes the descriptor away under it, removes it from this instance too. EEXIST: watch() was
// quicker. If the instance or its bell has the descriptor's number, the descriptor was closed too.
void watch_again(PollDesc* desc, GQueue& list) {
  desc->in.lock.lock();
  const int fd = desc->fd.load(seq_cst);
  const uint32_t tag = desc->tag.load(relaxed);
  const os::Poller poller = poller_of(instance.load(relaxed));
  int error = fd < 0 ? 0 : EBADF;
  if (fd >= 0 && !os::poller_owns(poller, fd)) error = os::poller_watch(poller, fd, data_of(desc));
  desc->in.lock.unlock();
  if (error != 0 && error != EEXIST) lose(desc, tag, list);
}

void watch_all_again(GQueue& list) {
  for_each_record([&](PollDesc* desc) { watch_again(desc, list); });
  // A poller that sleeps in the old instance hears nothing of the new one, and while it sleeps
  // no other M polls. A signal ends its call.
  if (M* m = idle_ms.poller.load(acquire); m != nullptr && m != current_m()) signal_m(m);
}

// The program has closed the instance `used`.
void replace_instance(uint64_t used, GQueue& list) {
  int error;
  {
    LockGuard guard(records.lock);
    if (instance.load(relaxed) != used || failure.load(relaxed) != 0) return;
    error = open_instance_locked();
    if (error != 0) fail_locked(error);
  }
  if (error != 0) {
    end_waits(os::poller_open_fails, error, list);
  } else {
    watch_all_again(list);
  }
}

// The kernel refuses to tell of events in the instance `used`.
void give_up_instance(uint64_t used, int error, GQueue& list) {
  {
    LockGuard guard(records.lock);
    if (instance.load(relaxed) != used) return;
    fail_locked(error);
  }
  end_waits(os::poller_wait_fails, error, list);
}

// 0, or the errno value by which events cannot be had. If there was no room for another instance,
// there may be now: then goroutines that wait go on in that one. Inside.
int still_fails(M* m) {
  const int error = failure.load(relaxed);
  if (!is_momentary(error)) return error;
  {
    LockGuard guard(records.lock);
    if (failure.load(relaxed) == 0) return 0;
    if (const int again = open_instance_locked(); again != 0) return again;
    failure.store(0, seq_cst);
    poll_state.in_use.store(true, seq_cst);
  }
  GQueue list;
  watch_all_again(list);
  while (G* g = list.pop_front()) ready(m, g);
  want_poller();
  return 0;
}

// 0 or an errno value. If the instance changes meanwhile, either its opener finds the descriptor in
// the record or the caller finds the new instance (seq_cst on both sides), or both: EEXIST.
int watch(PollDesc* desc, int fd, GQueue& list) {
  bool replaced = false;
  for (bool again = false;; again = true) {
    const uint64_t used = instance.load(seq_cst);
    const os::Poller poller = poller_of(used);
    int error = os::poller_owns(poller, fd) ? EBADF : os::poller_watch(poller, fd, data_of(desc));
    if (error == EEXIST && again) {  // perhaps for a record whose descriptor had this number before
      error = os::poller_watch_anew(poller, fd, data_of(desc));
    }
    if (error == 0) {
      desc->fd.store(fd, seq_cst);
      if (instance.load(seq_cst) == used) return 0;
    } else if (!replaced && (error == EINVAL || (error == EBADF && os::is_open(fd)))) {
      replaced = true;
      replace_instance(used, list);
      if (const int failed = failure.load(relaxed); failed != 0) return failed;
    } else {
      return error;
    }
  }
}

}  // namespace

int poll_open(int fd, PollDesc*& desc) {
  ensure_started();
  Inside inside;
  desc = nullptr;
  if (const int error = still_fails(inside.m()); error != 0) return error;
  if (!poll_state.in_use.load(acquire)) {
    if (const int error = start_poller(); error != 0) return error;
    want_poller();
  }
  desc = take_record();
  if (desc == nullptr) return ENOMEM;
  GQueue list;
  const int error = watch(desc, fd, list);
  while (G* g = list.pop_front()) ready(inside.m(), g);
  if (error == 0) return 0;
  desc->fd.store(-1, relaxed);
  put_record(desc);
  desc = nullptr;
  return error == EPERM && !os::poller_is_refused() ? 0 : error;
}

size_t poll_record_bytes() {
  LockGuard guard(records.lock);
  return (records.used + slab_descs - 1) / slab_descs * slab_size;
}

int poll_failure() { return failure.load(relaxed); }

void poll_close(PollDesc* desc) {
  desc->closed.store(true, seq_cst);
  rouse(desc->in);
  rouse(desc->out);
}

void poll_free(PollDesc* desc, int fd) {
  Inside inside;
  desc->in.lock.lock();
  desc->fd.store(-1, relaxed);
  desc->out.lock.lock_another();
  desc->tag.store(desc->tag.load(relaxed) + 1, relaxed);
  desc->ended.store(false, relaxed);
  desc->closed.store(false, relaxed);
  desc->lost.store(false, relaxed);
  desc->in.ready = desc->out.ready = false;
  desc->in.deadline_ns.store(no_deadline, relaxed);
  desc->out.deadline_ns.store(no_deadline, relaxed);
  desc->out.lock.unlock_another();
  desc->in.lock.unlock();
  // A duplicate of the descriptor would keep it there, and the number may soon be another's.
  os::poller_forget(poller_of(instance.load(relaxed)), fd);
  put_record(desc);
}

PollEnd poll_wait(PollDesc* desc, PollSide& side, Closable* done) {
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
    const bool lost = desc->lost.load(relaxed);
    if (lost || failure.load(relaxed) != 0) {
      side.lock.unlock();
      if (lost) return PollEnd::lost;
      if (still_fails(m) != 0) return PollEnd::failed;
      continue;
    }
    Waiter w(m);
    side.waiter = &w;
    poll_state.waiters.fetch_add(1, relaxed);
    const bool roused = park(m, w, WaitReason::io_wait, released_by_park(side.lock), limit);
    poll_state.waiters.fetch_sub(1, relaxed);
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

namespace {

// A poller that sleeps in an instance which the program has closed hears nothing; at best a signal
// ends its sleep.
int64_t shorter_if_deaf(int64_t timeout_ns) {
  const bool deaf = is_deaf.load(relaxed);
  if (!deaf && preemption.has_signal.load(relaxed)) return timeout_ns;
  const int64_t most = deaf ? deaf_ns : unsignalled_ns;
  return timeout_ns < 0 || timeout_ns > most ? most : timeout_ns;
}

// The program has closed the bell or the instance, unless another M has just replaced them, or the
// kernel refuses the call: then the poller stays deaf.
void mend_if_deaf(GQueue& list) {
  if (!is_deaf.load(relaxed)) return;
  const uint64_t used = instance.load(relaxed);
  if (os::poller_ring(poller_of(used))) {
    is_deaf.store(false, relaxed);
  } else if (!os::poller_is_refused()) {
    replace_instance(used, list);
  }
}

// The break is for the M that sleeps in the netpoller. A look of another M, which began before that
// one was the poller, must not take it away.
void pass_on_break(int64_t timeout_ns) {
  M* poller = idle_ms.poller.load(acquire);
  if (timeout_ns == 0 && poller != nullptr && poller != current_m()) netpoll_break(poller);
}

}  // namespace

void netpoll(int64_t timeout_ns, GQueue& list) {
  if (!poll_state.in_use.load(acquire)) return;  // for the instance
  mend_if_deaf(list);
  if (list.front() != nullptr) timeout_ns = 0;
  os::PollEvent events[events_at_once];
  const uint64_t used = instance.load(relaxed);
  const int n =
      os::poller_wait(poller_of(used), events, events_at_once, shorter_if_deaf(timeout_ns));
  poll_state.visits.fetch_add(1, relaxed);
  if (n == -EBADF || n == -EINVAL) {
    replace_instance(used, list);
  } else if (n < 0) {
    give_up_instance(used, -n, list);
  }
  uint64_t woken = 0;
  for (int i = 0; i < n; ++i) {
    const os::PollEvent& event = events[i];
    if (event.is_ring()) {
      pass_on_break(timeout_ns);
      continue;
    }
    PollDesc* desc = record_of(event.data());
    if (desc == nullptr) {  // the program has an instance of its own in the place of ours
      replace_instance(used, list);
      continue;
    }
    const auto tag = static_cast<uint32_t>(event.data());
    const bool ends = event.is_end();
    if (event.is_in() && tell(desc, desc->in, tag, ends, list)) ++woken;
    if (event.is_out() && tell(desc, desc->out, tag, ends, list)) ++woken;
  }
  if (woken != 0) poll_state.woken.fetch_add(woken, relaxed);
}

bool netpoll_is_open() {
  const uint64_t used = instance.load(relaxed);
  return os::poller_is_open(poller_of(used)) || instance.load(relaxed) != used;
}

void netpoll_mend(GQueue& list) {
  const uint64_t used = instance.load(relaxed);
  if (!netpoll_is_open()) replace_instance(used, list);
}

void netpoll_look_soon() {
  if (poll_state.in_use.load(acquire) && !netpoll_is_open()) wake_sysmon();
}

void netpoll_break(M* m) {
  const uint64_t used = instance.load(relaxed);
  if (os::poller_ring(poller_of(used))) return;
  if (instance.load(relaxed) == used) is_deaf.store(true, relaxed);
  signal_m(m);
}

// The kernel takes an event back if the program closes the bell before the poller's thread has got
// a processor. The poller, with a P that was given to it, would sleep until its time is over.
void netpoll_break_again() {
  M* m = idle_ms.poller.load(acquire);
  if (m != nullptr && m->polls.load(relaxed) && m->note.is_said()) netpoll_break(m);
}

}  // namespace gofer::internal
