// libgofer_check.so: finds locks of the C library that goroutines hold while they park.
//
//   LD_PRELOAD=libgofer_check.so ./app
//
// A goroutine that parks may go on in another thread, but a pthread mutex, and with it std::mutex,
// belongs to the thread that locked it. glibc notes the owner in the mutex, and the writer in a
// read-write lock. This library takes the place of four functions and compares:
//  - a thread unlocks what another thread has locked: the goroutine has moved meanwhile;
//  - a thread locks an ordinary mutex that it holds already: an earlier goroutine of this thread
//    holds it, and has parked (or the program locks it twice, which is no better).
// It reports what really happened in this run. A goroutine that went on in its old thread, before
// anybody else wanted the lock, is not seen, nor is one that holds a lock for reading. So the
// program should run with several processors and be busy.
//
// A child of fork() reports nothing. Its thread has another id than the one that locked in the
// parent, and unlocks what that one held, in atfork handlers for example. So a report compares the
// process's id first. Rejected: pthread_atfork, because the handlers of libraries that registered
// theirs before run earlier.
//
// Rejected: counting the locks of each thread and looking at every park, because every park would
// pay for it, in programs that do not check too.
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

// Before it is known, nothing is reported.
const pid_t process = getpid();

// The report may lock a mutex in its turn.
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
  // If stderr cannot be written, the check goes on, and aborts if it shall.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, static_cast<size_t>(n));
  void* frames[max_frames];
  backtrace_symbols_fd(frames, backtrace(frames, max_frames), STDERR_FILENO);
  const char* mode = getenv("GOFER_CHECK_PARKS");
  if (mode != nullptr && std::strcmp(mode, "abort") == 0) abort();
  reports = false;
}

// The kinds that block a thread which locks again; the other bits say how it is shared.
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
