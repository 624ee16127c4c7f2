#include "runtime/trace/file_name.h"

#include <cerrno>
#include <cstdio>

#include "os/file.h"
#include "os/process.h"

namespace gofer::internal::tracer {

int create_file(const char* pattern, char (&name)[longest_file_name]) {
  constexpr size_t number_room = 16;
  size_t used = 0;
  const auto add_number = [&](const char* format) {
    used += static_cast<size_t>(snprintf(name + used, number_room, format, os::process_id()));
  };
  bool has_number = false;
  for (const char* at = pattern; *at != '\0' && used + 2 * number_room < sizeof name; ++at) {
    if (at[0] == '%' && at[1] == 'p') {
      add_number("%d");
      has_number = true;
      ++at;
    } else {
      name[used++] = *at;
    }
  }
  name[used] = '\0';
  const int fd = os::create(name);
  if (fd != -EEXIST || has_number) return fd;
  add_number(".%d");
  return os::create(name);
}

}  // namespace gofer::internal::tracer
