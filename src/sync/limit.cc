#include "sync/limit.h"

#include "runtime/sched/sched.h"
#include "sync/chan.h"

namespace gofer::internal {
namespace {

// The context is done already: the wait ends before it began, unless somebody has ended it before.
bool give_up(M* m, Waiter& w, WaitReason reason, UnlockFn unlock, void* arg) {
  unlock(nullptr, arg);
  Waiter nobody;
  nobody.contest = w.contest;
  if (claim(&nobody)) return false;
  // Who has claimed w wakes it, or finds that it has not parked.
  if (m == nullptr) {
    w.thread->note.wait(-1);
    return true;
  }
  const auto park_or_go_on = [](G*, void* contest) {
    return static_cast<Contest*>(contest)->state.exchange(Contest::parked, acq_rel) !=
           Contest::woken;
  };
  park(m, reason, park_or_go_on, w.contest);
  return true;
}

}  // namespace

bool WaitLimit::refuses() const { return done != nullptr && done->closed.load(acquire); }

bool park_limited(M* m, Waiter& w, Contest& contest, WaitReason reason, UnlockFn unlock, void* arg,
                  const WaitLimit& limit) {
  if (limit.none()) {
    park_waiter(m, w, reason, unlock, arg);
    return true;
  }
  contest.early = limit.done != nullptr;
  w.contest = &contest;
  return park_early(m, w, reason, unlock, arg, limit);
}

bool park_early(M* m, Waiter& w, WaitReason reason, UnlockFn unlock, void* arg,
                const WaitLimit& limit) {
  if (limit.done == nullptr) return park_until(m, w, reason, unlock, arg, limit.deadline_ns);
  // The lock of the primitive may be held, and that of the channel is taken after it: nobody does
  // that the other way round.
  Waiter done(m);
  done.contest = w.contest;
  done.counted = m == nullptr && limit.deadline_ns == no_deadline;
  limit.done->lock.lock_another();
  const bool is_done = limit.done->closed.load(relaxed);
  if (!is_done) limit.done->receivers.push_back(&done);
  limit.done->lock.unlock_another();
  if (is_done) return give_up(m, w, reason, unlock, arg);
  park_until(m, w, reason, unlock, arg, limit.deadline_ns);
  limit.done->lock.lock();
  limit.done->receivers.remove(&done);
  limit.done->lock.unlock();
  return w.contest->winner.load(relaxed) == &w;
}

}  // namespace gofer::internal
