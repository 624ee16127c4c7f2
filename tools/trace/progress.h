// A progress bar on stderr, for files that take long to read.
#pragma once

#include <cstdint>

namespace gofer::tool {

/// Draws nothing unless stderr is a terminal, and nothing in the first half second.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// To be called with each event. Looks at the clock once in some thousand calls.
  void step(uint64_t done, uint64_t total) {
    if (on_ && ++calls_ % 16384 == 0) draw(done, total);
  }

 private:
  void draw(uint64_t done, uint64_t total);

  bool on_;
  bool drawn_ = false;
  uint64_t calls_ = 0;
  int64_t begin_ns_ = 0;
  int64_t next_ns_ = 0;
};

}  // namespace gofer::tool
