// What the netpoller needs of the kernel: everything that a poll back end provides.
//
// A back end is one file with these functions and one header with PollEvent, included at the end of
// the page: epoll.cc and epoll.h. Functions may be called by several threads at once, on any stack;
// they leave errno alone and allocate nothing. What they refuse is an errno value, 0 is success.
//
// A poller is two descriptors, because a program may close what it does not know. The back end
// keeps nothing else: netpoll.cc decides which poller is in use, and opens another one if that has
// been closed.
#pragma once

#include <cstdint>

namespace gofer::internal::os {

struct Poller {
  int queue;  // of events
  int bell;   // is always ready, and watched by the queue
};

/// A new poller; its descriptors are closed on exec.
int poller_open(Poller& p);

/// One of the poller's own descriptors has that number.
inline bool poller_owns(Poller p, int fd) { return fd == p.queue || fd == p.bell; }

/// Tells from now on, once each time, that fd becomes readable or writable, or ends; and once at
/// first what holds already. `data` comes with the events. EPERM: fd cannot be watched, a regular
/// file for instance. EEXIST: it is watched already. EINVAL: the queue is closed, and another file
/// has its number.
int poller_watch(Poller p, int fd, uint64_t data);
/// The same for one that is watched already: it gets another `data`, and tells anew what holds.
int poller_watch_anew(Poller p, int fd, uint64_t data);
void poller_forget(Poller p, int fd);

/// Waits for events, at most timeout_ns (negative: no limit; 0: not at all). How many there were,
/// at most `room`; 0 if a signal came first; or -errno. -EBADF and -EINVAL: the queue is closed.
class PollEvent;
int poller_wait(Poller p, PollEvent* events, int room, int64_t timeout_ns);

/// Makes an event (is_ring) for one of those that wait, or for the next to come. False: the bell or
/// the queue is closed, or the kernel refuses the call. Writes to no descriptor: its number may be
/// that of another file by now.
bool poller_ring(Poller p);

/// Both descriptors are still what they were. Async-signal-safe.
bool poller_is_open(Poller p);

/// The kernel refuses altogether to watch descriptors. For EPERM, which is also the error of a file
/// that cannot be watched.
bool poller_is_refused();

// PollEvent has, inlined:
//   uint64_t data() const    what was given to poller_watch
//   bool is_ring() const     the event is poller_ring's; then nothing else of it counts
//   bool is_in() const       worth trying to read
//   bool is_out() const      worth trying to write
//   bool is_end() const      an end, an error or urgent data
//
// And for messages to the user: poller_open_fails, poller_wait_fails, which name the calls.

}  // namespace gofer::internal::os

#include "os/epoll.h"
