#include "runtime/wait/timer.h"

#include <cstring>

#include "os/memory.h"
#include "os/thread.h"
#include "runtime/procs/p_table.h"
#include "runtime/threads/idle.h"

namespace gofer::internal {
namespace {

constexpr uint32_t arity = 4;

}  // namespace

bool TimerHeap::grow() {
  const size_t old_bytes = capacity_ * sizeof(Entry);
  const size_t bytes = old_bytes == 0 ? os::page_size : old_bytes * 2;
  void* memory = os::reserve(bytes);
  if (memory == nullptr) return false;
  sanitizer_add_root(memory, bytes);
  if (old_bytes != 0) {
    std::memcpy(memory, entries_, old_bytes);
    sanitizer_remove_root(entries_, old_bytes);
    os::release(entries_, old_bytes);
  }
  entries_ = static_cast<Entry*>(memory);
  capacity_ = static_cast<uint32_t>(bytes / sizeof(Entry));
  return true;
}

void TimerHeap::sift_up(uint32_t i, Entry e) {
  while (i > 0) {
    const uint32_t parent = (i - 1) / arity;
    if (entries_[parent].when_ns <= e.when_ns) break;
    put(i, entries_[parent]);
    i = parent;
  }
  put(i, e);
}

void TimerHeap::sift_down(uint32_t i, Entry e) {
  const uint32_t n = count_.load(relaxed);
  for (;;) {
    const uint32_t first = i * arity + 1;
    if (first >= n) break;
    const uint32_t end = first + arity < n ? first + arity : n;
    uint32_t least = first;
    for (uint32_t c = first + 1; c < end; ++c) {
      if (entries_[c].when_ns < entries_[least].when_ns) least = c;
    }
    if (e.when_ns <= entries_[least].when_ns) break;
    put(i, entries_[least]);
    i = least;
  }
  put(i, e);
}

void TimerHeap::remove_at(uint32_t i) {
  const uint32_t last = count_.load(relaxed) - 1;
  entries_[i].timer->heap.store(nullptr, release);
  count_.store(last, relaxed);
  if (i == last) return;
  const Entry e = entries_[last];
  if (i > 0 && e.when_ns < entries_[(i - 1) / arity].when_ns) {
    sift_up(i, e);
  } else {
    sift_down(i, e);
  }
}

bool TimerHeap::move(Timer* t, int64_t when_ns, bool* first) {
  LockGuard guard(lock_);
  if (t->heap.load(relaxed) != this) return false;
  const uint32_t i = t->index;
  const Entry e{when_ns, t};
  t->when_ns = when_ns;
  if (first != nullptr) *first = when_ns < next_ns_.load(relaxed);
  if (i > 0 && when_ns < entries_[(i - 1) / arity].when_ns) {
    sift_up(i, e);
  } else {
    sift_down(i, e);
  }
  publish();
  return true;
}

bool TimerHeap::add(Timer* t, bool* first) {
  LockGuard guard(lock_);
  if (first != nullptr) *first = t->when_ns < next_ns_.load(relaxed);
  const uint32_t n = count_.load(relaxed);
  if (n == capacity_ && !grow()) return false;
  count_.store(n + 1, relaxed);
  t->heap.store(this, relaxed);
  sift_up(n, {t->when_ns, t});
  publish();
  return true;
}

bool TimerHeap::remove(Timer* t) {
  LockGuard guard(lock_);
  if (t->heap.load(relaxed) != this) return false;
  remove_at(t->index);
  publish();
  return true;
}

Timer* TimerHeap::take_due(int64_t now) {
  LockGuard guard(lock_);
  Timer* first = nullptr;
  Timer** end = &first;
  uint64_t fired = 0;
  while (count_.load(relaxed) != 0 && entries_[0].when_ns <= now) {
    Timer* t = entries_[0].timer;
    // Before the heap lets go of it: stop_timer relies on that when it finds the timer in no heap.
    const bool claimed = t->claim(t);
    remove_at(0);
    if (!claimed) continue;
    *end = t;
    end = &t->next;
    ++fired;
  }
  *end = nullptr;
  fired_.store(fired_.load(relaxed) + fired, relaxed);
  publish();
  return first;
}

bool TimerHeap::move_all(TimerHeap& to) {
  LockGuard guard(lock_);
  to.lock_.lock_another();
  uint32_t n = count_.load(relaxed);
  bool room = true;
  while (room && to.capacity_ < to.count_.load(relaxed) + n) room = to.grow();
  if (room) {
    for (; n > 0; --n) {
      const Entry e = entries_[n - 1];
      e.timer->heap.store(&to, relaxed);
      const uint32_t at = to.count_.load(relaxed);
      to.count_.store(at + 1, relaxed);
      to.sift_up(at, e);
    }
    count_.store(0, relaxed);
    publish();
    to.publish();
  }
  to.lock_.unlock_another();
  return room;
}

bool start_timer(M* m, Timer* t, int64_t when_ns, bool parks) {
  // A foreign thread has no P and may not even know how many there are: the first is always
  // there.
  P* p = m != nullptr ? m->p : p_table.all[0].load(acquire);
  t->when_ns = when_ns;
  bool first;
  if (!p->timers.add(t, &first)) return false;
  if (!first || when_ns >= idle_ms.sleep_until_ns.load(seq_cst)) return true;
  if (m != nullptr && parks && p->queue.empty()) {
    m->unannounced_timer_ns = when_ns;
  } else {
    wake_sleeper(when_ns);
  }
  return true;
}

void announce_timer(M* m) {
  if (m->unannounced_timer_ns == no_timer) return;
  wake_sleeper(m->unannounced_timer_ns);
  m->unannounced_timer_ns = no_timer;
}

bool move_timer(Timer* t, int64_t when_ns) {
  for (;;) {
    TimerHeap* heap = t->heap.load(acquire);
    if (heap == nullptr) return false;
    bool first;
    if (!heap->move(t, when_ns, &first)) continue;
    if (first && when_ns < idle_ms.sleep_until_ns.load(seq_cst)) wake_sleeper(when_ns);
    return true;
  }
}

bool stop_timer(Timer* t) {
  for (;;) {
    TimerHeap* heap = t->heap.load(acquire);
    if (heap == nullptr) return false;
    if (heap->remove(t)) return true;
  }
}

bool run_timers(M* m, P* p) {
  const int64_t next = p->timers.next_ns();
  if (next == no_timer) return false;
  const int64_t now = os::now_ns();
  if (now < next) return false;
  Timer* due = p->timers.take_due(now);
  const bool any = due != nullptr;
  while (due != nullptr) {
    Timer* t = due;
    due = t->next;  // t may be gone when it has run
    t->run(m, t);
  }
  return any;
}

bool run_all_timers(M* m) {
  bool any = false;
  for (P* p : ps_ever()) any = run_timers(m, p) || any;
  return any;
}

int64_t earliest_timer_ns() {
  int64_t earliest = no_timer;
  for (P* p : ps_ever()) {
    const int64_t next = p->timers.next_ns();
    if (next < earliest) earliest = next;
  }
  return earliest;
}

}  // namespace gofer::internal
