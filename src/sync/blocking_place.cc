// The limit of calls in blocking(): a number of places, and a queue of parked goroutines that wait
// for one.
#include <gofer/blocking.h>
#include <gofer/cond.h>
#include <gofer/mutex.h>

#include <cerrno>
#include <mutex>

#include "os/thread.h"
#include "runtime/procs/current.h"

namespace gofer {
namespace detail {

constinit word<int> blocking_place::limit{0};

}  // namespace detail

namespace {

constinit mutex lock;
constinit cond place_free;
int taken = 0;    // under the lock
int waiting = 0;  // under the lock

internal::StackHead* own_head() {
  const internal::M* m = internal::current_m();
  return m != nullptr && m->curg != nullptr ? m->curg->head : nullptr;
}

bool has_place() {
  const int limit = detail::blocking_place::limit.load(std::memory_order_relaxed);
  return limit == 0 || taken < limit;
}

}  // namespace

bool detail::blocking_place::take() {
  internal::StackHead* head = own_head();  // the goroutine's, so it stays valid when that moves
  if (head == nullptr || head->blocking_places != 0) return false;
  std::unique_lock held(lock);
  // If others wait already, the caller waits behind them, even if a place is free.
  bool first = waiting == 0;
  while (!first || !has_place()) {
    ++waiting;
    place_free.wait(held);
    --waiting;
    first = true;
  }
  ++taken;
  head->blocking_places = 1;
  if (waiting != 0 && has_place()) place_free.signal();
  return true;
}

void detail::blocking_place::give_back() {
  const int of_the_call = errno;
  own_head()->blocking_places = 0;
  {
    const std::lock_guard held(lock);
    --taken;
    if (has_place()) place_free.signal();
  }
  internal::os::set_errno(of_the_call);
}

int set_max_blocking(int n) {
  const std::lock_guard held(lock);
  const int old = detail::blocking_place::limit.load(std::memory_order_relaxed);
  if (n < 0) return old;
  detail::blocking_place::limit.store(n, std::memory_order_relaxed);
  place_free.broadcast();
  return old;
}

}  // namespace gofer
