// The netpoller: a goroutine that waits for a descriptor holds no thread of the runtime.
//
// There is one instance for all descriptors, and it is edge-triggered: the kernel tells once that a
// descriptor has become readable or writable, and a record for each descriptor remembers it until a
// goroutine asks. A goroutine that reads or writes tries first, and waits only if the kernel has
// nothing (EAGAIN). It finds an event between the two in the record (`ready`), so none is lost.
//
// These ask the kernel for events: an M that has run out of other work; one of the idle Ms, which
// sleeps here (idle.cc); and sysmon while no other thread does. They get the goroutines that can go
// on as a list, for one visit to a run queue.
//
// Records are never freed, because an event that names one may be on its way while its descriptor
// is closed. The event carries the tag that the record had when the descriptor was added, and is
// ignored if the record has another tag by then. Each side of a record has its own lock; the tag
// changes with both held.
//
// os/poller.h lists what a poll back end provides. There is one, by epoll.
//
// The kernel may refuse at any time what it granted before, and a program may close descriptors
// that it does not know, with closefrom(3) for instance. If the instance is gone, the next M or
// caller that needs it opens a new one, adds all descriptors to it, and wakes the M that polls.
// Waits for a closed descriptor fail with EBADF. If the kernel refuses, every wait for a descriptor
// fails with that error, and one message says so. If it only had no room for the new instance (the
// limit of descriptors, memory), the next caller that opens or waits for a descriptor tries again.
#pragma once

#include <cstdint>

#include "runtime/base/atomic.h"
#include "runtime/base/lock.h"
#include "runtime/sched/g_queue.h"
#include "runtime/wait/waiter.h"

namespace gofer::internal {

struct Closable;  // runtime/wait/park.h

struct alignas(64) PollSide {
  ShortLock lock{LockRank::primitive};
  /// An event has come since the last wait.
  bool ready GOFER_GUARDED_BY(lock) = false;
  /// At most one: those of one side take turns (io/fd.cc).
  Waiter* waiter GOFER_GUARDED_BY(lock) = nullptr;
  atomic<int64_t> deadline_ns{no_deadline};
};

struct PollDesc {
  PollSide in;
  PollSide out;
  atomic<uint32_t> tag{0};
  uint32_t index = 0;          // its place in the table of all records
  atomic<int> fd{-1};          // the descriptor; -1: none
  atomic<bool> closed{false};  // no wait begins any more
  atomic<bool> lost{false};    // the program has closed it, unknown to its owner
  atomic<bool> ended{false};   // an event has told of an end, an error or urgent data
  PollDesc* link = nullptr;    // free records
};

enum class PollEnd : uint8_t { ready, closed, timed_out, cancelled, lost, failed };

struct alignas(64) PollState {
  atomic<bool> in_use{false};
  atomic<int32_t> waiters{0};  // goroutines and threads that wait for a descriptor
  atomic<uint64_t> visits{0};  // to the netpoller
  atomic<uint64_t> woken{0};   // goroutines and threads that events have woken
  atomic<int32_t> watched{0};  // records in use; written under their lock
};

[[gnu::visibility("hidden")]] extern PollState poll_state;

/// Begins to watch fd. Returns 0, and a record in `desc`, or nullptr there for what cannot be
/// watched, such as a regular file. Returns an errno value if the kernel refuses.
int poll_open(int fd, PollDesc*& desc);
/// Ends all waits. When no thread uses the record any more, and before it closes fd, the caller
/// calls poll_free.
void poll_close(PollDesc* desc);
void poll_free(PollDesc* desc, int fd);

/// The memory that records of descriptors take.
size_t poll_record_bytes();

/// Waits until an event has come for the side, or its deadline has, or `done` is closed, if it is
/// not nullptr. Goroutines and foreign threads call it outside of the runtime.
PollEnd poll_wait(PollDesc* desc, PollSide& side, Closable* done);
/// The errno value that tells why a wait has failed; 0 if it would not fail now.
int poll_failure();
/// The wait at that side, now or later, ends at deadline_ns.
void poll_set_deadline(PollSide& side, int64_t deadline_ns);

/// Asks the kernel for events, and waits for one for timeout_ns at most (negative: no limit; 0: not
/// at all). Wakes threads that can go on, and adds such goroutines to `list`; their status is still
/// `waiting`. Inside, on g0, or in sysmon.
void netpoll(int64_t timeout_ns, GQueue& list);
/// Ends the sleep of m in the netpoller.
void netpoll_break(M* m);
/// sysmon calls it: does so again for an M that was told something and sleeps all the same.
void netpoll_break_again();

/// Whether the instance is still the one that the runtime has opened. If the program has closed it,
/// the M that sleeps there hears nothing of any descriptor. Async-signal-safe.
bool netpoll_is_open();
/// Replaces the instance if it is not, and adds the goroutines whose waits have failed by that to
/// `list`. sysmon calls it now and then.
void netpoll_mend(GQueue& list);
/// Has sysmon do the same soon. For a signal handler.
void netpoll_look_soon();

}  // namespace gofer::internal
