// The waiters of a channel: a test looks at them instead of sleeping until one "must" be there.
#pragma once

#include "runtime/procs/current.h"
#include "sync/chan.h"

namespace gofer::test {

/// How many records are in the queue, those of waits that have ended elsewhere included.
template <class Chan>
int waiting(const Chan& c, internal::WaitQueue detail::chan_core::*queue) {
  internal::Inside inside;
  internal::LockGuard guard(c.core()->lock);
  int n = 0;
  for (const internal::Waiter* w = (c.core()->*queue).front(); w != nullptr; w = w->next) ++n;
  return n;
}

/// Is a record of this goroutine in the queue?
template <class Chan>
bool waits(const Chan& c, internal::WaitQueue detail::chan_core::*queue, const internal::G* g) {
  internal::Inside inside;
  internal::LockGuard guard(c.core()->lock);
  const internal::Waiter* w = (c.core()->*queue).front();
  while (w != nullptr && w->g != g) w = w->next;
  return w != nullptr;
}

template <class Chan>
int waiting_receivers(const Chan& c) {
  return waiting(c, &detail::chan_core::receivers);
}

template <class Chan>
int waiting_senders(const Chan& c) {
  return waiting(c, &detail::chan_core::senders);
}

}  // namespace gofer::test
