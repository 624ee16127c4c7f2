// What a trace is written to: a file of its own, or a descriptor of the program's.
//
// On the tracer's thread alone. The thread takes no signals, so a pipe without a reader is an error
// (EPIPE) and no signal for the program.
//
// Invariants:
//  - No write blocks. Before each one the descriptor is asked whether it takes some bytes, and
//    pipes and terminals get no more at once than they are sure to take. While they take none, the
//    thread looks every few milliseconds whether the trace is to end, so a reader that has stopped
//    cannot hold up the end of a trace, nor a failure elsewhere. A descriptor may be non-blocking;
//    its mode is the program's and stays.
//  - Bytes go only into the file that the descriptor was of at the begin. A program that closes all
//    descriptors (as daemons do) and opens its own would find them in its file.
//  - What was in a program's file before, and what others write behind the trace, is not cut off
//    when an incomplete generation is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/file.h"
#include "runtime/base/atomic.h"

namespace gofer::internal::tracer {

class Output {
 public:
  /// Until when the descriptor may take nothing, which it has done since `since_ns`, before write()
  /// fails with ETIMEDOUT. Asked again and again, so it may become earlier meanwhile.
  using Patience = int64_t (*)(int64_t since_ns);

  /// Begins a trace: writes the header, if the descriptor takes it at once, or with the first
  /// write. Returns an errno value. The descriptor is closed by close() if it is owned.
  int open(int fd, bool owned, Patience patience);
  /// Returns an errno value.
  int write(const void* bytes, size_t size);
  /// What was written until now is to stay.
  void mark_complete() { complete_ = written_; }
  /// Cuts off what was written since mark_complete, if that is possible.
  void cut_incomplete();
  void close();

 private:
  int write_header(Patience patience);
  int write_all(const void* bytes, size_t size, Patience patience);
  int wait_until_writable(int64_t since_ns, bool refused, Patience patience) const;
  ssize_t write_some(const char* bytes, size_t size) const;
  bool is_same_file() const;

  int fd_ = -1;
  bool owned_ = false;
  os::FileType type_ = os::FileType::unknown;
  os::FileId id_{};
  Patience patience_ = nullptr;
  int64_t begin_ = -1;    // where the header is in a regular file; -1: in none
  int64_t written_ = 0;   // bytes
  int64_t complete_ = 0;  // of them, those that are to stay
};

/// Once the trace is to end, its descriptor may take nothing for so long. For tests.
extern constinit atomic<int64_t> longest_standstill_ns;

}  // namespace gofer::internal::tracer
