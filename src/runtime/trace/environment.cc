// A program that executes itself, or forks and executes another one, gives its environment on. If
// the file's name does not have the number of the process, and the file exists already, the number
// is added.
#include "runtime/trace/environment.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "os/file.h"
#include "os/process.h"
#include "runtime/report/panic.h"
#include "runtime/trace/file_name.h"
#include "runtime/trace/session.h"

namespace gofer::internal::tracer {

void start_from_environment(const char* path) {
  char name[longest_file_name];
  const int fd = create_file(path, name);
  int error = fd < 0 ? -fd : 0;
  if (error == 0) error = start_first_recording(fd);
  if (error == 0) return;
  warn("GOFER_TRACE: %s: %s", name, std::strerror(error));
  if (fd < 0) return;
  os::close(fd);
  os::unlink(name);
}

}  // namespace gofer::internal::tracer
