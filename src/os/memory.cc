#include "os/memory.h"

#include <sys/mman.h>
#include <sys/uio.h>
#include <cstdint>

#include "os/raw_syscall.h"

namespace gofer::internal::os {
namespace {

constexpr int madv_guard_install = 102;  // not in the headers of Debian 12

bool call_ok(long result) { return result == 0; }

long address(void* p) { return reinterpret_cast<long>(p); }

void* map(size_t size) {
  const long r = raw_syscall(SYS_mmap, 0, static_cast<long>(size), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return r < 0 && r > -4096 ? nullptr : reinterpret_cast<void*>(r);
}

// Asks for more than is needed and cuts off what is not aligned.
void* map_aligned(size_t size, size_t align) {
  if (align <= page_size) return map(size);
  char* all = static_cast<char*>(map(size + align));
  if (all == nullptr) return nullptr;
  const auto start = reinterpret_cast<uintptr_t>(all);
  const uintptr_t wanted = (start + align - 1) & ~(align - 1);
  const size_t before = wanted - start;
  if (before != 0) release(all, before);
  if (before != align) release(all + before + size, align - before);
  return all + before;
}

}  // namespace

void* reserve(size_t size, size_t align) {
  void* p = map_aligned(size, align);
  if (p != nullptr) {
    raw_syscall(SYS_madvise, address(p), static_cast<long>(size), MADV_NOHUGEPAGE);
  }
  return p;
}

void* reserve_dense(size_t size, size_t align) {
  void* p = map_aligned(size, align);
  if (p != nullptr) {
    raw_syscall(SYS_madvise, address(p), static_cast<long>(size), MADV_HUGEPAGE);
  }
  return p;
}

void release(void* p, size_t size) { raw_syscall(SYS_munmap, address(p), static_cast<long>(size)); }

void discard(void* p, size_t size) {
  raw_syscall(SYS_madvise, address(p), static_cast<long>(size), MADV_DONTNEED);
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

bool guard_by_marker(void* p, size_t size) {
  return call_ok(raw_syscall(SYS_madvise, address(p), static_cast<long>(size), madv_guard_install));
}

bool guard_by_mprotect(void* p, size_t size) {
  return call_ok(raw_syscall(SYS_mprotect, address(p), static_cast<long>(size), PROT_NONE));
}

}  // namespace gofer::internal::os
