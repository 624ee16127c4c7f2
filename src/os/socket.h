// Sockets: the one place where the library calls libc for them. The conventions are those of
// file.h: the value of the call, or -errno.
#pragma once

#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "os/error.h"

namespace gofer::internal::os {

/// Non-blocking, closed on exec.
inline int open_socket(int family, int type) {
  return or_error(::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}
inline int bind(int fd, const sockaddr* at, socklen_t size) {
  return or_error(::bind(fd, at, size));
}
inline int listen(int fd, int backlog) { return or_error(::listen(fd, backlog)); }
inline int connect(int fd, const sockaddr* to, socklen_t size) {
  return or_error(::connect(fd, to, size));
}
/// The new socket is non-blocking, and closed on exec.
inline int accept(int fd, sockaddr* from, socklen_t* size) {
  return or_error(::accept4(fd, from, size, SOCK_NONBLOCK | SOCK_CLOEXEC));
}
inline ssize_t send(int fd, const void* from, size_t size) {
  return or_error(::send(fd, from, size, MSG_NOSIGNAL));
}
/// -EAGAIN where send would block, even if the socket is a blocking one.
inline ssize_t send_now(int fd, const void* from, size_t size) {
  return or_error(::send(fd, from, size, MSG_NOSIGNAL | MSG_DONTWAIT));
}
inline ssize_t sendmsg(int fd, const msghdr* message) {
  return or_error(::sendmsg(fd, message, MSG_NOSIGNAL));
}
inline int shutdown(int fd, int how) { return or_error(::shutdown(fd, how)); }
inline int local_address(int fd, sockaddr* at, socklen_t* size) {
  return or_error(::getsockname(fd, at, size));
}
inline int remote_address(int fd, sockaddr* at, socklen_t* size) {
  return or_error(::getpeername(fd, at, size));
}
inline int set_option(int fd, int level, int name, int value) {
  return or_error(::setsockopt(fd, level, name, &value, sizeof value));
}
inline int get_option(int fd, int level, int name, int& value) {
  socklen_t size = sizeof value;
  return or_error(::getsockopt(fd, level, name, &value, &size));
}

/// getaddrinfo: 0 or one of its own errors, of which EAI_SYSTEM stands for errno. Blocks.
inline int look_up(const char* host, const char* port, const addrinfo* hints, addrinfo** list) {
  return ::getaddrinfo(host, port, hints, list);
}
inline void free_found(addrinfo* list) { ::freeaddrinfo(list); }
inline const char* look_up_error(int error) { return ::gai_strerror(error); }

/// Of a network interface, into IF_NAMESIZE bytes; nullptr: there is none of that number.
inline const char* interface_name(unsigned index, char* name) {
  return ::if_indextoname(index, name);
}

}  // namespace gofer::internal::os
