// The rules are Go's (1.25): the controller is v1's `cpu` where that is in use, else v2; the limit
// is quota / period, rounded up, at least 2. Go reads the group of the process only; here the
// ancestors that can be seen count too, because the tightest of them is the real limit.
//
// Invariants: plain open and read, fixed buffers, no malloc, no exceptions; whatever is missing or
// not understood means "no limit". The runtime may be started by a thread with the smallest stack
// that there is (16 KiB), so what is large lies in a mapping (Scratch).
//
// Rejected: trying growing CPU sets (glibc's cpu_set_t ends at 1024 CPUs; one buffer for 16,384,
// twice what Linux can be built for, needs no second try), rereading in the background as Go does
// (default_gomaxprocs can be called again).
#include "os/cpu_count.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <new>
#include <string_view>
#include <utility>

#include "os/memory.h"

namespace gofer::internal {
namespace {

// Lines of a file, without their ends. What a line has beyond the buffer is dropped: only other
// file systems' mount options are that long.
class LineReader {
 public:
  using Buffer = char[2 * PATH_MAX];

  LineReader(const char* directory, const char* name, Buffer& buffer) : buffer_(buffer) {
    const int n = snprintf(buffer_, sizeof buffer_, "%s/%s", directory, name);
    if (n > 0 && static_cast<size_t>(n) < sizeof buffer_) fd_ = open(buffer_, O_RDONLY | O_CLOEXEC);
  }
  ~LineReader() {
    if (fd_ >= 0) close(fd_);
  }
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // False at the end. The line is valid until the next call.
  bool next(std::string_view* line) {
    for (;;) {
      const void* end = std::memchr(buffer_ + begin_, '\n', size_ - begin_);
      if (end != nullptr) {
        *line = {buffer_ + begin_, static_cast<const char*>(end)};
        begin_ += line->size() + 1;
        if (!std::exchange(dropping_, false)) return true;
        continue;
      }
      std::memmove(buffer_, buffer_ + begin_, size_ - begin_);
      size_ -= std::exchange(begin_, 0);
      if (size_ < sizeof buffer_ && fill()) continue;
      // A line that is longer than the buffer, or the last one, without an end.
      *line = {buffer_, size_};
      begin_ = size_;
      const bool at_end = size_ < sizeof buffer_;
      if (!std::exchange(dropping_, true)) return !line->empty();
      if (at_end) return false;
    }
  }

 private:
  bool fill() {
    if (fd_ < 0) return false;
    ssize_t n;
    do {
      n = read(fd_, buffer_ + size_, sizeof buffer_ - size_);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) return false;
    size_ += static_cast<size_t>(n);
    return true;
  }

  int fd_ = -1;
  bool dropping_ = false;
  size_t begin_ = 0;
  size_t size_ = 0;
  Buffer& buffer_;
};

// Cuts the text up to `separator` off the front of `rest` and gives it.
std::string_view take(std::string_view& rest, char separator) {
  const size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return part;
}

bool has_cpu(std::string_view controllers) {
  while (!controllers.empty()) {
    if (take(controllers, ',') == "cpu") return true;
  }
  return false;
}

struct Path {
  char text[PATH_MAX] = "";
  size_t size = 0;

  std::string_view view() const { return {text, size}; }
  void cut(size_t new_size) {
    size = new_size;
    text[size] = '\0';
  }
  bool append(std::string_view more) {
    if (more.size() >= sizeof text - size) return false;
    std::memcpy(text + size, more.data(), more.size());
    cut(size + more.size());
    return true;
  }
  // The kernel writes a space in a mount point as \040.
  bool append_escaped(std::string_view more) {
    while (!more.empty()) {
      const bool escaped = more.size() >= 4 && more[0] == '\\';
      char c = more[0];
      if (escaped)
        c = static_cast<char>((more[1] - '0') * 64 + (more[2] - '0') * 8 + more[3] - '0');
      if (!append({&c, 1})) return false;
      more.remove_prefix(escaped ? 4 : 1);
    }
    return true;
  }
};

// The group of this process for CPU time, as a path in its hierarchy.
struct Group {
  bool is_v1 = false;
  Path path;
};

bool find_group(const char* root, Group* group, LineReader::Buffer& buffer) {
  bool found = false;
  LineReader lines(root, "proc/self/cgroup", buffer);
  for (std::string_view line; lines.next(&line);) {  // hierarchy:controllers:path
    const std::string_view hierarchy = take(line, ':');
    const std::string_view controllers = take(line, ':');
    const bool is_v1 = hierarchy != "0";
    if (is_v1 && !has_cpu(controllers)) continue;
    group->is_v1 = is_v1;
    group->path.cut(0);
    found = group->path.append(line);
    if (is_v1) return found;  // the controller is in one hierarchy only; v2 stands behind
  }
  return found;
}

// A mount of a hierarchy: what of it is mounted, and where.
struct Mount {
  Path root;
  Path point;
};

bool parse_mount(std::string_view line, bool is_v1, Mount* mount) {
  for (int skipped = 0; skipped < 3; ++skipped) take(line, ' ');  // ids, device
  const std::string_view root = take(line, ' ');
  const std::string_view point = take(line, ' ');
  while (!line.empty() && take(line, ' ') != "-") {  // options and optional fields
  }
  const std::string_view type = take(line, ' ');
  take(line, ' ');  // source
  if (type != (is_v1 ? "cgroup" : "cgroup2") || (is_v1 && !has_cpu(line))) return false;
  mount->root.cut(0);
  mount->point.cut(0);
  return mount->root.append_escaped(root) && mount->point.append_escaped(point);
}

bool find_mount(const char* root, bool is_v1, Mount* mount, LineReader::Buffer& buffer) {
  LineReader lines(root, "proc/self/mountinfo", buffer);
  for (std::string_view line; lines.next(&line);) {
    if (parse_mount(line, is_v1, mount)) return true;
  }
  return false;
}

// The part of `path` below the mount's root. A container may see a mount of its own group only, and
// a path that leads out of what it sees ("/../x"): then the mount point is all there is.
std::string_view path_below(const Mount& mount, std::string_view path) {
  const std::string_view root = mount.root.view() == "/" ? "" : mount.root.view();
  if (!path.starts_with(root) || path.find("/..") != std::string_view::npos) return "";
  path.remove_prefix(root.size());
  if (!path.starts_with('/') || path == "/") return "";
  return path;
}

bool parse_number(std::string_view text, int64_t* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

// The numbers on the first line of a file.
bool read_numbers(const char* directory, const char* name, LineReader::Buffer& buffer,
                  std::initializer_list<int64_t*> numbers) {
  LineReader file(directory, name, buffer);
  std::string_view line;
  if (!file.next(&line)) return false;
  for (int64_t* number : numbers) {
    if (!parse_number(take(line, ' '), number)) return false;  // "max": no limit
  }
  return line.empty();
}

// quota / period in one directory, rounded up; 0 if there is none.
int64_t read_limit(const char* directory, bool is_v1, LineReader::Buffer& buffer) {
  int64_t quota = 0;
  int64_t period = 0;
  const bool known = is_v1 ? read_numbers(directory, "cpu.cfs_quota_us", buffer, {&quota}) &&
                                 read_numbers(directory, "cpu.cfs_period_us", buffer, {&period})
                           : read_numbers(directory, "cpu.max", buffer, {&quota, &period});
  if (!known || quota <= 0 || period <= 0) return 0;
  return quota / period + (quota % period != 0 ? 1 : 0);
}

// What is too large for a small stack.
struct Scratch {
  Group group;
  Mount mount;
  Path directory;
  LineReader::Buffer buffer;
};

int64_t find_limit(const char* root, Scratch& s) {
  if (!find_group(root, &s.group, s.buffer)) return 0;
  if (!find_mount(root, s.group.is_v1, &s.mount, s.buffer)) return 0;
  Path& directory = s.directory;
  if (!directory.append(root) || !directory.append(s.mount.point.view())) return 0;
  const size_t top = directory.size;
  if (!directory.append(path_below(s.mount, s.group.path.view()))) return 0;

  int64_t limit = 0;
  for (;;) {
    const int64_t here = read_limit(directory.text, s.group.is_v1, s.buffer);
    if (here > 0 && (limit == 0 || here < limit)) limit = here;
    if (directory.size <= top) return limit;
    directory.cut(std::max(top, directory.view().rfind('/')));
  }
}

}  // namespace

int num_cpu() {
  constexpr size_t max_cpus = 16'384;
  uint64_t set[max_cpus / 64];
  const long bytes = syscall(SYS_sched_getaffinity, 0, sizeof set, set);
  if (bytes <= 0) return 1;
  int cpus = 0;
  for (size_t i = 0; i < static_cast<size_t>(bytes) / sizeof(uint64_t); ++i) {
    cpus += std::popcount(set[i]);
  }
  return std::max(cpus, 1);
}

int cgroup_cpu_limit(const char* root) {
  constexpr size_t size = (sizeof(Scratch) + os::page_size - 1) & ~(os::page_size - 1);
  void* memory = os::reserve(size);
  if (memory == nullptr) return 0;
  const int64_t limit = find_limit(root, *::new (memory) Scratch);
  os::release(memory, size);
  return static_cast<int>(std::min<int64_t>(limit, INT_MAX));
}

int gomaxprocs_within(int cpus, int cgroup_limit) {
  constexpr int least_limit = 2;
  if (cgroup_limit <= 0) return cpus;
  return std::min(cpus, std::max(cgroup_limit, least_limit));
}

int default_gomaxprocs() { return gomaxprocs_within(num_cpu(), cgroup_cpu_limit("")); }

}  // namespace gofer::internal
