// Address space and pages from the kernel. Failure is a nullptr or false, never an exception.
#pragma once

#include <cstddef>

namespace gofer::internal::os {

inline constexpr size_t page_size = 4096;

/// Readable and writable zero pages, `align` a power of two >= page_size; no swap is reserved.
/// Small pages only: one touched page must not bring in 2 MiB of stack.
void* reserve(size_t size, size_t align = page_size);

/// The same with huge pages where the kernel has them: for dense arrays.
void* reserve_dense(size_t size, size_t align = page_size);

void release(void* p, size_t size);

/// Gives the pages back; the range reads as zeros afterwards. Guards stay.
void discard(void* p, size_t size);

/// The same for several ranges of one size, in one call where the kernel can (Linux 6.13): every
/// call interrupts the other cores, to flush their TLBs.
void discard_many(void* const* ranges, size_t n, size_t size);

/// Makes a range fault. By a marker in the page table, which splits no mapping (Linux 6.13)...
bool guard_by_marker(void* p, size_t size);
/// ...or by mprotect, which does (vm.max_map_count ends that at about 32,700 guards).
bool guard_by_mprotect(void* p, size_t size);

}  // namespace gofer::internal::os
