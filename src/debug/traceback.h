// Traces in Go's format, from the pcs that unwind.h collects.
//
// Used only when the process reports something (deadlock, uncaught exception, stack overflow,
// dump), so nothing here is fast; everything is meant to work in a broken process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "debug/unwind.h"

namespace gofer::internal {

struct FrameOptions {
  /// Leaves out what belongs to the library's inside, to the throwing of exceptions and to the
  /// start of a thread, unless nothing would be left.
  bool hide_internal = true;
  /// Neither malloc nor debug information: symbols of the dynamic linker only, not demangled. For a
  /// signal that may have interrupted malloc.
  bool no_malloc = false;
};

/// Whether one of these functions is malloc or one of its family: a signal handler that finds that
/// it interrupted one must not allocate in this thread, which may hold the allocator's lock.
bool is_in_malloc(std::span<const uintptr_t> pcs);

/// One entry per function, inlined ones (without offset) included:
///   name(...)
///     path/file.cc:79 +0x31e
/// and where there is no line: the module and the offset in it, for addr2line. Needs little stack:
/// the work is done on a stack of its own; no handler of an asynchronous signal runs meanwhile.
void print_frames(int fd, std::span<const uintptr_t> pcs, const FrameOptions& options = {});

/// "created by NAME in goroutine N" (without the latter if N is 0) and the line below it; `pc` is
/// the return address of the call that created the goroutine. The library's own frames are skipped.
void print_creator(int fd, uintptr_t pc, uint64_t parent_id, const FrameOptions& options = {});

/// The function around the return address `pc`, by the rule of print_creator; "?" if there is none.
std::string describe_pc(uintptr_t pc);

}  // namespace gofer::internal
