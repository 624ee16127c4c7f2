// Traces in Go's format, from the pcs that unwind.h collects.
//
// Traces are printed only when the process makes a report (deadlock, uncaught exception, stack
// overflow, dump). So nothing here is fast, and everything must work in a broken process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "debug/fd_writer.h"
#include "debug/unwind.h"

namespace gofer::internal {

struct FrameOptions {
  /// Leaves out frames of the library's inside, of throwing exceptions and of starting a thread,
  /// unless no frame would be left.
  bool hide_internal = true;
  /// Uses neither malloc nor debug information, only the symbols of the dynamic linker, not
  /// demangled. For a signal that may have interrupted malloc.
  bool no_malloc = false;
};

/// Returns whether one of these functions is malloc or one of its family, or fork. A signal handler
/// that has interrupted such a function must not allocate, because its thread may hold the
/// allocator's lock.
bool is_in_malloc(std::span<const uintptr_t> pcs);

/// Prints one entry per function, also for inlined functions (without an offset):
///   name(...)
///     path/file.cc:79 +0x31e
/// If there is no line, prints the module and the offset in it, for addr2line. Needs little stack,
/// because the work is done on a stack of its own. No handler of an asynchronous signal runs
/// meanwhile.
void print_frames(FdWriter& out, std::span<const uintptr_t> pcs, const FrameOptions& options = {});
void print_frames(int fd, std::span<const uintptr_t> pcs, const FrameOptions& options = {});

/// Prints "created by NAME in goroutine N" ("created by NAME" if N is 0) and the line below it.
/// `pc` is the return address of the call that created the goroutine. Skips the library's frames.
void print_creator(FdWriter& out, uintptr_t pc, uint64_t parent_id,
                   const FrameOptions& options = {});
void print_creator(int fd, uintptr_t pc, uint64_t parent_id, const FrameOptions& options = {});

/// Prints the function with which a goroutine begins, as describe_entry names it: "name(...)".
void print_entry(FdWriter& out, uintptr_t pc, const FrameOptions& options = {});

/// The function around the return address `pc`, chosen as in print_creator; "?" if there is none.
std::string describe_pc(uintptr_t pc);

/// A place in the program, for people.
struct Place {
  std::string function;  // "?" if it is unknown
  std::string file;      // empty if no line is known
  int line = 0;
  bool settled = true;  // false: the symbols were in use elsewhere, and another call may know more
};
/// The call before the return address `pc`, as in print_creator.
Place describe_call(uintptr_t pc);
/// The function at `pc` with which a goroutine begins. If that is the library's own, which calls
/// what the program has passed to `go`: the name of this.
Place describe_entry(uintptr_t pc);
/// Counts the libraries that the program has unloaded: if it has changed, an address may belong to
/// other code than before.
uint64_t count_unloaded();

/// The functions in which a call stands.
struct CallPlaces {
  /// Those that the compiler has inlined there, the innermost first, then the function itself;
  /// without the internal ones (FrameOptions::hide_internal), so perhaps none.
  std::vector<Place> places;
  /// Where the function itself begins; 0 if it is unknown.
  uintptr_t function = 0;
};
/// Of the call before the return address `pc`. False: another thread makes a report, or there is no
/// memory; it may be known later.
bool describe_places(uintptr_t pc, CallPlaces& call);

}  // namespace gofer::internal
