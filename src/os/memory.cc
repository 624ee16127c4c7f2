#include "os/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "os/raw_syscall.h"

#if defined(__SANITIZE_THREAD__)
#define TSAN_FOLLOWS_MAPPINGS 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TSAN_FOLLOWS_MAPPINGS 1
#endif
#endif

namespace gofer::internal::os {
namespace {

// Not in the headers of Debian 12.
constexpr int madv_guard_install = 102;
constexpr int madv_dontneed_locked = 24;

bool call_ok(long result) { return result == 0; }

long address(void* p) { return reinterpret_cast<long>(p); }

long advise(void* p, size_t size, int advice) {
  return raw_syscall(SYS_madvise, address(p), static_cast<long>(size), advice);
}

void* map(size_t size, int protection) {
  const long r = raw_syscall(SYS_mmap, 0, static_cast<long>(size), protection,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return r < 0 && r > -4096 ? nullptr : reinterpret_cast<void*>(r);
}

// Asks for more than is needed and cuts off what is not aligned.
void* map_aligned(size_t size, size_t align, int protection = PROT_READ | PROT_WRITE) {
  if (align <= page_size) return map(size, protection);
  char* all = static_cast<char*>(map(size + align, protection));
  if (all == nullptr) return nullptr;
  const auto start = reinterpret_cast<uintptr_t>(all);
  const uintptr_t wanted = (start + align - 1) & ~(align - 1);
  const size_t before = wanted - start;
  if (before != 0) release(all, before);
  if (before != align) release(all + before + size, align - before);
  return all + before;
}

// mlockall(MCL_FUTURE) is in force: this advice is for memory that is not locked.
bool is_locked(void* p) { return advise(p, page_size, MADV_DONTNEED) == -EINVAL; }

// The number in a file of /proc/sys, or what it is by default.
long read_setting(const char* path, long by_default) {
  const long fd =
      raw_syscall(SYS_openat, AT_FDCWD, reinterpret_cast<long>(path), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return by_default;
  char text[32];
  const long n = raw_syscall(SYS_read, fd, reinterpret_cast<long>(text), sizeof text);
  raw_syscall(SYS_close, fd);
  long value = by_default;
  if (n > 0) std::from_chars(text, text + n, value);
  return value;
}

// Where the kernel refuses mprotect, though not for want of memory, a mapping takes the place of
// the old one.
bool protect(void* p, size_t size, int protection) {
  const auto bytes = static_cast<long>(size);
  const long r = raw_syscall(SYS_mprotect, address(p), bytes, protection);
  if (r == 0 || r == -ENOMEM) return r == 0;
  return raw_syscall(SYS_mmap, address(p), bytes, protection,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == address(p);
}

}  // namespace

void* reserve(size_t size, size_t align) {
  void* p = map_aligned(size, align);
  if (p != nullptr) advise(p, size, MADV_NOHUGEPAGE);
  return p;
}

void* reserve_dense(size_t size, size_t align) {
  void* p = map_aligned(size, align);
  if (p != nullptr) advise(p, size, MADV_HUGEPAGE);
  return p;
}

void* reserve_address_space(size_t size, size_t align) {
  void* p = map_aligned(size, align, PROT_NONE);
  if (p == nullptr) return nullptr;
  advise(p, size, MADV_NOHUGEPAGE);
  if (is_locked(p) &&
      !call_ok(raw_syscall(SYS_mlock2, address(p), static_cast<long>(size), MLOCK_ONFAULT))) {
    raw_syscall(SYS_munlock, address(p), static_cast<long>(size));
  }
  return p;
}

bool make_usable(void* p, size_t size) { return protect(p, size, PROT_READ | PROT_WRITE); }

void release(void* p, size_t size) {
#ifdef TSAN_FOLLOWS_MAPPINGS
  // TSan has to see it, or an access to what the kernel puts there next races with those before.
  const int before = errno;
  ::munmap(p, size);
  errno = before;
#else
  raw_syscall(SYS_munmap, address(p), static_cast<long>(size));
#endif
}

void discard(void* p, size_t size) {
  if (advise(p, size, MADV_DONTNEED) == -EINVAL) advise(p, size, madv_dontneed_locked);
}

void zero(void* p, size_t size) {
  const size_t pages = size & ~(page_size - 1);
  const long given_back =
      raw_syscall(SYS_madvise, address(p), static_cast<long>(pages), MADV_DONTNEED);
  // Pages that are locked in memory cannot be given back.
  const size_t from = call_ok(given_back) ? pages : 0;
  std::memset(static_cast<char*>(p) + from, 0, size - from);
}

void discard_many(void* const* ranges, size_t n, size_t size) {
  constexpr size_t batch = 64;
  constexpr long pidfd_self = -10001;  // this process; not in the headers of Debian 12
  iovec list[batch];
  for (size_t done = 0; done < n;) {
    const size_t count = n - done < batch ? n - done : batch;
    for (size_t i = 0; i < count; ++i) list[i] = {ranges[done + i], size};
    const long r = raw_syscall(SYS_process_madvise, pidfd_self, reinterpret_cast<long>(list),
                               static_cast<long>(count), MADV_DONTNEED, 0);
    if (r != static_cast<long>(count * size)) {
      for (size_t i = 0; i < count; ++i) discard(ranges[done + i], size);
    }
    done += count;
  }
}

bool guard_by_marker(void* p, size_t size) { return call_ok(advise(p, size, madv_guard_install)); }

bool guard_by_mprotect(void* p, size_t size) { return protect(p, size, PROT_NONE); }

bool has_guard_markers() {
  void* page = map(page_size, PROT_READ | PROT_WRITE);
  if (page == nullptr) return false;
  const bool has = guard_by_marker(page, page_size);
  release(page, page_size);
  return has;
}

bool address_space_is_limited() {
  struct rlimit limit {};
  const long r = raw_syscall(SYS_prlimit64, 0, RLIMIT_AS, 0, reinterpret_cast<long>(&limit));
  return call_ok(r) && limit.rlim_cur != RLIM_INFINITY;
}

long max_mappings(bool has_proc) {
  constexpr long by_default = 65530;
  return has_proc ? read_setting("/proc/sys/vm/max_map_count", by_default) : by_default;
}

bool memory_is_charged_early(bool has_proc) {
  return has_proc && read_setting("/proc/sys/vm/overcommit_memory", 0) == 2;
}

}  // namespace gofer::internal::os
