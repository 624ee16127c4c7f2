// Address space and pages from the kernel. Failure is a nullptr or false, never an exception.
#pragma once

#include <cstddef>

#include "arch/arch.h"

namespace gofer::internal::os {

using arch::page_size;

/// Readable and writable zero pages, `align` a power of two >= page_size; no swap is reserved.
/// Small pages only: one touched page must not bring in 2 MiB of stack.
void* reserve(size_t size, size_t align = page_size);

/// The same with huge pages where the kernel has them: for dense arrays.
void* reserve_dense(size_t size, size_t align = page_size);

/// Address space alone: an access faults, and nothing is charged, until a part is made usable.
/// Under mlockall(MCL_FUTURE) the pages are locked when they are touched, not all of them now.
void* reserve_address_space(size_t size, size_t align = page_size);
/// A part of it becomes readable and writable zero pages. False: too many mappings, or (with
/// vm.overcommit_memory=2) too much memory promised.
bool make_usable(void* p, size_t size);

void release(void* p, size_t size);

/// Gives the pages back; the range reads as zeros afterwards. Guards stay.
void discard(void* p, size_t size);

/// Makes a range zeros, whole pages by giving them back. `p` is aligned to a page.
void zero(void* p, size_t size);

/// discard() for several ranges of one size, in one call where the kernel can (Linux 6.13): every
/// call interrupts the other cores, to flush their TLBs.
void discard_many(void* const* ranges, size_t n, size_t size);

/// Makes a range fault. By a marker in the page table, which splits no mapping (Linux 6.13, and not
/// in locked memory)...
bool guard_by_marker(void* p, size_t size);
/// ...or by mprotect, which does: each costs two of the mappings that a process may have. Where the
/// kernel refuses that call, by a mapping in its place.
bool guard_by_mprotect(void* p, size_t size);
/// Whether the kernel makes markers in this process.
bool has_guard_markers();

/// What the system allows, to be asked at the start.
bool address_space_is_limited();              // RLIMIT_AS
long max_mappings(bool has_proc);             // vm.max_map_count
bool memory_is_charged_early(bool has_proc);  // vm.overcommit_memory=2

}  // namespace gofer::internal::os
