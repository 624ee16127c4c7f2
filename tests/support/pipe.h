// A pipe: what a test blocks a thread with, and wakes it up again.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace gofer::test {

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() { EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0); }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  bool read_one() const {
    char c = 0;
    return read(ends[0], &c, 1) == 1 && c == 'x';
  }
  bool write_one() const { return write(ends[1], "x", 1) == 1; }
};

}  // namespace gofer::test
