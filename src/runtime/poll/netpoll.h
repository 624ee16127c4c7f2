// The netpoller: who waits for a descriptor holds no thread of the runtime.
//
// One poller, edge-triggered: the kernel tells once that a descriptor has become readable
// or writable, and a record for each descriptor remembers it until somebody wants to know. Who
// reads or writes tries first and waits only if the kernel has nothing (EAGAIN); an event between
// the two is found in the record (`ready`), so none is lost.
//
// Who asks the kernel for events: an M that has run out of other work; of the idle Ms one, which
// sleeps here (idle.cc); and sysmon while nobody else does. The goroutines that can go on are
// handed out as a list, for one visit to a run queue.
//
// Records are never freed, because an event that names one may be on its way while its descriptor
// is closed: it carries the record's tag of the time when the descriptor was added, and is ignored
// if the record has another by then. Each side of a record has its own lock; the tag is changed
// with both held.
//
// os/poller.h lists what a poll back end provides. There is one, by epoll.
//
// The kernel may refuse at any time what it granted before, and a program may close descriptors
// that it does not know, with closefrom(3) for instance. If the poller is gone, the next
// M or caller that needs it opens a new one, adds all descriptors to it, and wakes the poller.
// Waits for a closed descriptor fail with EBADF. If the kernel refuses, every wait for a descriptor
// fails with that error, and one message says so.
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
  bool ready = false;        // an event has come since the last wait
  Waiter* waiter = nullptr;  // at most one: those of one side take turns (io/fd.cc)
  atomic<int64_t> deadline_ns{no_deadline};
};

struct PollDesc {
  PollSide in;
  PollSide out;
  atomic<uint32_t> tag{0};
  uint32_t index = 0;          // its place in the table of all records
  atomic<int> fd{-1};          // the descriptor; -1: none
  atomic<bool> closed{false};  // nobody waits any more
  atomic<bool> lost{false};    // the program has closed it, unknown to its owner
  atomic<bool> ended{false};   // an event has told of an end, an error or urgent data
  PollDesc* link = nullptr;    // free records
};

enum class PollEnd : uint8_t { ready, closed, timed_out, cancelled, lost, failed };

struct alignas(64) PollState {
  atomic<bool> in_use{false};
  atomic<int32_t> waiters{0};  // goroutines and threads that wait for a descriptor
  atomic<uint64_t> visits{0};  // to the netpoller; a hint
};

[[gnu::visibility("hidden")]] extern PollState poll_state;

/// Begins to watch fd. 0 and a record, or nullptr for what cannot be watched, such as a regular
/// file; or an errno value.
int poll_open(int fd, PollDesc*& desc);
/// Ends all waits; to be followed, when nobody uses the record any more, by poll_free, before fd is
/// closed.
void poll_close(PollDesc* desc);
void poll_free(PollDesc* desc, int fd);

/// Waits until an event has come for the side, or its deadline, or done is closed (nullptr: never).
/// Outside of the runtime, from goroutines and foreign threads.
PollEnd poll_wait(PollDesc* desc, PollSide& side, Closable* done);
/// Why a wait has failed: an errno value.
int poll_failure();
/// Who waits there now waits until then.
void poll_set_deadline(PollSide& side, int64_t deadline_ns);

/// Asks the kernel for events, waiting for one at most timeout_ns (negative: no limit; 0: not at
/// all). Goroutines that can go on are added to `list`, waiting still; threads are woken. Inside,
/// on g0, or in sysmon.
void netpoll(int64_t timeout_ns, GQueue& list);
/// Ends the wait of m in there.
void netpoll_break(M* m);
/// Does so again for a poller that was told something and sleeps all the same. By sysmon.
void netpoll_break_again();

/// Whether the poller is what it was. The program may have closed it while the poller
/// sleeps there, which then hears nothing of any descriptor. Async-signal-safe.
bool netpoll_is_open();
/// Replaces the instance if it is not. Goroutines whose waits have failed by that are in `list`.
/// For sysmon, now and then.
void netpoll_mend(GQueue& list);
/// The same, soon, by sysmon. For a signal handler.
void netpoll_look_soon();

}  // namespace gofer::internal
