// Child processes of tests: posix_spawn, two pipes, a pidfd, and one poll loop over the three.
#include "support/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <system_error>

#include "runtime/base/sanitizer.h"

extern char** environ;

namespace gofer::test {
namespace {

using Clock = std::chrono::steady_clock;

// How long after the child's end a descendant may keep its output open.
constexpr std::chrono::seconds grace(10);

void require(bool ok, int error, const char* what) {
  if (!ok) throw std::system_error(error, std::generic_category(), what);
}

// "variable=" with its present value, if it has one, and the settings behind it.
std::string extended(const std::string& variable, char separator, std::string_view settings) {
  const char* inherited = getenv(variable.c_str());
  std::string result = variable + "=";
  if (inherited != nullptr && *inherited != '\0') result.append(inherited).append(1, separator);
  return result.append(settings);
}

std::vector<std::string> merged_environment(const std::vector<std::string>& changes) {
  std::vector<std::string> result;
  const auto name_of = [](std::string_view entry) { return entry.substr(0, entry.find('=')); };
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool changed = false;
    for (const std::string& change : changes) changed |= name_of(change) == name_of(*entry);
    if (!changed) result.emplace_back(*entry);
  }
  for (const std::string& change : changes) {
    if (change.find('=') != std::string::npos) result.push_back(change);
  }
  // TSan waits for a second at each exit, in case that threads still race.
  if constexpr (internal::sanitizers_enabled) {
    const auto options = std::find_if(result.begin(), result.end(), [](const std::string& s) {
      return s.starts_with("TSAN_OPTIONS=");
    });
    if (options != result.end()) {
      options->append(":atexit_sleep_ms=0");
    } else {
      result.push_back("TSAN_OPTIONS=atexit_sleep_ms=0");
    }
  }
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& s : strings) result.push_back(s.data());
  result.push_back(nullptr);
  return result;
}

struct Pipe {
  int read_end;
  int write_end;
  Pipe() {
    int ends[2];
    require(pipe2(ends, O_CLOEXEC) == 0, errno, "pipe2");
    read_end = ends[0];
    write_end = ends[1];
  }
};

pid_t start(const std::string& program, const std::vector<std::string>& arguments,
            const std::vector<std::string>& environment, int out, int err) {
  const std::string path = std::string(GOFER_TEST_PROGRAMS) + "/" + program;
  std::vector<std::string> argv_strings{path};
  argv_strings.insert(argv_strings.end(), arguments.begin(), arguments.end());
  std::vector<std::string> env_strings = merged_environment(environment);
  std::vector<char*> argv = pointers(argv_strings);
  std::vector<char*> env = pointers(env_strings);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);

  pid_t pid = 0;
  const int error = posix_spawn(&pid, path.c_str(), &files, &attributes, argv.data(), env.data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  require(error == 0, error, path.c_str());
  const rlimit no_core{0, 0};
  prlimit(pid, RLIMIT_CORE, &no_core, nullptr);
  return pid;
}

// Reads what is there; false at the end of the stream.
bool drain(int fd, std::string& text) {
  std::array<char, 65536> buffer;
  const ssize_t n = read(fd, buffer.data(), buffer.size());
  if (n > 0) text.append(buffer.data(), static_cast<std::size_t>(n));
  return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return left < 0 ? 0 : static_cast<int>(left) + 1;
}

// Until both streams and the process have ended; kills the group at the deadline, which is moved
// nearer once the child itself is gone.
void follow(pid_t pid, int pidfd, int out, int err, Clock::time_point deadline,
            ChildResult& result) {
  std::array<pollfd, 3> fds{pollfd{out, POLLIN, 0}, pollfd{err, POLLIN, 0},
                            pollfd{pidfd, POLLIN, 0}};
  bool killed = false;
  while (fds[0].fd >= 0 || fds[1].fd >= 0 || fds[2].fd >= 0) {
    const int n = poll(fds.data(), fds.size(), milliseconds_until(deadline));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) {
      if (killed) return;
      killed = result.timed_out = true;
      kill(-pid, SIGKILL);
      deadline = Clock::now() + grace;
      continue;
    }
    if (fds[0].revents != 0 && !drain(out, result.out)) fds[0].fd = -1;
    if (fds[1].revents != 0 && !drain(err, result.err)) fds[1].fd = -1;
    if (fds[2].fd >= 0 && fds[2].revents != 0) {
      fds[2].fd = -1;
      deadline = std::min(deadline, Clock::now() + grace);
    }
  }
}

std::string tail_of(const std::string& text) {
  constexpr std::size_t limit = 6000;
  if (text.size() <= 2 * limit) return text;
  return text.substr(0, limit) + "\n[...]\n" + text.substr(text.size() - limit);
}

}  // namespace

ChildResult run_child(const std::string& program, const std::vector<std::string>& arguments,
                      const std::vector<std::string>& environment, std::chrono::seconds limit) {
  Pipe out;
  Pipe err;
  const pid_t pid = start(program, arguments, environment, out.write_end, err.write_end);
  close(out.write_end);
  close(err.write_end);
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  require(pidfd >= 0, errno, "pidfd_open");

  ChildResult result;
  follow(pid, pidfd, out.read_end, err.read_end, Clock::now() + limit, result);
  close(out.read_end);
  close(err.read_end);
  close(pidfd);

  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  return result;
}

std::string with_debug(std::string_view settings) { return extended("GOFER_DEBUG", ',', settings); }

std::string with_option(const std::string& variable, std::string_view settings) {
  return extended(variable, ':', settings);
}

int count_of(std::string_view text, std::string_view part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

std::ostream& operator<<(std::ostream& stream, const ChildResult& result) {
  if (result.timed_out) stream << "[killed: time limit] ";
  if (result.signal != 0) {
    stream << "ended by signal " << result.signal << " (" << strsignal(result.signal) << ")";
  } else {
    stream << "exit code " << result.exit_code;
  }
  return stream << "\n--- stdout\n"
                << tail_of(result.out) << "\n--- stderr\n"
                << tail_of(result.err) << "\n---\n";
}

}  // namespace gofer::test
