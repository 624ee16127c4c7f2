// Sleeping, and users' timers.
//
// A timer's state is shared by its user and, while it waits, by the heap. Each holds one reference.
// The user of a timer with a function is the timer's handle. The user of a timer with a channel is
// the channel, which knows its timer (chan_core::timer); the handles of the timer and those that
// receive count as handles of the channel. When the last of them goes, the channel stops the timer
// and is freed (timer_chan_ends).
//
// The channel may end while the timer fires. The scheduler sends into the channel under the state's
// lock, and only if the generation is the one that it claimed. The end of the channel stops the
// timer under the same lock before it frees the channel. So a send either comes before the stop,
// while the channel exists, or it finds another generation. If the channel holds the only reference
// to the state, then neither the heap nor a scheduler has it, no handle is left that could start
// it, and there is nothing to stop.
//
// Under the lock:
//  - `generation` counts stops and resets. The claim, which happens under the heap's lock only,
//    notes the generation. When the timer then runs, under its own lock, it compares. If the
//    generation is another one, a caller has stopped or reset the timer in between, and the run
//    does nothing. So nothing stale gets into the channel once stop or reset has returned. Both
//    drop what was in the channel before.
//  - Between claim and run (`pending`) the Timer is on the list of the M that runs it and must not
//    go into a heap again. A reset leaves the new time in `next_ns`, and run starts the timer.
#include <gofer/timer.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <stdexcept>

#include "os/thread.h"
#include "runtime/base/debug_table.h"
#include "runtime/base/frame_pointer.h"
#include "runtime/goroutines/spawn.h"
#include "runtime/process/process_state.h"
#include "runtime/process/start.h"
#include "runtime/procs/current.h"
#include "runtime/wait/timer.h"
#include "sync/chan.h"
#include "sync/until_done.h"

namespace gofer {

using namespace internal;

namespace detail {

struct timer_state {
  Timer timer;
  ShortLock lock{LockRank::timer};
  std::atomic<uint32_t> refs{1};
  std::atomic<uint64_t> generation{0};
  uint64_t claimed = 0;  // the generation that was claimed
  std::atomic<bool> pending{false};
  int64_t next_ns = 0;  // when run starts the timer again; 0: it does not
  int64_t period_ns = 0;
  chan_core* channel = nullptr;
  const timer_func* func = nullptr;
  timer_state* link = nullptr;  // in the list of garbage
};

namespace {

constexpr int64_t retry_ns = 1'000'000;

constexpr std::size_t align_of(const timer_func* func) {
  return func != nullptr && func->align > alignof(timer_state) ? func->align : alignof(timer_state);
}

constexpr std::size_t place_offset(const timer_func* func) {
  return (sizeof(timer_state) + func->align - 1) / func->align * func->align;
}

bool claim_timer(Timer* t) {
  auto* state = static_cast<timer_state*>(t->arg);
  state->claimed = state->generation.load(relaxed);
  state->pending.store(true, relaxed);
  return true;
}

void destroy(timer_state* t) noexcept {
  if (t->func != nullptr) t->func->destroy(timer_place(t));
  timer_delete_unused(t);
}

void release_ref(timer_state* t) noexcept {
  if (t->refs.fetch_sub(1, acq_rel) == 1) destroy(t);
}

// Entries of goroutines that do what the scheduler must not do: call a timer's function, destroy
// it.
void let_go(void* closure) { release_ref(*static_cast<timer_state**>(closure)); }

void call_func(void* closure) {
  GOFER_HAS_FRAME_POINTER;
  struct guard {
    void* closure;
    ~guard() { let_go(closure); }
  } g{closure};
  timer_state* state = *static_cast<timer_state**>(closure);
  state->func->call(timer_place(state));
}

// Returns true if the caller holds the last reference, which it keeps. Otherwise gives the caller's
// reference back and returns false.
bool is_last_or_lets_go(timer_state* state) {
  if (state->refs.load(acquire) == 1) return true;
  if (state->refs.fetch_sub(1, acq_rel) != 1) return false;
  state->refs.store(1, relaxed);
  return true;
}

// States without a function whose last holder was the scheduler, which must not free memory. The
// next timer that is made frees them.
constinit std::atomic<timer_state*> garbage{nullptr};

void release_later(timer_state* state) {
  state->link = garbage.load(relaxed);
  while (!garbage.compare_exchange_weak(state->link, state, release, relaxed)) {
  }
}

void collect_garbage() {
  if (garbage.load(relaxed) == nullptr) return;
  timer_state* state = garbage.exchange(nullptr, acquire);
  while (state != nullptr) {
    timer_state* next = state->link;
    release_ref(state);
    state = next;
  }
}

void run_timer(M* m, Timer* t) {
  auto* state = static_cast<timer_state*>(t->arg);
  G* caller = state->func != nullptr ? take_g_from_scheduler(m) : nullptr;
  state->lock.lock();
  state->pending.store(false, relaxed);
  int64_t again = std::exchange(state->next_ns, 0);
  bool calls = false;
  if (state->claimed == state->generation.load(relaxed)) {
    if (caller != nullptr) {
      calls = true;
    } else if (state->func != nullptr) {
      again = os::now_ns() + retry_ns;  // no memory for a goroutine
    } else {
      auto now = time_point(std::chrono::nanoseconds(os::now_ns()));
      try_send_inside(m, state->channel, &now);
      if (state->period_ns != 0) {
        const int64_t late = os::now_ns() - t->when_ns;
        again = t->when_ns + state->period_ns * (1 + late / state->period_ns);
      }
    }
  }
  const bool started = again != 0 && start_timer(m, t, again);
  state->lock.unlock();
  if (calls) {
    // The goroutine holds the state from now on. It may be done and release the state at once.
    start_from_scheduler(m, caller, call_func, state);
  } else if (started || !is_last_or_lets_go(state)) {
    if (caller != nullptr) put_free_g(caller);
  } else if (caller != nullptr) {
    start_from_scheduler(m, caller, let_go, state);
  } else {
    release_later(state);
  }
}

}  // namespace

timer_state* timer_new(const timer_func* func) {
  collect_garbage();
  const std::size_t size = func != nullptr ? place_offset(func) + func->size : sizeof(timer_state);
  void* memory = ::operator new(size, std::align_val_t(align_of(func)));
  auto* state = ::new (memory) timer_state;
  state->timer.claim = claim_timer;
  state->timer.run = run_timer;
  state->timer.arg = state;
  state->func = func;
  if (func != nullptr) return state;
  try {
    state->channel = chan_new(1, &chan_ops_of<time_point>::ops);
    state->channel->timer = state;
  } catch (...) {
    timer_delete_unused(state);
    throw;
  }
  return state;
}

void* timer_place(timer_state* t) noexcept {
  return reinterpret_cast<char*>(t) + place_offset(t->func);
}

chan_core* timer_chan(timer_state* t) noexcept { return t->channel; }

void timer_delete_unused(timer_state* t) noexcept {
  const std::size_t align = align_of(t->func);
  t->~timer_state();
  ::operator delete(t, std::align_val_t(align));
}

void timer_release(timer_state* t) noexcept {
  if (t->channel != nullptr) {
    chan_release(t->channel);
  } else {
    release_ref(t);
  }
}

void timer_chan_ends(timer_state* t) noexcept {
  if (t->refs.load(acquire) == 1) return destroy(t);
  if (process.forked.load(relaxed)) return;  // the timer is in a heap of the parent
  timer_stop(t);
  release_ref(t);
}

bool timer_reset(timer_state* t, std::int64_t when_ns, std::int64_t period_ns) {
  ensure_started();
  bool started = true;
  bool waited;
  {
    Inside inside;
    LockGuard guard(t->lock);
    t->period_ns = period_ns;
    waited = move_timer(&t->timer, when_ns);
    if (!waited) {
      // The timer may have been claimed for the old time, so the generation changes.
      t->generation.store(t->generation.load(relaxed) + 1, relaxed);
      if (t->pending.load(relaxed)) {
        waited = t->next_ns != 0 || t->claimed + 1 == t->generation.load(relaxed);
        t->next_ns = when_ns;
      } else {
        t->refs.fetch_add(1, relaxed);
        started = start_timer(inside.m(), &t->timer, when_ns);
      }
    }
    if (t->channel != nullptr && drop_trivial(t->channel)) waited = true;
  }
  if (!started) {
    t->refs.fetch_sub(1, release);  // not the last reference: the caller has another
    throw std::bad_alloc();
  }
  return waited;
}

bool timer_stop(timer_state* t) {
  bool in_heap;
  bool waited;
  {
    Inside inside;
    LockGuard guard(t->lock);
    in_heap = stop_timer(&t->timer);
    t->generation.store(t->generation.load(relaxed) + 1, relaxed);
    waited = in_heap;
    if (t->pending.load(relaxed)) {
      waited = waited || t->next_ns != 0 || t->claimed + 1 == t->generation.load(relaxed);
      t->next_ns = 0;
    }
    if (t->channel != nullptr && drop_trivial(t->channel)) waited = true;
  }
  if (in_heap) t->refs.fetch_sub(1, release);  // not the last reference: the caller has another
  return waited;
}

namespace {

bool sleep(std::int64_t deadline_ns, WaitLimit limit) {
  if (limit.refuses()) return false;
  if (deadline_ns == 0) return true;
  ensure_started();
  Inside inside;
  limit.deadline_ns = deadline_ns;
  Waiter w(inside.m());
  park(inside.m(), w, WaitReason::sleep, no_queue_lock, limit);
  return !limit.refuses() || os::now_ns() >= deadline_ns;
}

}  // namespace

void sleep_until_ns(std::int64_t deadline_ns) { sleep(deadline_ns, {}); }

bool sleep_until_ns(const context& ctx, std::int64_t deadline_ns) {
  return sleep(deadline_ns, until_done(ctx));
}

void throw_reset_of_no_timer() {
  throw std::logic_error("gofer: reset of a timer or ticker that is none");
}

// tools/gdb: when a timer fires.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
GOFER_DEBUG_TABLE(gofer_debug_timers) = {
    {"timer_state.when_ns", offsetof(timer_state, timer) + offsetof(Timer, when_ns)},
    {"timer_state.heap", offsetof(timer_state, timer) + offsetof(Timer, heap)},
    GOFER_DEBUG_FIELD(timer_state, period_ns),
    GOFER_DEBUG_FIELD(timer_state, channel),
    GOFER_DEBUG_FIELD(timer_state, func),
    {}};

}  // namespace detail

void ticker::throw_not_positive() {
  throw std::invalid_argument("gofer::ticker: the interval must be positive");
}

}  // namespace gofer
