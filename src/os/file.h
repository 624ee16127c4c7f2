// Files and other descriptors: the one place where the library calls libc for them.
//
// Everything here is the value of the call, or -errno; errno is left as libc leaves it. A call is
// one call of libc, not a raw system call, so that sanitizers and programs that put functions of
// their own in front of libc's see it.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/error.h"

namespace gofer::internal::os {

inline ssize_t read(int fd, void* to, size_t size) { return or_error(::read(fd, to, size)); }
inline ssize_t readv(int fd, const iovec* to, int count) {
  return or_error(::readv(fd, to, count));
}
inline ssize_t write(int fd, const void* from, size_t size) {
  return or_error(::write(fd, from, size));
}
inline ssize_t writev(int fd, const iovec* from, int count) {
  return or_error(::writev(fd, from, count));
}
inline int poll(pollfd* list, nfds_t count, int timeout_ms) {
  return or_error(::poll(list, count, timeout_ms));
}
/// What a failed close() says is of no use: the number is free in any case.
inline void close(int fd) { ::close(fd); }
inline int unlink(const char* path) { return or_error(::unlink(path)); }
/// A new file for writing that only its owner may read. -EEXIST if there is one of that name.
int create(const char* path);
inline int truncate(int fd, off_t size) { return or_error(::ftruncate(fd, size)); }

/// Which file a descriptor is of, whatever its number.
struct FileId {
  dev_t device = 0;
  ino_t number = 0;
  bool operator==(const FileId&) const = default;
};
int identify(int fd, FileId* id);
/// Of a regular file: its size and where the next write goes. -ESPIPE if it is another kind.
int measure(int fd, off_t* size, off_t* position);

/// O_NONBLOCK and its like.
int get_flags(int fd);
int set_flags(int fd, int flags);

enum class FileType { unknown, disk, socket, other };  // disk: a file, folder or block device
/// unknown: the kernel does not say.
FileType file_type(int fd);

/// A counter that becomes readable when it is written to, non-blocking; closed on exec.
int open_event();
/// Adds 1. errno stays as it is: for signal handlers.
void add_to_event(int fd);

/// Some file has that number. errno stays as it is.
bool is_open(int fd);

}  // namespace gofer::internal::os
