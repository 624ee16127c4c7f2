// libgofer_check.so: finds locks of the C library that goroutines hold while they park.
//
//   LD_PRELOAD=libgofer_check.so ./app
//
// A goroutine that parks may go on in another thread, but a pthread mutex, and with it std::mutex,
// belongs to the thread that locked it. glibc notes the owner in the mutex, and the writer in a
// read-write lock. This library replaces four functions of libc and reports two cases:
//  - A thread unlocks what another thread has locked: the goroutine has moved meanwhile.
//  - A thread locks an ordinary mutex that it holds already: an earlier goroutine of this thread
//    holds it, and has parked. (Or the program locks it twice, which is no better.)
// It reports what really happened in this run. It does not see a goroutine that went on in its old
// thread before another goroutine or thread wanted the lock, and it does not see a goroutine that
// holds a lock for reading. So the program should run with several processors and be busy.
//
// A child of fork() reports nothing. Its thread has another id than the thread that locked in the
// parent, and it unlocks what that thread held, for example in atfork handlers. So a report
// compares the process's id first. Rejected: pthread_atfork, because the handlers of libraries that
// registered earlier run first.
//
// Rejected: counting the locks of each thread and checking the count at every park, because every
// park would pay for it, even in programs that do not check.
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>

namespace {

constexpr int max_reports = 20;
constexpr int max_frames = 30;

int self() { return static_cast<int>(syscall(SYS_gettid)); }

template <class F>
F next(std::atomic<F>& found, const char* name) {
  F f = found.load(std::memory_order_relaxed);
  if (f == nullptr) {
    f = reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
    found.store(f, std::memory_order_relaxed);
  }
  return f;
}

// Before this is set, nothing is reported.
const pid_t process = getpid();

// Set while this thread makes a report, which may itself lock a mutex.
thread_local bool reports = false;

void report(const char* lock, const void* address, int owner, const char* does) {
  static std::atomic<int> count{0};
  if (getpid() != process) return;
  if (reports || count.fetch_add(1, std::memory_order_relaxed) >= max_reports) return;
  reports = true;
  char text[256];
  const int n =
      std::snprintf(text, sizeof text,
                    "gofer check: the %s at %p, locked by thread %d, is %s by thread %d: a "
                    "goroutine held it while it parked\n",
                    lock, address, owner, does, self());
  // If stderr cannot be written, the check goes on, and aborts if it was told to.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, static_cast<size_t>(n));
  void* frames[max_frames];
  backtrace_symbols_fd(frames, backtrace(frames, max_frames), STDERR_FILENO);
  const char* mode = getenv("GOFER_CHECK_PARKS");
  if (mode != nullptr && std::strcmp(mode, "abort") == 0) abort();
  reports = false;
}

// The kinds of mutex that block a thread which locks them again. The other bits tell how a mutex is
// shared.
bool is_ordinary(const pthread_mutex_t* m) {
  const int kind = m->__data.__kind & 3;
  return kind == PTHREAD_MUTEX_TIMED_NP || kind == PTHREAD_MUTEX_ADAPTIVE_NP;
}

using MutexFn = int (*)(pthread_mutex_t*);
using RwlockFn = int (*)(pthread_rwlock_t*);

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int pthread_mutex_lock(pthread_mutex_t* m) noexcept {
  static std::atomic<MutexFn> found{nullptr};
  const int owner = __atomic_load_n(&m->__data.__owner, __ATOMIC_RELAXED);
  if (owner != 0 && is_ordinary(m) && owner == self()) report("mutex", m, owner, "locked again");
  return next(found, "pthread_mutex_lock")(m);
}

__attribute__((visibility("default"))) int pthread_mutex_unlock(pthread_mutex_t* m) noexcept {
  static std::atomic<MutexFn> found{nullptr};
  const int owner = __atomic_load_n(&m->__data.__owner, __ATOMIC_RELAXED);
  if (owner != 0 && owner != self()) report("mutex", m, owner, "unlocked");
  return next(found, "pthread_mutex_unlock")(m);
}

__attribute__((visibility("default"))) int pthread_rwlock_wrlock(pthread_rwlock_t* l) noexcept {
  static std::atomic<RwlockFn> found{nullptr};
  const int owner = __atomic_load_n(&l->__data.__cur_writer, __ATOMIC_RELAXED);
  if (owner != 0 && owner == self()) report("read-write lock", l, owner, "locked again");
  return next(found, "pthread_rwlock_wrlock")(l);
}

__attribute__((visibility("default"))) int pthread_rwlock_unlock(pthread_rwlock_t* l) noexcept {
  static std::atomic<RwlockFn> found{nullptr};
  const int owner = __atomic_load_n(&l->__data.__cur_writer, __ATOMIC_RELAXED);
  if (owner != 0 && owner != self()) report("read-write lock", l, owner, "unlocked");
  return next(found, "pthread_rwlock_unlock")(l);
}

}  // extern "C"
