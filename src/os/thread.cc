#include "os/thread.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "os/futex.h"
#include "os/raw_syscall.h"

namespace gofer::internal::os {

int start_thread(void* (*body)(void*), void* arg) {
  pthread_attr_t attr;
  if (const int error = pthread_attr_init(&attr); error != 0) return error;
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  const int error = pthread_create(&thread, &attr, body, arg);
  pthread_attr_destroy(&attr);
  return error;
}

int thread_id() { return static_cast<int>(raw_syscall(SYS_gettid)); }

void name_thread(const char* name) {
  raw_syscall(SYS_prctl, PR_SET_NAME, reinterpret_cast<long>(name));
}

int count_threads() {
  // getdents directly: no memory is allocated, the answer may be asked for at any time.
  const long fd = raw_syscall(SYS_openat, AT_FDCWD, reinterpret_cast<long>("/proc/self/task"),
                              O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -1;
  int count = 0;
  alignas(8) char buffer[2048];
  long bytes;
  while ((bytes = raw_syscall(SYS_getdents64, fd, reinterpret_cast<long>(buffer), sizeof buffer)) >
         0) {
    for (long at = 0; at < bytes;) {
      const char* entry = buffer + at;
      uint16_t length;  // struct linux_dirent64: u64 ino, s64 off, u16 reclen, u8 type, name
      std::memcpy(&length, entry + 16, sizeof length);
      if (entry[19] != '.') ++count;
      at += length;
    }
  }
  raw_syscall(SYS_close, fd);
  return bytes < 0 ? -1 : count;
}

void sleep_exactly() { raw_syscall(SYS_prctl, PR_SET_TIMERSLACK, 1, 0, 0, 0); }

void sleep_as_usual() { raw_syscall(SYS_prctl, PR_SET_TIMERSLACK, 0, 0, 0, 0); }

int set_signal_mask(int how, const sigset_t* set, sigset_t* old) {
  constexpr long kernel_size = 8;
  constexpr int first_of_libc = 32;  // glibc's SIGCANCEL and SIGSETXID, which the headers do not
  constexpr int last_of_libc = 33;   // name: they must never be blocked
  uint64_t bits;
  if (set != nullptr) {
    std::memcpy(&bits, set, sizeof bits);
    for (int n = first_of_libc; n <= last_of_libc; ++n) bits &= ~(uint64_t{1} << (n - 1));
  }
  return static_cast<int>(-raw_syscall(SYS_rt_sigprocmask, how,
                                       set != nullptr ? reinterpret_cast<long>(&bits) : 0,
                                       reinterpret_cast<long>(old), kernel_size));
}

int current_cpu() { return sched_getcpu(); }

void yield_thread() { raw_syscall(SYS_sched_yield); }

[[gnu::noinline]] void set_errno(int value) { errno = value; }

void sleep_for_ever() {
  std::atomic<uint32_t> never{0};
  for (;;) futex_wait(&never, 0);
}

}  // namespace gofer::internal::os
