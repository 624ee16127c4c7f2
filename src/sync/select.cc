// select: the first of several channel operations that can be done.
//
// The caller first looks at its channels without locks. If cases seem ready, it tries one of them,
// chosen at random, under its channel's lock. If none is ready, it locks all channels in the order
// of their addresses and looks again. If still none is ready, it puts a record into every queue and
// parks; the locks are released when it has parked. So no partner can come between the look and the
// wait. The waker has claimed the contest. Afterwards the caller takes the other records out of
// their queues.
//
// The default, or a time limit that is over, may be chosen only if there was one moment at which no
// case was ready. A look at one channel after the other does not show that, because a value may
// move from a channel that the caller has yet to look at to one that it has seen.
// nothing_at_one_moment() looks twice, without locks (chan.h has the argument). If it cannot tell,
// the look with all locks decides.
//
// The choice among the ready cases is uniform: the look counts them, and one random number decides.
// Cases that wait on the same channel are queued in a random order, because the first of them is
// served.
#include <gofer/chan.h>
#include <gofer/select.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "runtime/procs/current.h"
#include "runtime/sched/switch.h"
#include "sync/chan.h"

namespace gofer::detail {

using namespace internal;

namespace {

constexpr std::size_t cases_on_stack = 8;

struct Entry {
  Waiter waiter;
  uint32_t order = 0;  // in the n-th entry: the case whose channel is the n-th to be locked
  // Sorting moves only `order`, because the waiters are not in use yet.
  Entry() = default;
  Entry(Entry&& other) noexcept : order(other.order) {}
  Entry& operator=(Entry&& other) noexcept {
    order = other.order;
    return *this;
  }
};

struct Select {
  select_case* cases;
  std::size_t n;
  Entry* entries;
  chan_core* locked(std::size_t i) const { return cases[entries[i].order].chan; }
};

// Foreign threads share a counter; a goroutine uses the state of its P.
uint32_t random_number(M* m) {
  if (m != nullptr) return next_random(m->p);
  static constinit std::atomic<uint64_t> counter{0};
  uint64_t x = counter.fetch_add(0x9e3779b97f4a7c15u, relaxed);
  x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9u;
  return static_cast<uint32_t>(x >> 32);
}

// Uniform in [0, n), with an error of 2^-32.
std::size_t random_below(M* m, std::size_t n) {
  return static_cast<std::size_t>((uint64_t{random_number(m)} * n) >> 32);
}

[[gnu::always_inline]] inline bool may_proceed(const select_case& c) {
  const chan_core* chan = c.chan;
  return chan != nullptr && (c.sends ? chan->may_send() : chan->may_recv());
}

// With the channel's lock. The analysis cannot know it: it was taken through another pointer.
chan_result try_locked(select_case& c, Waiter*& partner) GOFER_UNCHECKED_LOCKS {
  const chan_result r =
      c.sends ? try_send_locked(c.chan, c.elem, partner) : try_recv_locked(c.chan, c.elem, partner);
  c.ok = r == chan_result::ok;
  return r;
}

bool nothing_at_one_moment(const select_case* cases, std::size_t n) {
  // Versions never decrease, so their sum is unchanged only if each of them is unchanged.
  uint64_t sum = 0;
  const select_case* const end = cases + n;
  for (const select_case* c = cases; c != end; ++c) {
    const chan_core* chan = c->chan;
    if (chan == nullptr) continue;
    sum += chan->version.load(acquire);
    if (c->sends ? chan->may_send() : chan->may_recv()) return false;
  }
  for (const select_case* c = cases; c != end; ++c) {
    const chan_core* chan = c->chan;
    if (chan != nullptr) sum -= chan->version.load(relaxed);
  }
  return sum == 0;
}

// Returns one of the cases that seem ready, at random, or select_timed_out if none does.
std::size_t pick(M* m, const select_case* cases, std::size_t n) {
  std::size_t ready = 0;
  std::size_t last = select_timed_out;
  for (std::size_t i = 0; i < n; ++i) {
    if (!may_proceed(cases[i])) continue;
    ++ready;
    last = i;
  }
  if (ready <= 1) return last;
  // Cases may have changed since the count; then `last` is the answer.
  std::size_t k = random_below(m, ready);
  for (std::size_t i = 0; i < n; ++i) {
    if (may_proceed(cases[i]) && k-- == 0) return i;
  }
  return last;
}

std::size_t try_some(M* m, select_case* cases, std::size_t n) {
  for (;;) {
    const std::size_t i = pick(m, cases, n);
    if (i == select_timed_out) return i;
    chan_core* c = cases[i].chan;
    c->lock.lock();
    Waiter* partner = nullptr;
    const chan_result r = try_locked(cases[i], partner);
    c->lock.unlock();
    if (partner != nullptr) wake(m, partner);
    if (r != chan_result::would_block) return i;
  }
}

void sort_by_address(Select& s) {
  std::size_t used = 0;
  for (std::size_t i = 0; i < s.n; ++i) {
    if (s.cases[i].chan != nullptr) s.entries[used++].order = static_cast<uint32_t>(i);
  }
  const auto less = [&s](const Entry& a, const Entry& b) {
    return std::less<>()(s.cases[a.order].chan, s.cases[b.order].chan);
  };
  if (used <= cases_on_stack) {
    for (std::size_t i = 1; i < used; ++i) {
      const uint32_t order = s.entries[i].order;
      std::size_t j = i;
      for (; j > 0 && std::less<>()(s.cases[order].chan, s.locked(j - 1)); --j) {
        s.entries[j].order = s.entries[j - 1].order;
      }
      s.entries[j].order = order;
    }
  } else {
    std::sort(s.entries, s.entries + used, less);
  }
  for (std::size_t i = used; i < s.n; ++i) s.entries[i].order = UINT32_MAX;
}

std::size_t lockable(const Select& s) {
  std::size_t used = 0;
  while (used < s.n && s.entries[used].order != UINT32_MAX) ++used;
  return used;
}

void lock_all(const Select& s, std::size_t used) GOFER_UNCHECKED_LOCKS {
  for (std::size_t i = 0; i < used; ++i) {
    chan_core* c = s.locked(i);
    if (i == 0) {
      c->lock.lock();
    } else if (c != s.locked(i - 1)) {
      c->lock.lock_another();
    }
  }
}

// Unlocks backwards. Does not touch the caller's frame after the last unlock, because the frame may
// be gone then.
void unlock_all(const Select& s, std::size_t used) GOFER_UNCHECKED_LOCKS {
  for (std::size_t i = used; i-- > 1;) {
    chan_core* c = s.locked(i);
    if (c != s.locked(i - 1)) c->lock.unlock_another();
  }
  if (used != 0) s.locked(0)->lock.unlock();
}

struct Locked {
  Select* select;
  std::size_t used;
};

void unlock_parked(void* p) {
  const auto* locked = static_cast<Locked*>(p);
  unlock_all(*locked->select, locked->used);
}

// With all locks. Performs one of the ready cases and returns it, or returns select_timed_out.
std::size_t try_all_locked(M* m, Select& s, Waiter*& partner) {
  for (;;) {
    const std::size_t i = pick(m, s.cases, s.n);
    if (i == select_timed_out) return i;
    if (try_locked(s.cases[i], partner) != chan_result::would_block) return i;
  }
}

// With all locks. Entries of the same channel are neighbours after the sort; shuffles them.
void shuffle_equals(M* m, Select& s, std::size_t used) {
  std::size_t first = 0;  // the first entry of this channel
  for (std::size_t i = 1; i < used; ++i) {
    if (s.locked(i) != s.locked(i - 1)) {
      first = i;
      continue;
    }
    std::swap(s.entries[i].order, s.entries[first + random_below(m, i - first + 1)].order);
  }
}

// With all locks. Puts a record of the caller into every queue.
void enqueue_all(M* m, Select& s, std::size_t used, Contest& contest, int64_t deadline_ns) {
  shuffle_equals(m, s, used);
  const Waiter self(m);
  for (std::size_t i = 0; i < used; ++i) {
    select_case& c = s.cases[s.entries[i].order];
    Waiter& w = s.entries[s.entries[i].order].waiter;
    w.g = self.g;
    w.thread = self.thread;
    w.counted = m == nullptr && deadline_ns == no_deadline;
    w.elem = c.elem;
    w.contest = &contest;
    c.chan->enqueue(c.sends ? c.chan->senders : c.chan->receivers, &w);
  }
}

// Looks with all locks, that is, at one moment, and then waits unless deadline_ns is 0.
std::size_t wait_for_one(M* m, Select& s, int64_t deadline_ns) {
  sort_by_address(s);
  Locked locked{&s, lockable(s)};
  lock_all(s, locked.used);
  Waiter* partner = nullptr;
  const std::size_t ready = try_all_locked(m, s, partner);
  if (ready != select_timed_out || deadline_ns == 0) {
    unlock_all(s, locked.used);
    if (partner != nullptr) wake(m, partner);
    return ready;
  }
  Contest contest;
  enqueue_all(m, s, locked.used, contest, deadline_ns);
  Waiter parked(m);
  parked.contest = &contest;
  const WaitReason reason = locked.used == 0 ? WaitReason::select_no_cases : WaitReason::select;
  const bool woken = park(m, parked, reason, {unlock_parked, &locked}, {deadline_ns});

  lock_all(s, locked.used);
  std::size_t winner = select_timed_out;
  for (std::size_t i = 0; i < s.n; ++i) {
    select_case& c = s.cases[i];
    if (c.chan == nullptr) continue;
    Waiter& w = s.entries[i].waiter;
    if (woken && contest.winner.load(relaxed) == &w) {
      winner = i;
      c.ok = w.ok;
    } else {
      (c.sends ? c.chan->senders : c.chan->receivers).remove(&w);
    }
  }
  unlock_all(s, locked.used);
  return winner;
}

std::size_t run(select_case* cases, std::size_t n, Entry* many, int64_t deadline_ns) {
  Inside inside;
  const std::size_t i = try_some(inside.m(), cases, n);
  if (i != select_timed_out) {
    if (deadline_ns != 0 && inside.m() != nullptr) yield_if_asked(inside.m());
    return i;
  }
  if (many != nullptr) {
    Select s{cases, n, many};
    return wait_for_one(inside.m(), s, deadline_ns);
  }
  union Few {  // constructs only as many entries as there are cases
    Few() {}
    Entry entries[cases_on_stack];
  } few;
  for (std::size_t k = 0; k < n; ++k) ::new (&few.entries[k]) Entry;
  Select s{cases, n, few.entries};
  return wait_for_one(inside.m(), s, deadline_ns);
}

// A function of its own, so that a look in vain saves no registers.
[[gnu::noinline]] std::size_t do_one(select_case* cases, std::size_t n, int64_t deadline_ns) {
  std::unique_ptr<Entry[]> many;
  if (n > cases_on_stack) many = std::make_unique<Entry[]>(n);
  const std::size_t i = run(cases, n, many.get(), deadline_ns);
  if (i != select_timed_out && cases[i].sends && !cases[i].ok) throw_send_on_closed();
  return i;
}

}  // namespace

std::size_t select_cases(select_case* cases, std::size_t n, std::int64_t deadline_ns) {
  if (deadline_ns == 0 && nothing_at_one_moment(cases, n)) return select_timed_out;
  return do_one(cases, n, deadline_ns);
}

}  // namespace gofer::detail

namespace gofer {

std::size_t select(std::span<any_case> cases) {
  std::vector<detail::select_case> table(cases.size());
  detail::select_limit limit;
  std::size_t chosen;
  try {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      cases[i].case_->look_at(limit, i);
      cases[i].case_->prepare(table[i]);
    }
    chosen = detail::select_cases(table.data(), table.size(), limit.deadline_ns);
  } catch (...) {
    for (auto& c : cases) c.case_->not_done();
    throw;
  }
  if (chosen == detail::select_timed_out) chosen = limit.index;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (i != chosen) cases[i].case_->not_done();
  }
  cases[chosen].case_->done(table[chosen].ok);
  return chosen;
}

}  // namespace gofer
