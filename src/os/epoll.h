// epoll, called directly: errno is not touched, and the calls may be used on any stack.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

namespace gofer::internal::os {

/// A new epoll instance, or -errno.
int epoll_create();

/// Watches fd; 0, or -errno: -EPERM for what cannot be watched, a regular file for instance.
int epoll_add(int epoll, int fd, uint32_t events, uint64_t data);

/// Watches fd, which is watched already, for these events. If one of them holds, there is a new
/// event, edge-triggered or not.
int epoll_modify(int epoll, int fd, uint32_t events, uint64_t data);
void epoll_remove(int epoll, int fd);
/// The kernel refuses epoll_ctl altogether. For EPERM, which is also the error of a file that
/// cannot be watched.
bool is_epoll_ctl_refused();

/// How many events there were, at most `room`, after at most timeout_ns (negative: no limit); 0 if
/// a signal came first; or -errno.
int epoll_wait(int epoll, epoll_event* events, int room, int64_t timeout_ns);

/// A descriptor that is always ready for EPOLLOUT, also after a stray read or write; or -errno.
int open_ready_descriptor();
bool is_open(int fd);

void close_descriptor(int fd);

}  // namespace gofer::internal::os
