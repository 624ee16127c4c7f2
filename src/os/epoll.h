// epoll, called directly: errno is not touched, and the calls may be used on any stack.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

namespace gofer::internal::os {

/// A new epoll instance, or -errno.
int epoll_create();

/// Watches fd; 0, or -errno: -EPERM for what cannot be watched, a regular file for instance.
int epoll_add(int epoll, int fd, uint32_t events, uint64_t data);

void epoll_remove(int epoll, int fd);

/// How many events there were, at most `room`, after at most timeout_ns (negative: no limit); 0 if
/// a signal came first.
int epoll_wait(int epoll, epoll_event* events, int room, int64_t timeout_ns);

/// A descriptor that is there to wake who watches it, or -errno.
int event_create();
void event_signal(int fd);

void close_descriptor(int fd);

}  // namespace gofer::internal::os
