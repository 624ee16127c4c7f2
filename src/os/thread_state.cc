#include "os/thread_state.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <cstring>
#include <string_view>

#include "os/raw_syscall.h"

namespace gofer::internal::os {
namespace {

// The first bytes of /proc/self/task/<tid>/<name>; empty when it cannot be read.
template <size_t size>
std::string_view read_task_file(int tid, std::string_view name, char (&buffer)[size]) {
  constexpr std::string_view folder = "/proc/self/task/";
  char path[64];
  std::memcpy(path, folder.data(), folder.size());
  char* end = std::to_chars(path + folder.size(), path + 40, tid).ptr;
  *end++ = '/';
  std::memcpy(end, name.data(), name.size());
  end[name.size()] = '\0';
  const long fd =
      raw_syscall(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const long n = raw_syscall(SYS_read, fd, reinterpret_cast<long>(buffer), sizeof buffer);
  raw_syscall(SYS_close, fd);
  return n > 0 ? std::string_view(buffer, static_cast<size_t>(n)) : std::string_view();
}

uint64_t take_number(std::string_view& text, int base) {
  if (base == 16 && text.starts_with("0x")) text.remove_prefix(2);
  uint64_t number = 0;
  const char* end = std::from_chars(text.data(), text.data() + text.size(), number, base).ptr;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (text.starts_with(' ')) text.remove_prefix(1);
  return number;
}

// "running", or the number of a system call (-1: asleep in none) and its arguments.
ThreadState parse_syscall(std::string_view text) {
  if (text.starts_with("running")) return {ThreadState::running};
  ThreadState state{ThreadState::asleep};
  if (text.starts_with('-') || take_number(text, 10) != SYS_futex) return state;
  const uint64_t address = take_number(text, 16);
  const uint64_t operation = take_number(text, 16) & FUTEX_CMD_MASK;
  if (operation == FUTEX_WAIT || operation == FUTEX_WAIT_BITSET) state.futex = address;
  return state;
}

// "pid (name) S ...": the name may hold anything.
ThreadState parse_stat(std::string_view text) {
  const size_t at = text.rfind(") ");
  if (at == std::string_view::npos || at + 2 >= text.size()) return {};
  return {text[at + 2] == 'R' ? ThreadState::running : ThreadState::asleep};
}

}  // namespace

ThreadState thread_state(int tid) {
  char buffer[256];
  if (const auto text = read_task_file(tid, "syscall", buffer); !text.empty()) {
    return parse_syscall(text);
  }
  // Needs the right to trace this very process, which a sandbox may have taken away.
  if (const auto text = read_task_file(tid, "stat", buffer); !text.empty()) {
    return parse_stat(text);
  }
  return {};
}

bool blocks_signal(int tid, int number) {
  char buffer[2048];
  const std::string_view text = read_task_file(tid, "status", buffer);
  constexpr std::string_view key = "\nSigBlk:\t";
  const size_t at = text.find(key);
  if (at == std::string_view::npos) return false;
  std::string_view mask = text.substr(at + key.size());
  return (take_number(mask, 16) >> (number - 1) & 1) != 0;
}

int64_t thread_cpu_ns(int tid) {
  constexpr clockid_t per_thread_sched = 6;  // the kernel's way to name the clock of any thread
  const clockid_t clock =
      static_cast<clockid_t>(~static_cast<unsigned>(tid) << 3) | per_thread_sched;
  timespec t;
  if (raw_syscall(SYS_clock_gettime, clock, reinterpret_cast<long>(&t)) != 0) return -1;
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

int64_t own_cpu_ns() {
  timespec t{};  // refused: 0
  raw_syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, reinterpret_cast<long>(&t));
  return t.tv_sec * 1'000'000'000 + t.tv_nsec;
}

uint32_t peek(uint64_t address) {
  uint32_t word = 0;
  const iovec local{&word, sizeof word};
  const iovec remote{reinterpret_cast<void*>(address), sizeof word};
  const long n = raw_syscall(SYS_process_vm_readv, getpid(), reinterpret_cast<long>(&local), 1,
                             reinterpret_cast<long>(&remote), 1, 0);
  return n == sizeof word ? word : 0;
}

void ask_for_short_slices() {
  struct {
    uint32_t size = 48;
    uint32_t policy = 0;
    uint64_t flags = 0;
    int32_t nice = 0;
    uint32_t priority = 0;
    uint64_t runtime_ns = 100'000;
    uint64_t deadline_ns = 0;
    uint64_t period_ns = 0;
  } attributes;  // struct sched_attr
  attributes.nice = static_cast<int32_t>(20 - raw_syscall(SYS_getpriority, 0, 0));
  raw_syscall(SYS_sched_setattr, 0, reinterpret_cast<long>(&attributes), 0);
}

}  // namespace gofer::internal::os
