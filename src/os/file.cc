#include "os/file.h"

#include <sys/eventfd.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>

#include "os/raw_syscall.h"

namespace gofer::internal::os {

int get_flags(int fd) { return or_error(fcntl(fd, F_GETFL)); }

int create(const char* path) {
  return or_error(::open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
}

int set_flags(int fd, int flags) { return or_error(fcntl(fd, F_SETFL, flags)); }

FileType file_type(int fd) {
  struct stat info;
  if (fstat(fd, &info) != 0) return FileType::unknown;
  if (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode) || S_ISBLK(info.st_mode)) {
    return FileType::disk;
  }
  return S_ISSOCK(info.st_mode) ? FileType::socket : FileType::other;
}

int identify(int fd, FileId* id) {
  struct stat info;
  const int result = or_error(fstat(fd, &info));
  if (result == 0) *id = {info.st_dev, info.st_ino};
  return result;
}

int measure(int fd, off_t* size, off_t* position) {
  struct stat info;
  if (const int error = or_error(fstat(fd, &info)); error != 0) return error;
  if (!S_ISREG(info.st_mode)) return -ESPIPE;
  *size = info.st_size;
  *position = lseek(fd, 0, SEEK_CUR);
  return *position < 0 ? -ESPIPE : 0;
}

int open_event() { return or_error(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)); }

void add_to_event(int fd) {
  const uint64_t one = 1;
  raw_syscall(SYS_write, fd, reinterpret_cast<long>(&one), sizeof one);
}

bool is_open(int fd) { return raw_syscall(SYS_fcntl, fd, F_GETFD) >= 0; }

}  // namespace gofer::internal::os
